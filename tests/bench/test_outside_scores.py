"""Scores made elsewhere: how they are read, joined with the captions of a set, and measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from caplens.bench.base import find_sets
from caplens.bench.custom_ratings import OwnRatings
from caplens.bench.data import DataFolders
from caplens.bench.outside_scores import OutsideScores
from caplens.bench.run import run
from caplens.core.errors import InputError
from caplens.metrics import load_metric

CAPTIONS = {"one": "A dog  runs .", "two": "A cat .", "three": "Nothing here"}
HUMAN = {"one": 5.0, "two": 3.0, "three": 1.0}


@pytest.fixture
def data(tmp_path: Path) -> DataFolders:
    rows = [
        {"dataset": "coco", "image": f"val/{name}.jpg", "caption": text, "human": HUMAN[name], "references": ["x"]}
        for name, text in CAPTIONS.items()
    ]
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "composite.json").write_text(json.dumps(rows))
    return DataFolders([folder])


def scores_file(tmp_path: Path, *rows: dict[str, object]) -> Path:
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_of(**scores: float) -> list[dict[str, object]]:
    return [
        {"image": f"{name}.png", "caption": CAPTIONS[name].replace("  ", " "), "judge": score}
        for name, score in scores.items()
    ]


def test_every_column_of_numbers_is_measured_as_a_metric_is(tmp_path: Path, data: DataFolders) -> None:
    rows = [
        {**row, "worse": -float(str(row["judge"])), "remark": "fine"} for row in rows_of(one=0.9, two=0.5, three=0.1)
    ]
    outside = OutsideScores.read(scores_file(tmp_path, *rows))
    report = run(find_sets(["composite"]), [load_metric("length")], data, outside, resamples=20, permutations=20)
    assert set(report["composite"].scored) == {"judge", "worse", "length"}
    assert report["composite"].value("spearman", "judge") == pytest.approx(100.0)
    assert report["composite"].value("spearman", "worse") == pytest.approx(-100.0)
    assert report["composite"].scored["judge"].signature.startswith("judge|scores:scores.jsonl@")
    assert [row.cluster is not None for row in report["composite"].of("tau-c")] == [True] * 3


def test_a_table_is_read_as_json_lines_are(tmp_path: Path, data: DataFolders) -> None:
    path = tmp_path / "scores.csv"
    lines = [f'{name}.jpg,"{text}",{number}' for number, (name, text) in enumerate(CAPTIONS.items())]
    path.write_text("\n".join(["file_name,caption,judge", *lines]) + "\n")
    report = run(find_sets(["composite"]), [], data, OutsideScores.read(path), resamples=0, permutations=0)
    assert report["composite"].value("spearman", "judge") == pytest.approx(-100.0)


def test_a_caption_without_a_score_is_counted_out(tmp_path: Path, data: DataFolders) -> None:
    rows: list[dict[str, object]] = [
        *rows_of(one=0.9, two=0.5),
        {"image": "three.jpg", "caption": CAPTIONS["three"], "judge": None},
    ]
    outside = OutsideScores.read(scores_file(tmp_path, *rows))
    report = run(find_sets(["composite"]), [], data, outside, resamples=0, permutations=0)
    (row,) = report["composite"].of("tau-c")
    assert (row.used, row.figure.count) == (2, 3)


def test_a_column_set_says_which_set_a_row_is_about(tmp_path: Path, data: DataFolders) -> None:
    """A photo is in several sets with the same caption and other references."""
    mine = [{**row, "set": "Composite"} for row in rows_of(one=0.9, two=0.5, three=0.1)]
    others = [{**row, "set": "flickr8k-expert"} for row in rows_of(one=0.1, two=0.5, three=0.9)]
    unknown = [{**row, "set": "another-set"} for row in rows_of(one=0.0)]
    outside = OutsideScores.read(scores_file(tmp_path, *others, *mine, *unknown))
    report = run(find_sets(["composite"]), [], data, outside, resamples=0, permutations=0)
    assert report["composite"].value("spearman", "judge") == pytest.approx(100.0)


def test_scores_about_other_captions_are_not_measured_and_it_says_what_the_set_has(
    tmp_path: Path, data: DataFolders
) -> None:
    outside = OutsideScores.read(scores_file(tmp_path, {"image": "nine.jpg", "caption": "other", "judge": 1}))
    report = run(find_sets(["composite"]), [], data, outside, resamples=0, permutations=0)
    assert "one.jpg" in report["composite"].skipped["judge"]
    assert "A dog" in report["composite"].skipped["judge"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"image": "a.jpg", "caption": "x", "a": 1}, {"image": "a.png", "caption": "x ", "a": 2}], "row 2.*row 1"),
        ([{"caption": "x", "judge": 1}], "no picture or no caption"),
        ([{"image": "a.jpg", "judge": 1}], "no picture or no caption"),
        ([{"image": "a.jpg", "caption": "x", "judge": "good"}], "no column holds scores"),
        ([{"image": ["a.jpg"], "caption": "x", "judge": 1}], "must be texts"),
        ([["a.jpg", "x", 1]], "must be an object"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_meant_is_refused_by_its_row(
    tmp_path: Path, rows: list[dict[str, object]], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        OutsideScores.read(scores_file(tmp_path, *rows))


def test_a_column_called_like_a_metric_is_refused_where_both_are_asked_for(tmp_path: Path, data: DataFolders) -> None:
    rows = [{"image": "one.jpg", "caption": CAPTIONS["one"], "length": 1}]
    outside = OutsideScores.read(scores_file(tmp_path, *rows))
    with pytest.raises(InputError, match="called like a metric"):
        run(find_sets(["composite"]), [load_metric("length")], data, outside, resamples=0, permutations=0)


def test_scores_are_measured_on_own_ratings_too(tmp_path: Path) -> None:
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("id,caption,rating\na,one,1\nb,two,2\nc,three,3\n")
    texts = {"a": "one", "b": "two", "c": "three"}
    rows = [{"id": name, "caption": text, "judge": text.count("e")} for name, text in texts.items()]
    outside = OutsideScores.read(scores_file(tmp_path, *rows))
    report = run([OwnRatings(ratings)], [], DataFolders([]), outside, resamples=0, permutations=0)
    # Scores 1, 0, 2 for ratings 1, 2, 3: two of three pairs in order.
    assert report["own"].value("tau-b", "judge") == pytest.approx(100 / 3)


@pytest.mark.shared
def test_the_scores_of_fleurs_authors_give_the_figures_in_print(shared: Path) -> None:
    outside = OutsideScores.read(shared / "data" / "fleur" / "fleur_scores.jsonl.gz")
    sets = find_sets(["flickr8k-expert", "composite"])
    report = run(sets, [], DataFolders([shared / "data"]), outside, resamples=0, permutations=0)
    for name, printed, tolerance in (("flickr8k-expert", 53.0, 0.2), ("composite", 63.5, 0.3)):
        row = next(row for row in report[name].of("tau-c") if row.metric == "fleur")
        assert row.estimate.value * 100 == pytest.approx(printed, abs=tolerance)
        assert row.status == "reproduced"
        assert row.used == row.figure.count
    assert np.isfinite(report["composite"].value("tau-c", "model_score"))
