"""Several captions per picture: mean, first, best and oracle, by pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import caplens
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError, MissingData
from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric, Statistics

GROUPS = ["cat", "dog", "cat", "dog", "cat"]
CAPTIONS = ["a cat", "a black dog runs", "a cat sleeps on a mat", "dogs", "the cat on the mat"]
REFERENCES: dict[object, list[str]] = {
    "cat": ["a cat sleeps on the mat", "the cat is asleep"],
    "dog": ["a dog runs", "a black dog"],
}


class Longest(Metric):
    """Looks at pictures, or says so: likes long captions."""

    name, needs, paper, summary = "toy-longest", frozenset({"image"}), "Nobody, never", "likes long captions"

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(np.array([[len(text) / 100] for text in work.captions.candidates]))


@pytest.fixture
def report() -> caplens.Report:
    images = {"cat": "cat.png", "dog": "dog.png"}
    metrics: list[str | Metric] = ["bleu-2", "rouge-l", "cider-d", Longest()]
    return caplens.evaluate(CAPTIONS, REFERENCES, images, groups=GROUPS, metrics=metrics)


def alone(rows: list[int], metric: str) -> float:
    """The score of one caption per picture, as if there were no others."""
    chosen = {GROUPS[row]: CAPTIONS[row] for row in rows}
    return caplens.evaluate(chosen, {name: REFERENCES[name] for name in chosen}, metrics=[metric])[metric].score


@pytest.mark.parametrize("metric", ["bleu-2", "rouge-l", "cider-d"])
def test_each_way_equals_scoring_the_captions_it_takes_alone(report: caplens.Report, metric: str) -> None:
    assert report.captions.ids == ["cat#0", "dog#0", "cat#1", "dog#1", "cat#2"]
    assert report.per_picture("first")[metric].score == pytest.approx(alone([0, 1], metric), rel=1e-12)
    assert report.per_picture("best")[metric].score == pytest.approx(alone([2, 1], metric), rel=1e-12)
    scores = report[metric].scores
    best = [max((0, 2, 4), key=lambda row: scores[row]), max((1, 3), key=lambda row: scores[row])]
    assert report.per_picture("oracle")[metric].score == pytest.approx(alone(best, metric), rel=1e-12)


def test_the_mean_counts_every_picture_once(report: caplens.Report) -> None:
    scores = report["rouge-l"].scores
    expected = (scores[[0, 2, 4]].mean() + scores[[1, 3]].mean()) / 2
    mean = report.per_picture("mean")
    assert mean["rouge-l"].score == pytest.approx(expected)
    assert mean.captions.ids == ["cat", "dog"]
    bounds = report.intervals()["rouge-l"]  # of two pictures, not of five captions
    assert list(bounds) == pytest.approx(sorted(mean["rouge-l"].scores))


def test_the_table_json_and_data_frame_go_by_pictures(report: caplens.Report, tmp_path: Path) -> None:
    table = report.table()
    assert table.columns == ("metric", "scale", "mean", "95 % interval", "first", "best by toy-longest", "oracle")
    found = report.to_dict()
    assert found["groups"] == GROUPS
    assert found["several"]["pictures"] == 2
    assert found["several"]["metrics"]["rouge-l"]["oracle"] == report.per_picture("oracle")["rouge-l"].score
    assert report.to_pandas()["image_id"].tolist() == GROUPS
    report.to_html(tmp_path / "page.html")
    assert "5 captions of 2 pictures" in (tmp_path / "page.html").read_text("utf-8")
    assert report.per_picture("best")["rouge-l"].signature.split("|")[-2] == "captions:best-by-toy-longest"


def test_what_chooses_may_be_named_and_must_be_there(report: caplens.Report) -> None:
    assert report.several("rouge-l").chosen_by == "rouge-l"
    with pytest.raises(InputError, match="meteor was not computed, so it cannot choose"):
        report.several("meteor")
    blind = caplens.evaluate(CAPTIONS, REFERENCES, groups=GROUPS, metrics=["rouge-l"])
    assert blind.several().chosen_by is None
    with pytest.raises(MissingData, match="add a metric without references"):
        blind.per_picture("best")
    single = caplens.evaluate(["a cat"], [["a cat"]], metrics=["rouge-l"])
    with pytest.raises(InputError, match="every picture has one caption"):
        single.per_picture()


def test_captions_that_cannot_be_scored_stay_out() -> None:
    from tests.toys import Picky

    report = caplens.evaluate(
        ["abc", "broken", "broken", "broken"], groups=["one", "one", "two", "two"], metrics=[Picky()]
    )
    mean = report.per_picture("mean")["toy-picky"]
    assert mean.scores[0] == pytest.approx(0.03)
    assert mean.failures == {1: "the <picture> cannot be read"}
    assert mean.score == pytest.approx(0.03)
    assert report.per_picture("oracle")["toy-picky"].score == pytest.approx(0.03)


def test_systems_with_different_numbers_of_captions_are_compared_by_picture() -> None:
    one = CaptionSet.of(CAPTIONS, REFERENCES, groups=GROUPS)
    other = CaptionSet.of({"dog": "a dog runs", "cat": "a cat sleeps on the mat"}, REFERENCES)
    found = caplens.compare({"one": one, "other": other}, metrics=["rouge-l"])
    assert found.captions == 2
    baseline, better = found["rouge-l"].systems
    assert baseline.score == pytest.approx(
        caplens.evaluate(one, metrics=["rouge-l"]).per_picture("mean")["rouge-l"].score
    )
    assert better.score == pytest.approx(1.0)
    with pytest.raises(InputError, match="'one' has no caption for id 'cow'"):
        caplens.compare({"one": one, "other": {"dog": "a", "cow": "b", "cat": "c"}}, metrics=["length"])
