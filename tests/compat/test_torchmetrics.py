"""Metrics of torchmetrics give what one evaluation gives, in batches, copies and processes."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caplens
from caplens.core.errors import InputError, MissingData
from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric, Statistics
from caplens.readers.media import BytesMedia
from caplens.vision.images import read_media

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")
from caplens.compat.torchmetrics import BleuScore, CaptionMetric, CiderD, CiderR, RougeL  # noqa: E402

CANDIDATES = ["a cat on a mat", "two dogs run", "a bird\nand “snow” \ud83d"]
REFERENCES = [["a cat on the mat", "the cat"], ["two dogs"], ["one bird flies"]]


class Pictures(Metric):
    """How many bytes the pictures have."""

    name, needs, paper, summary = "pictures", frozenset({"image"}), "", ""

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(
            np.array([[float(len(read_media(picture)))] for picture in work.captions.images or () if picture])
        )


def of(name: str, rows: slice = slice(None)) -> float:
    return caplens.evaluate(CANDIDATES[rows], REFERENCES[rows], metrics=[name])[name].score


@pytest.mark.parametrize(
    ("metric", "name"), [(BleuScore(2), "bleu-2"), (RougeL(), "rouge-l"), (CiderD(), "cider-d"), (CiderR(), "cider-r")]
)
def test_batches_add_up_to_one_evaluation(metric: CaptionMetric, name: str) -> None:
    assert isinstance(metric, torchmetrics.Metric)
    whole = caplens.evaluate(CANDIDATES, REFERENCES, metrics=[name])[name]
    for _ in range(2):
        metric.update(CANDIDATES[:1], REFERENCES[:1])
        metric.update(CANDIDATES[1:], REFERENCES[1:])
        assert metric.compute().item() == whole.score
        assert metric.scores.tolist() == whole.scores.tolist()
        assert metric.result().signature == whole.signature
        for copied in (pickle.loads(pickle.dumps(metric)), metric.clone(), metric.to("cpu")):
            assert copied.compute().item() == whole.score
        metric.reset()


@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
def test_calling_returns_the_batch_and_keeps_the_rest() -> None:
    metric = CiderD(sigma=5.0)
    values = [metric(CANDIDATES[rows], REFERENCES[rows]).item() for rows in (slice(0, 2), slice(2, 3))]
    expected = [
        caplens.evaluate(CANDIDATES[rows], REFERENCES[rows], metrics=["cider-d"], sigma=5.0)["cider-d"].score
        for rows in (slice(0, 2), slice(2, 3), slice(None))
    ]
    assert [*values, metric.compute().item()] == expected
    assert metric.higher_is_better


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_states_are_saved_and_loaded() -> None:
    metric, fresh = CiderR(), CiderR()
    metric.persistent(True)
    fresh.persistent(True)
    metric.update(CANDIDATES, REFERENCES)
    stored = io.BytesIO()
    torch.save(metric.state_dict(), stored)
    stored.seek(0)
    fresh.load_state_dict(torch.load(stored, weights_only=True))
    assert fresh.compute().item() == of("cider-r")


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_another_type_of_numbers_leaves_the_text_alone(kind: Any) -> None:
    metric = RougeL()
    metric.update(CANDIDATES, REFERENCES)
    assert metric.set_dtype(kind).compute().item() == of("rouge-l")


def test_a_collection_shares_the_captions() -> None:
    metrics = torchmetrics.MetricCollection({"cider": CiderD(), "rouge": RougeL()})
    metrics.update(CANDIDATES[:2], REFERENCES[:2])
    metrics.update(CANDIDATES[2:], REFERENCES[2:])
    assert {name: value.item() for name, value in metrics.compute().items()} == {
        "cider": of("cider-d"),
        "rouge": of("rouge-l"),
    }
    assert len(metrics.compute_groups) == 1


def test_pictures_may_be_paths_or_bytes(tmp_path: Path) -> None:
    data = b"not a picture"
    (tmp_path / "a.jpg").write_bytes(data)
    metric = CaptionMetric(Pictures())
    metric.update(["a", "b", "c"], images=[tmp_path / "a.jpg", BytesMedia("b.jpg", data), str(tmp_path / "a.jpg")])
    assert metric.clone().compute().item() == len(data)


def test_mistakes_are_refused_where_they_are_made() -> None:
    metric = CaptionMetric("bleu-1")
    with pytest.raises(InputError, match="1 target for 2 preds"):
        metric.update(["a", "b"], [["a"]])
    with pytest.raises(InputError, match=r"preds is one string; put it into a list: preds=\['ab'\]"):
        metric.update("ab", "xy")
    with pytest.raises(InputError, match="target is one string"):
        metric.update(["a", "b"], "xy")
    with pytest.raises(InputError, match="candidate must be a string, not int"):
        metric.update([1, 2], [["a"], ["b"]])  # type: ignore[list-item]
    assert metric.rows == []


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_nothing_given_is_what_the_message_says() -> None:
    with pytest.raises(InputError, match="bleu-1: no captions were given"):
        CaptionMetric("bleu-1").compute()
    metric = CaptionMetric("bleu-1")
    metric.update([], [])
    with pytest.raises(InputError, match="no captions were given"):
        metric.compute()
    metric.update(["a"])
    with pytest.raises(MissingData, match="bleu-1 compares with references"):
        metric.compute()


RANK = """
import json, sys
import torch.distributed as dist
from caplens.compat.torchmetrics import CiderD, BleuScore

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
rows = json.load(open(sys.argv[3]))
for shares in ((rows[:2], rows[2:]), (rows, [])):
    metrics = [CiderD(), BleuScore(2)]
    for metric in metrics:
        for caption, references in shares[rank]:
            metric.update([caption], [references])
    computed = [metric.compute().item() for metric in metrics]
    metrics[0].sync()
    synced = metrics[0]._result().score
    metrics[0].unsync()
    held = sum(len(part) > 0 for part in metrics[0].rows)
    print(json.dumps([computed, metrics[0].scores.tolist(), synced, held]))
dist.destroy_process_group()
"""


def test_two_processes_equal_one_even_if_one_has_nothing(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps(list(zip(CANDIDATES, REFERENCES, strict=True))))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    files = [str(tmp_path / "meeting point"), str(tmp_path / "rows.json")]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", RANK, str(rank), *files], stdout=subprocess.PIPE, env=environment
        )
        for rank in range(2)
    ]
    answers = [[json.loads(line) for line in rank.communicate(timeout=300)[0].splitlines()] for rank in ranks]
    whole = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["cider-d", "bleu-2"])
    cider, bleu = whole["cider-d"], whole["bleu-2"]
    everything = [[cider.score, bleu.score], cider.scores.tolist(), cider.score]
    assert answers == [[[*everything, 2], [*everything, 3]], [[*everything, 1], [*everything, 0]]]
