"""The store of scores: nothing is computed twice, and nothing is found that was computed from something else."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caplens.bench.base import RatingSet, Task
from caplens.bench.data import DataFolders
from caplens.bench.results import SetReport
from caplens.bench.run import run
from caplens.bench.score_store import is_stored, stored_array, trial_scores
from caplens.bench.statistics import AgreementStatistic, CorpusStatistic, MeanStatistic, RatingStatistic
from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning
from caplens.core.workspace import Workspace
from caplens.metrics import find_metric
from caplens.metrics.base import Metric, Statistics
from caplens.metrics.bleu import Bleu1, Bleu4
from caplens.metrics.length import Length
from caplens.metrics.meteor import Meteor
from caplens.metrics.pac_score import PacScore
from caplens.storage.identity import Identity
from caplens.text.meteor_data import JAR, TABLE

CAPTIONS = CaptionSet.of(["a pup runs", "an old barn"], [["a puppy runs"], ["an aged barn"]])


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "fetched"))


def meteor_folder(folder: Path, words: str) -> Path:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / JAR, "w") as jar:
        jar.writestr("synonym/english.synsets", words)
        jar.writestr("synonym/english.exceptions", "pup\npuppen\n")
    with gzip.open(folder / TABLE, "wt") as file:
        file.write("0.5\nold\naged\n")
    return folder


def score(metric: Metric, captions: CaptionSet = CAPTIONS) -> float:
    return float(trial_scores(metric, Workspace(captions)).scores.mean())


@pytest.mark.filterwarnings("ignore:meteor")
def test_a_score_without_meteors_data_is_not_found_when_the_data_has_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = score(Meteor())
    assert is_stored(Meteor(), CAPTIONS)
    monkeypatch.setenv("CAPLENS_METEOR_DATA", str(meteor_folder(tmp_path / "m", "puppy\n00000001\npup\n00000001\n")))
    assert not is_stored(Meteor(), CAPTIONS)
    assert score(Meteor()) > before


def test_two_folders_of_meteors_data_have_two_scores(tmp_path: Path) -> None:
    same = meteor_folder(tmp_path / "same", "puppy\n00000001\npup\n00000001\n")
    other = meteor_folder(tmp_path / "other", "puppy\n00000001\npup\n00000002\n")
    assert score(Meteor(data=same)) > score(Meteor(data=other))
    assert is_stored(Meteor(data=same), CAPTIONS)


class Bytes(Metric):
    """The first byte of each picture."""

    name = "toy-bytes"
    needs = frozenset({"image"})
    paper = summary = ""

    def statistics(self, work: Workspace) -> Statistics:
        pictures = [Path(str(path)).read_bytes() for path in work.captions.images or []]
        return Statistics(np.array([[float(data[0])] for data in pictures]))


def test_pictures_count_with_their_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / "0.png", tmp_path / "1.png"]
    paths[0].write_bytes(b"\x01")
    paths[1].write_bytes(b"\x02")
    captions = CaptionSet.of(["a", "b"], images=paths)
    assert trial_scores(Bytes(), Workspace(captions)).scores.tolist() == [1.0, 2.0]
    paths[0].write_bytes(b"\x02")
    paths[1].write_bytes(b"\x01")
    assert trial_scores(Bytes(), Workspace(captions)).scores.tolist() == [2.0, 1.0]


def test_what_has_no_name_is_computed_and_not_kept(tmp_path: Path) -> None:
    metric = Length(tokenizer=lambda text: text.split())
    assert score(metric) == 3.0
    assert not is_stored(metric, CAPTIONS)
    assert not list((tmp_path / "cache").rglob("*.npz"))
    assert score(Length(tokenizer=list)) == score(Length(tokenizer=list)) == 8.5
    assert len(list((tmp_path / "cache").rglob("*.npz"))) == 1
    calls: list[int] = []

    def compute() -> Any:
        calls.append(1)
        return np.zeros(1)

    for identity in (Identity.of(compute), Identity.of("named"), Identity.of("named"), Identity.of(compute)):
        stored_array(identity, compute)
    assert len(calls) == 3


METRIC = """
import numpy as np
from caplens.metrics.base import Metric, Statistics

