"""Sets that the Hugging Face hub keeps as parquet, and MSVD-Eval, on tiny samples in their layouts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from caplens.bench.base import Task, known_sets
from caplens.bench.data import DataFolders
from caplens.bench.run import run
from caplens.bench.statistics import RatingStatistic
from caplens.core.captions import BinarySource
from caplens.core.errors import InputError, MissingData
from caplens.metrics import load_metric


def load(name: str, folder: Path) -> Task:
    return known_sets()[name].load(DataFolders([folder]))


def ratings(task: Task, key: str) -> list[float]:
    figure = next(figure for figure in task.figures if figure.key == key)
    assert isinstance(figure, RatingStatistic)
    return [float(value) for value in figure.ratings]


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def picture(name: str | None) -> dict[str, Any]:
    stream = io.BytesIO()
    Image.new("RGB", (2, 2)).save(stream, "PNG")
    return {"bytes": stream.getvalue(), "path": name}


def test_polaris_reads_all_files_of_the_test_split_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "Polaris" / "data"
    for split, number, score in (("train", 0, 0.0), ("test", 0, 0.5), ("test", 1, 1.0)):
        rows = [{"refs": ["a dog", "dogs"], "cand": f"{split} {number}", "img": picture("a.jpg"), "human_score": score}]
        write_parquet(folder / f"{split}-0000{number}-of-00002.parquet", rows)
    task = load("polaris", tmp_path)
    (captions,) = task.trials
    assert captions.candidates == ["test 0", "test 1"]
    assert captions.references == [["a dog", "dogs"]] * 2
    assert ratings(task, "tau-c") == [0.5, 1.0]
    assert (task.units, task.pictures) == (1, (["a", "a"],))
    assert captions.images is not None
    first = captions.images[0]
    assert isinstance(first, BinarySource)
    assert Image.open(first.open()).size == (2, 2)


def test_polaris_pictures_without_a_name_are_told_apart_by_their_references(tmp_path: Path) -> None:
    rows = [
        {"refs": [text], "cand": "a", "img": picture(None), "human_score": 0.5} for text in ("a dog", "a cat", "a dog")
    ]
    write_parquet(tmp_path / "Polaris" / "data" / "test-00000-of-00001.parquet", rows)
    assert load("polaris", tmp_path).units == 2


def test_polaris_csv_of_the_authors(tmp_path: Path) -> None:
    text = 'mt,refs,score,imgid\na dog,"[\'dogs\', ""a dog\'s life""]",0.75,12\na cat,[\'cats\'],0.25,13\n'
    (tmp_path / "polaris_test.csv").write_text(text)
    Image.new("RGB", (2, 2)).save(tmp_path / "12.jpg")
    task = load("polaris", tmp_path)
    assert task.trials[0].references == [["dogs", "a dog's life"], ["cats"]]
    assert task.trials[0].images == [tmp_path / "12.jpg", None]
    assert ratings(task, "tau-b") == [0.75, 0.25]


@pytest.mark.parametrize("cell", ["__import__('os')", "good", "[" * 300])
def test_polaris_references_are_read_as_data(tmp_path: Path, cell: str) -> None:
    (tmp_path / "polaris_test.csv").write_text(f"mt,refs,score,imgid\na dog,{cell},1,12\n")
    with pytest.raises(InputError, match=r"line 2.*no list of texts"):
        load("polaris", tmp_path)


def test_nebula_in_the_cache_of_the_hub(tmp_path: Path) -> None:
    folder = tmp_path / "datasets--someone--Nebula" / "snapshots" / "0123abcd" / "data"
    rows = [
        {"file_name": "x.jpg", "image": picture("other.jpg"), "refs": ["r"], "mt": text, "human_score": score}
        for text, score in (("a", 0.1), ("b", 0.9))
    ]
    write_parquet(folder / "test-00000-of-00001.parquet", rows)
    task = load("nebula", tmp_path)
    assert task.trials[0].candidates == ["a", "b"]
    assert task.pictures == (["x", "x"],)
    assert ratings(task, "tau-c") == [0.1, 0.9]


def test_a_file_without_the_ratings_is_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path / "Nebula" / "data" / "test-00000-of-00001.parquet", [{"mt": "a", "refs": ["b"]}])
    with pytest.raises(InputError, match="no column 'human_score'"):
        load("nebula", tmp_path)


def test_longcap_arena_has_a_figure_per_perspective_over_the_same_photos(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "LongCap-Arena" / "data"
    for place, short in enumerate(("desc", "rel", "flu")):
        rows = [
            {"file_name": f"{name}.jpg", "image": picture(None), "refs": ["long"], "cand": "x " * count, "score": score}
            for name, count, score in (("a", 1, 0.1), ("b", 2, 0.2), ("c", 3, 0.9))
        ]
        write_parquet(folder / f"test.{short}-00000-of-00001.parquet", rows[place:])
        write_parquet(folder / f"dci_test.{short}-00000-of-00001.parquet", rows)
    task = load("longcap-arena", tmp_path)
    assert [len(captions) for captions in task.trials] == [3, 2, 1]
    assert task.units == 3
    assert [figure.key for figure in task.figures] == [
        "tau-c descriptiveness",
        "tau-c relevance",
        "tau-c fluency",
    ]
    report = run([known_sets()["longcap-arena"]], [load_metric("length")], DataFolders([tmp_path]), resamples=20)
    assert report["longcap-arena"].value("tau-c relevance", "length") == pytest.approx(100.0)


def test_a_perspective_that_is_not_here_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path / "LongCap-Arena" / "data" / "test.desc-00000-of-00001.parquet", [{"cand": "a"}])
    with pytest.raises(MissingData, match=r"test\.rel"):
        load("longcap-arena", tmp_path)


def test_msvd_eval_keeps_both_raters_as_rows_of_one_video(tmp_path: Path) -> None:
    scores = [[4, 3, 4, 5, 4.0], [2, 2, 2, 2, 2.0]]
    entry = {"vname": "clip_1_2.avi", "ref": ["a dog", "dogs"], "candidate": "a poodle", "human_score": scores}
    content = {"vid1": entry, "vid2": {**entry, "vname": "clip_3_4.avi", "human_score": scores[:1]}}
    (tmp_path / "MSVD-Eval.json").write_text(json.dumps(content))
    (tmp_path / "clip_3_4.avi").write_bytes(b"")
    task = load("msvd-eval", tmp_path)
    assert task.units == 2
    assert task.trials[0].videos == [None, tmp_path / "clip_3_4.avi"]
    assert ratings(task, "tau-c") == [4.0, 2.0, 4.0]
    assert ratings(task, "tau-b completeness") == [3.0, 2.0, 3.0]
    figure = task.figures[0]
    assert isinstance(figure, RatingStatistic)
    assert figure.rows.tolist() == [0, 0, 1]
    entry["human_score"] = [[1, 2]]
    (tmp_path / "MSVD-Eval.json").write_text(json.dumps({"vid1": entry}))
    with pytest.raises(InputError, match=r"vid1.*2 ratings, not 5"):
        load("msvd-eval", tmp_path)


@pytest.mark.shared
@pytest.mark.filterwarnings("ignore::caplens.core.errors.MetricNote")  # half of its captions are long for cider-d
def test_text_metrics_on_the_real_msvd_eval(shared: Path) -> None:
    metrics = [load_metric(name) for name in ("rouge-l", "cider-d", "length")]
    report = run([known_sets()["msvd-eval"]], metrics, DataFolders([shared / "data"]), resamples=50)["msvd-eval"]
    # The values of this run; scipy's kendalltau on the same rows gives the same.
    assert report.value("tau-b", "rouge-l") == pytest.approx(39.76, abs=0.01)
    assert report.value("tau-b", "cider-d") == pytest.approx(37.27, abs=0.01)
    assert report.value("tau-b", "length") < 0
    (best, *_) = report.of("tau-c")
    assert best.estimate.low < best.estimate.value < best.estimate.high
