"""`--caption-column`, `--image-column` and `--id-column` reach the reader from every verb that reads captions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

COLUMNS = ("--caption-column", "prediction", "--image-column", "Bild", "--id-column", "Nummer")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(
        "Nummer;caption;prediction;Bild;references\n7;one;one two;7.jpg;one two|three\n8;one;one;8.jpg;one\n"
    )
    return path


def test_score(run: Run, table: Path) -> None:
    refused = run("score", table, "-m", "length")
    assert refused.code == 2
    assert "'caption' and 'prediction' both look like the caption" in refused.stderr
    assert "--caption-column" in refused.stderr
    shown = run("score", table, "-m", "length,rouge-l", *COLUMNS, "--json")
    assert shown.code == 0, shown.stderr
    report = json.loads(shown.stdout)
    assert report["metrics"]["length"]["scores"] == [2.0, 1.0]
    assert report["metrics"]["rouge-l"]["score"] == 1.0
    assert "7" in shown.stdout


def test_compare(run: Run, table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("one two;", "one;"))
    shown = run("compare", table, other, "-m", "length", "--resamples", "10", *COLUMNS, "--json")
    assert shown.code == 0, shown.stderr
    assert json.loads(shown.stdout)["captions"] == 2
