"""The notebook of the guide runs, and the page is what it prints."""

from __future__ import annotations

import pytest
from tools.docs_notebook import NOTEBOOK, as_page, execute

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


def test_the_page_is_what_the_notebook_prints_today() -> None:
    page, pictures = as_page(execute())
    assert page == NOTEBOOK.with_suffix(".md").read_text("utf-8"), "run python -m tools.docs_notebook"
    assert len(pictures) == 2
    for name in pictures:
        assert NOTEBOOK.with_name(name).read_bytes().startswith(b"\x89PNG")
