"""caplens cannot be gamed: honest captions win against captions that try to please a metric."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import caplens
from caplens.errors import CaplensWarning, MissingData
from caplens.metrics.composite import FEATURES, load_network
from caplens.training.corruptions import CORRUPTIONS
from caplens.weights import shipped

IMAGES = 60


def scores(candidates: list[str], references: list[list[str]]) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CaplensWarning)
            return caplens.evaluate(candidates, references, metrics=["caplens"])["caplens"].scores
    except MissingData as missing:
        pytest.skip(str(missing))


@pytest.mark.shared
def test_gamed_captions_lose(shared: Path) -> None:
    """Pictures of the test split, none of which the training has seen."""
    images = json.loads((shared / "data/coco/coco_captions.json").read_text())
    texts = [image["captions"] for _, image in sorted(images.items()) if image["split"] == "test"][:IMAGES]
    random = np.random.default_rng(11)
    candidates, references = [], []
    for honest, *others in texts:
        candidates += [honest, *(corrupt(honest, others[:4], random) for corrupt in CORRUPTIONS.values())]
        references += [others[:4]] * (1 + len(CORRUPTIONS))
    table = scores(candidates, references).reshape(len(texts), -1)
    lost = (table[:, 1:] < table[:, :1]).mean(axis=0)
    assert dict(zip(CORRUPTIONS, lost, strict=True)) == {name: pytest.approx(1, abs=0.05) for name in CORRUPTIONS}


def test_shipped_weights_are_monotone() -> None:
    network = load_network(shipped("caplens"))
    assert network.features == FEATURES
    assert all((weight >= 0).all() for weight, _ in network.layers)


def test_score_is_between_0_and_1_and_the_captions_own() -> None:
    candidates = ["a dog runs on the grass", "a red bus", ""]
    references = [["a brown dog runs over grass", "the dog is running"]] * 3
    together = scores(candidates, references)
    assert ((together > 0) & (together < 1)).all()
    assert together[0] > together[1] > together[2]
    alone = [scores([candidate], [each])[0] for candidate, each in zip(candidates, references, strict=True)]
    assert together == pytest.approx(alone, abs=1e-6)
