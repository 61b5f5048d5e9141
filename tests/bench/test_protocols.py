"""Our own metrics on the real sets give the figures that the official tools give under the same protocol."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caplens.bench.base import find_sets
from caplens.bench.data import DataFolders
from caplens.bench.results import BenchReport
from caplens.bench.run import run
from caplens.bench.statistics import Scored, Trial
from caplens.metrics import load_metric, load_metrics

pytestmark = pytest.mark.shared

# Figures of pycocoevalcap 1.2 under the protocols of the sets; ours may be 0.02 away.
PROTOCOL_TABLE = {
    ("flickr8k-expert", "tau-c"): {"bleu-4": 30.776, "rouge-l": 32.314, "cider-d": 43.891},
    ("flickr8k-cf", "tau-b"): {"bleu-4": 16.863, "rouge-l": 19.903, "cider-d": 24.619},
    ("composite", "tau-c"): {"bleu-4": 30.58, "rouge-l": 32.45, "cider-d": 37.69},
}
THUMB = {"rouge-l": 0.314, "cider-d": 0.334}


@pytest.fixture(scope="module")
def folders(shared: Path) -> DataFolders:
    return DataFolders([shared / "data"])


@pytest.fixture(scope="module", autouse=True)
def _own_store(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAPLENS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def report(folders: DataFolders) -> BenchReport:
    names = ["flickr8k-expert", "flickr8k-cf", "composite", "thumb"]
    metrics = load_metrics(["bleu-4", "rouge-l", "cider-d"], {})
    return run(find_sets(names), metrics, folders, resamples=0, permutations=0)


@pytest.mark.parametrize(("name", "figure"), PROTOCOL_TABLE)
def test_protocol_table(report: BenchReport, name: str, figure: str) -> None:
    for metric, expected in PROTOCOL_TABLE[name, figure].items():
        assert report[name].value(figure, metric) == pytest.approx(expected, abs=0.02), metric


def test_thumb_without_human_captions(report: BenchReport) -> None:
    for metric, expected in THUMB.items():
        value = report["thumb"].value("pearson total, without human", metric)
        assert value == pytest.approx(expected, abs=0.001), metric


def test_meteor_and_the_others_from_the_official_scores(shared: Path, folders: DataFolders) -> None:
    """The protocol alone, on scores that the official tools gave to the rows of the same file."""
    expected = {"bleu4": 30.776, "rouge": 32.314, "meteor": 41.822, "cider": 43.891}
    stored = np.load(shared / "golden" / "flickr8k_expert.scores.npz")
    task = find_sets(["flickr8k-expert"])[0].load(folders)
    everything = np.ones((1, task.units), dtype=np.int32)
    for key, value in expected.items():
        scores = np.asarray(stored[key], dtype=np.float64)
        scored = Scored(load_metric("length"), [Trial(scores, scores.reshape(-1, 1), key)])
        assert 100 * task.figures[0].resampled(scored, everything)[0] == pytest.approx(value, abs=0.001)


def test_text_files_and_json_files_hold_the_same_expert_rows(shared: Path, tmp_path: Path) -> None:
    for name in ("ExpertAnnotations.txt", "Flickr8k.token.txt"):
        (tmp_path / name).symlink_to(shared / "data" / "flickr8k" / name)
    expert = find_sets(["flickr8k-expert"])[0]
    from_text = expert.load(DataFolders([tmp_path])).trials[0]
    from_json = expert.load(DataFolders([shared / "data" / "flickr8k"])).trials[0]
    assert from_text.candidates == from_json.candidates
    assert [sorted(texts) for texts in from_text.references or []] == [
        sorted(texts) for texts in from_json.references or []
    ]


def test_pascal_and_abstract_reproduce_what_is_in_print(folders: DataFolders) -> None:
    report = run(find_sets(["pascal50s"]), load_metrics(["rouge-l"], {}), folders, resamples=0, permutations=0)
    for name in ("pascal-50s-consensus", "pascal-50s-pairs"):
        assert all(row.status == "reproduced" for row in report[name].measured), name
