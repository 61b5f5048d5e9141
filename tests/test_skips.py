"""A new skip is noticed: the run fails for a reason that nobody listed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.skips import unexpected

pytest_plugins = ["pytester"]


def test_only_listed_reasons_are_expected() -> None:
    listed = ["Skipped: no chromium with chromedriver on this machine", "Skipped: caplens weights fetch glove-6b-50d"]
    assert unexpected([*listed, "Skipped: I was tired"]) == ["Skipped: I was tired"]


@pytest.mark.parametrize(("reason", "code"), [("I was tired", 1), ("needs Java and a jar", 0)])
def test_a_run_with_a_new_skip_fails(pytester: pytest.Pytester, reason: str, code: int) -> None:
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text("utf-8"))
    pytester.makepyfile(f"import pytest\ndef test_it():\n    pytest.skip({reason!r})\ndef test_other():\n    pass\n")
    root = Path(__file__).parents[1]
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", f"--override-ini=pythonpath={root}")
    assert done.ret == code
    if code:
        done.stdout.fnmatch_lines(["*tests/skips.py does not list*I was tired*"])
