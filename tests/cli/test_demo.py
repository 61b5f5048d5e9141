"""`caplens demo`: everything it promises is on its pages, and nothing was left out."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.schemas import check_output

from caplens.cli.demo import COMPARED, METRICS, examples_folder
from caplens.cli.weights import Purpose
from caplens.core.errors import CaplensWarning
from caplens.storage import weights


def test_the_examples_are_found() -> None:
    assert (examples_folder() / "captions.jsonl").is_file()
    assert len(list((examples_folder() / "images").iterdir())) == 12


def test_the_demo_scores_compares_and_explains(run: Run, tmp_path: Path) -> None:
    missing = [name for name in Purpose.demo.names() if weights.find(name) is None]
    if missing:
        pytest.skip(f"caplens weights fetch {' '.join(missing)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaplensWarning)
        shown = run("demo", "--output", tmp_path, "--json", tmp_path / "demo.json")
    assert shown.code == 0, shown.stderr
    assert "ran without" not in shown.stdout + shown.stderr
    found = check_output("demo", (tmp_path / "demo.json").read_text())
    assert list(found["score"]["metrics"]) == list(METRICS)
    assert not any(entry["failures"] for entry in found["score"]["metrics"].values())
    assert list(found["compare"]["metrics"]) == list(COMPARED)
    page = (tmp_path / "demo.html").read_text("utf-8")
    assert '"infometic over embedded"' in page
    assert "data:image/jpeg" in page
    assert (tmp_path / "demo-compare.html").is_file()
    assert f"open {tmp_path / 'demo.html'}" in shown.stdout
