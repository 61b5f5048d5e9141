"""Metrics fed batch by batch give what one evaluation gives."""

from __future__ import annotations

import pickle

import pytest

import caplens
from caplens.compat.torchmetrics import BleuScore, CaptionMetric, CiderD, CiderR, RougeL
from caplens.core.errors import InputError

CANDIDATES = ["a cat on a mat", "two dogs run", "a bird"]
REFERENCES = [["a cat on the mat", "the cat"], ["two dogs"], ["one bird flies"]]


@pytest.mark.parametrize(
    ("metric", "name"), [(BleuScore(2), "bleu-2"), (RougeL(), "rouge-l"), (CiderD(), "cider-d"), (CiderR(), "cider-r")]
)
def test_batches_add_up_to_one_evaluation(metric: CaptionMetric, name: str) -> None:
    whole = caplens.evaluate(CANDIDATES, REFERENCES, metrics=[name])[name]
    for _ in range(2):
        metric.update(CANDIDATES[:1], REFERENCES[:1])
        metric.update(CANDIDATES[1:], REFERENCES[1:])
        assert metric.compute().item() == whole.score
        assert metric.scores.tolist() == whole.scores.tolist()
        assert pickle.loads(pickle.dumps(metric)).compute() == whole.score
        metric.reset()


def test_calling_returns_the_batch_and_keeps_the_rest() -> None:
    metric = CaptionMetric("rouge-l")
    assert metric(["a cat"], ["a cat"]) == 1
    assert metric(["x"], [["y"]]) == 0
    assert metric.compute() == 0.5
    assert metric.higher_is_better


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(InputError, match="1 target for 2 preds"):
        CaptionMetric("bleu-1").update(["a", "b"], [["a"]])
