"""The viewer as plain files: whole or not at all, and never over something else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.server.conftest import IMAGES, NAMES

from caplens.core.errors import InputError
from caplens.server.export import export
from caplens.server.settings import Settings


def test_everything_a_page_needs_is_there(runs: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    export(Settings(runs=runs, folders=(IMAGES,), state=tmp_path), site)
    for page in site.glob("*.html"):
        text = page.read_text("utf-8")
        for name in re.findall(r'(?:href|src)="([^"#]+)"', text):
            assert name.startswith("data:,") or (site / name).is_file(), name
        assert "http://" not in text
        assert "https://" not in text
        assert "Content-Security-Policy" in text
    for run in json.loads((site / "data" / "runs.json").read_text("utf-8")):
        folder = site / "data" / run["id"]
        rows = json.loads((folder / "rows-0.json").read_text("utf-8"))
        assert [row["id"] for row in rows] == NAMES
        assert json.loads((folder / "summary.json").read_text("utf-8"))["portions"] == 1
        for row in rows:
            assert row["picture"] == (folder / "pictures" / f"{row['row']}.jpg").is_file()


def test_an_export_replaces_an_export_and_nothing_else(runs: Path, tmp_path: Path) -> None:
    settings = Settings(runs=runs, state=tmp_path)
    export(settings, tmp_path / "site", pictures=0)
    (tmp_path / "site" / "stale.html").write_text("old", "utf-8")
    export(settings, tmp_path / "site", pictures=0)
    assert not (tmp_path / "site" / "stale.html").exists()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work", "utf-8")
    with pytest.raises(InputError, match="holds something else than an export"):
        export(settings, tmp_path / "home")
    assert (tmp_path / "home" / "thesis.tex").exists()
    with pytest.raises(InputError, match="holds no run"):
        export(Settings(runs=tmp_path / "home", state=tmp_path), tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
