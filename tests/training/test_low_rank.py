"""Layers tuned by additions of low rank: the same as the numpy tower before and after, and only these are learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caplens.core.types import Vectors, narrow_unit
from caplens.encoders.bert import BertEncoder

from ..encoders.tiny_bert import write_tiny_model

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from caplens.training.low_rank import TunableLayers  # noqa: E402

TEXTS = ["a dog runs on the grass .", "two cats", "The red ball, in grass"]
LAYERS, RANK = 2, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "bert", "bert")


def states(tower: BertEncoder, layer: int | None = None) -> list[Vectors]:
    return tower.states(tower.tokenize(TEXTS), layer)


def means(tower: BertEncoder) -> Vectors:
    return narrow_unit(np.stack([matrix.mean(axis=0) for matrix in states(tower)]))


def test_untrained_additions_change_nothing(folder: Path) -> None:
    tower = BertEncoder(folder)
    layers = TunableLayers(tower, LAYERS, RANK).eval()
    vectors = layers(states(tower, tower.layers - LAYERS)).detach().numpy()
    np.testing.assert_allclose(vectors, means(tower), atol=2e-5)


def test_trained_additions_give_the_same_vectors_in_the_tower_without_torch(folder: Path) -> None:
    tower = BertEncoder(folder)
    torch.manual_seed(0)
    layers = TunableLayers(tower, LAYERS, RANK)
    inputs = states(tower, tower.layers - LAYERS)
    optimizer = torch.optim.AdamW(layers.parameters(), lr=0.05)
    goal = torch.nn.functional.normalize(torch.randn(len(TEXTS), tower.width), dim=-1)
    losses = []
    for _ in range(20):
        loss = (layers(inputs) - goal).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    tuned = BertEncoder(folder, {name: tensor.numpy() for name, tensor in layers.additions().items()})
    np.testing.assert_allclose(layers.eval()(inputs).detach().numpy(), means(tuned), atol=2e-5)
    assert np.abs(means(tuned) - means(tower)).max() > 0.01
    np.testing.assert_array_equal(states(tuned, tower.layers - LAYERS)[0], inputs[0])  # lower layers stay


def test_only_additions_are_learned_and_kept(folder: Path) -> None:
    tower = BertEncoder(folder)
    layers = TunableLayers(tower, LAYERS, RANK)
    names = {name.rsplit(".", 1)[-1] for name, _ in layers.named_parameters()}
    assert names == {"up", "down"} == {name.rsplit(".", 1)[-1] for name in layers.state_dict()}
    numbers = {name.split(".")[0] for name in layers.additions()}
    assert numbers == {str(number) for number in range(tower.layers - LAYERS, tower.layers)}
