"""Average precision against a slow twin, and the sets that use it on tiny samples in their published layout."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from caplens.bench.agreement import average_precision, average_precision_swapped
from caplens.bench.base import Task, known_sets
from caplens.bench.data import DataFolders
from caplens.bench.run import run
from caplens.bench.statistics import Scored, Trial
from caplens.core.details import AnyDetails
from caplens.core.errors import InputError
from caplens.core.types import Floats
from caplens.metrics import load_metric


def naive_average_precision(scores: list[float], positive: list[int]) -> float:
    """Sum over thresholds of precision times the gain in recall."""
    total, before = 0.0, 0.0
    for threshold in sorted(set(scores)):
        called = [wrong for score, wrong in zip(scores, positive, strict=True) if score <= threshold]
        recall = sum(called) / sum(positive)
        total += (recall - before) * sum(called) / len(called)
        before = recall
    return total


@pytest.mark.parametrize("seed", range(5))
def test_average_precision_equals_its_definition_in_every_resample(seed: int) -> None:
    random = np.random.default_rng(seed)
    scores: Floats = random.integers(0, 8, 40) / 8  # with ties
    positive = random.integers(0, 2, 40).astype(np.uint8)
    units = np.repeat(np.arange(20), 2).astype(np.int32)
    weights = random.integers(0, 3, (4, 20)).astype(np.int32)
    made = average_precision(scores, positive, units, weights)
    for value, weight in zip(made, weights, strict=True):
        rows = np.repeat(np.arange(40), weight[units])
        assert value == pytest.approx(naive_average_precision(scores[rows].tolist(), positive[rows].tolist()))


def test_swapping_everything_turns_the_difference_round() -> None:
    random = np.random.default_rng(0)
    a, b, positive = random.random(30), random.random(30), random.integers(0, 2, 30).astype(np.uint8)
    masks = np.stack([np.zeros(30), np.ones(30)]).astype(np.uint8)
    one, other = average_precision_swapped(a, b, positive, np.arange(30, dtype=np.int32), masks)
    assert one == pytest.approx(-other)
    assert one == pytest.approx(
        naive_average_precision(a.tolist(), positive.tolist()) - naive_average_precision(b.tolist(), positive.tolist())
    )


HAT = [
    {
        "caption": "A dog's bowl on a mat.",
        "grounding": [["A", False], ["dog's", True], ["bowl", False], ["on", False], ["a", False], ["mat.", True]],
        "references": ["a bowl"],
        "image_path": "one.jpg",
    },
    {"caption": "A cat.", "grounding": [["A", False], ["cat.", False]], "references": ["cat"], "image_path": "two.jpg"},
]
FOIL = [
    {
        "baseline": "A dog and a cat.",
        "foil": "A hot dog and a cat.",
        "references": ["dogs"],
        "image_path": "one.jpg",
        "domain": "out-domain",
    }
]


def load(name: str, folder: Path, content: object) -> Task:
    (folder / f"{name.replace('-', '_')}.json").write_text(json.dumps(content))
    return known_sets()[name].load(DataFolders([folder]))


def values(task: Task, scores: list[float], details: list[AnyDetails] | None) -> dict[str, float]:
    scored = Scored(load_metric("length"), [Trial(np.array(scores), np.array([scores]).T, "toy", details=details)])
    once = np.ones((1, task.units), dtype=np.int32)
    return {figure.key: float(figure.resampled(scored, once)[0]) for figure in task.figures if figure.usable(scored)}


def test_hat_asks_for_marked_words(tmp_path: Path) -> None:
    task = load("hat", tmp_path, HAT)
    words = [{"text": text} for text in ("A", "dog", "'s", "bowl", "on", "a", "mat", ".")]
    scores = {1: 0.1, 3: 0.5, 6: 0.1}
    graded = [
        {**word, "score": scores[place], "status": "right"} if place in scores else word
        for place, word in enumerate(words)
    ]
    flagged = [{**word, "status": "wrong"} if place in (1, 3) else word for place, word in enumerate(words)]
    assert values(task, [0.2, 0.9], [{"words": graded}, {"words": []}]) == {
        "average precision": 1,
        "localization accuracy": 1,
    }
    assert values(task, [0.9, 0.2], [{"words": flagged}, {"words": []}]) == {
        "average precision": 0.5,
        "localization accuracy": 0.5,
    }
    assert values(task, [0.9, 0.2], None) == {"average precision": 0.5}


def test_nocaps_foil_asks_for_the_exchanged_word(tmp_path: Path) -> None:
    task = load("nocaps-foil", tmp_path, FOIL)
    assert task.trials[0].candidates == ["A dog and a cat.", "A hot dog and a cat."]
    details: list[AnyDetails] = [{"words": []}, {"words": [{"text": "hot", "status": "wrong"}, {"text": "dog"}]}]
    assert values(task, [0.2, 0.1], details) == {
        "average precision": 1,
        "localization accuracy": 1,
        "localization accuracy, out-domain": 1,
    }


def test_a_metric_without_words_is_measured_by_its_scores(tmp_path: Path) -> None:
    load("hat", tmp_path, HAT)
    report = run([known_sets()["hat"]], [load_metric("length"), load_metric("chair-i")], DataFolders([tmp_path]))
    measured = {(row.metric, row.figure.key) for row in report.sets[0].measured}
    both = {("chair-i", "average precision"), ("chair-i", "localization accuracy")}
    assert measured == {("length", "average precision"), *both}


@pytest.mark.parametrize(("name", "content"), [("hat", [{"caption": "x"}]), ("nocaps-foil", [{"foil": "x"}])])
def test_a_row_that_lacks_something_is_named(name: str, content: object, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 1"):
        load(name, tmp_path, content)
