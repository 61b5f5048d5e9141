"""Report: json and data frames that read back as what was computed, and intervals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.toys import Blind, Overlap, Picky

import caplens
from caplens.evaluation.results import MANY


@pytest.fixture
def report() -> caplens.Report:
    captions = {"cat": "a cat sleeps", "dog": "broken", "half": "\ud83d café", "none": ""}
    references = {name: ["a cat sleeps"] for name in captions}
    return caplens.evaluate(captions, references, metrics=[Overlap(), Picky(), Blind()])


def test_json_reads_back_as_the_dictionary(report: caplens.Report, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.json"
    report.to_json(path)
    read = json.loads(path.read_text("utf-8"))
    assert read == json.loads(json.dumps(report.to_dict()))
    assert read["ids"] == ["cat", "dog", "half", "none"]
    assert read["metrics"]["toy-overlap"]["scores"] == [1.0, 0.0, 0.0, 0.0]
    assert read["metrics"]["toy-picky"]["scores"][1] is None
    assert read["metrics"]["toy-picky"]["failures"] == {"dog": "the <picture> cannot be read"}
    assert read["metrics"]["toy-overlap"]["details"][2]["words"][0]["text"] == "\ud83d"
    assert "looks at the image" in read["errors"]["toy-blind"]
    assert [entry.name for entry in path.parent.iterdir()] == ["report.json"]


def test_a_data_frame_has_one_row_per_caption(report: caplens.Report) -> None:
    pytest.importorskip("pandas")
    frame = report.to_pandas()
    assert list(frame.columns) == ["id", "candidate", "toy-overlap", "toy-picky"]
    assert frame["id"].tolist() == report.captions.ids
    assert frame["candidate"].tolist() == report.captions.candidates
    for result in report:
        np.testing.assert_array_equal(frame[result.name].to_numpy(), result.scores)


def test_what_was_not_computed_says_why(report: caplens.Report) -> None:
    with pytest.raises(caplens.core.errors.MissingData, match="looks at the image"):
        report["toy-blind"]
    with pytest.raises(KeyError, match="this report has: toy-overlap, toy-picky"):
        report["cider"]


def test_intervals_hold_the_score_and_leave_failures_out() -> None:
    captions = ["a" * length for length in range(1, 60)] + ["broken"]
    report = caplens.evaluate(captions, metrics=[Picky()])
    low, high = report.intervals(resamples=20_000)["toy-picky"]
    assert low < report["toy-picky"].score < high
    # The mean of 1..59 over 100: the normal interval is 0.30 ± 1.96 · 0.1703 / √59.
    assert (low, high) == pytest.approx((0.2566, 0.3434), abs=0.0015)
    assert report.intervals(seed=1) == report.intervals(seed=1) != report.intervals(seed=2)


def test_one_caption_and_very_many_have_no_interval() -> None:
    assert caplens.evaluate(["one"], metrics=[Picky()]).intervals() == {}
    assert caplens.evaluate(["many"] * (MANY + 1), metrics=[Picky()]).intervals() == {}