class Mine(Metric):
    name = "mine"
    needs = frozenset()
    paper = summary = ""

    def statistics(self, work):
        return Statistics(np.full((len(work.captions), 1), 1.0))
"""


def test_a_metric_that_was_edited_is_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(METRIC)
    assert score(find_metric(f"{path}:Mine")()) == 1.0
    assert is_stored(find_metric(f"{path}:Mine")(), CAPTIONS)
    path.write_text(METRIC.replace("1.0", "2.0"))
    assert score(find_metric(f"{path}:Mine")()) == 2.0


def test_references_count_where_they_weigh_words() -> None:
    """PAC-S of a video weighs words by the references; of a picture it does not look at them."""
    metric = PacScore(encoder="embedded")
    assert "references" in metric.inputs(CaptionSet.of(["a"], [["b"]], videos=["a.mp4"]))
    assert "references" not in metric.inputs(CaptionSet.of(["a"], [["b"]], images=["a.jpg"]))


def test_a_store_that_cannot_be_written_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "file"))
    with pytest.warns(CaplensWarning, match="nothing can be kept in"):
        assert score(Length()) == 3.0
    with pytest.warns(CaplensWarning, match="nothing can be kept in"):
        assert stored_array(Identity.of("x"), lambda: np.ones(1)).tolist() == [1.0]


def test_changed_scores_are_computed_again(tmp_path: Path) -> None:
    before = score(Length())
    (path,) = (tmp_path / "cache" / "bench").glob("*.npz")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(CaplensWarning, match="was damaged; it is made anew"):
        assert not is_stored(Length(), CAPTIONS)
    assert score(Length()) == before
    assert is_stored(Length(), CAPTIONS)


class Toy(RatingSet):
    """Thirty captions and two columns of ratings."""

    name = title = "toy"
    what = protocol = license = home = paper = ""
    files = ()

    def __init__(self, figures: list[AgreementStatistic]) -> None:
        self.figures = figures

    def load(self, data: DataFolders) -> Task:
        captions = CaptionSet.of(
            [" ".join(["dog"] * (1 + number % 7) + ["cat"] * (number % 3)) for number in range(30)],
            [["dog dog dog cat"]] * 30,
        )
        return Task([captions], 30, self.figures, "")


def measure(figures: list[AgreementStatistic], *metrics: Metric) -> SetReport:
    return run([Toy(figures)], metrics, DataFolders([]), resamples=200, permutations=0)["toy"]


def test_intervals_of_metrics_that_count_the_same_things_are_their_own() -> None:
    """All BLEUs are made of the same counts; each once had the interval of whichever came first."""
    report = measure([CorpusStatistic(key="score", trial=0, rows=30)], Bleu1(), Bleu4())
    for row in report.measured:
        assert row.estimate.low <= row.estimate.value <= row.estimate.high
    assert len({row.estimate.low for row in report.measured}) == 2


def test_intervals_of_means_of_two_kinds_of_correlation_are_their_own() -> None:
    random = np.random.default_rng(0)
    columns = [np.arange(30) % 7 + random.normal(0, 1, 30).round() for _ in range(2)]
    figures: list[AgreementStatistic] = [
        MeanStatistic(
            key=kind,
            parts=tuple(
                RatingStatistic(
                    key=f"{kind} {number}",
                    kind=kind,
                    rows=np.arange(30),
                    ratings=column,
                    units=np.arange(30, dtype=np.int32),
                )
                for number, column in enumerate(columns)
            ),
        )
        for kind in ("tau-b", "spearman")
    ]
    tau, spearman = measure(figures, Length()).measured
    assert spearman.estimate.low > tau.estimate.low
    assert spearman.estimate.low <= spearman.estimate.value <= spearman.estimate.high
