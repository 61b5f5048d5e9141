"""The small network: values, slopes, explanations and its file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from caplens.core.errors import InputError
from caplens.metrics._mlp import Contributions, FeatureMLP, logistic


@pytest.fixture
def network() -> FeatureMLP:
    random = np.random.default_rng(4)
    sizes = [(3, 6), (6, 5), (5, 1)]
    layers = tuple((random.normal(size=size), random.normal(size=size[1])) for size in sizes)
    return FeatureMLP(("a", "b", "c"), layers, np.array([0.0, -1, 2]), np.array([1.0, 1, 6]), np.array([0.5, 0.2, 3]))


def by_hand(network: FeatureMLP, row: np.ndarray) -> float:
    """One caption, written out."""
    values = [2 * (x - low) / (high - low) - 1 for x, low, high in zip(row, network.low, network.high, strict=True)]
    for place, (weight, bias) in enumerate(network.layers):
        sums = [sum(v * weight[i, j] for i, v in enumerate(values)) + bias[j] for j in range(len(bias))]
        values = sums if place == len(network.layers) - 1 else [max(0.0, s) for s in sums]
    return float(1 / (1 + np.exp(-values[0])))


def test_scores_and_explanations(network: FeatureMLP) -> None:
    rows = np.random.default_rng(0).normal(1, 1, size=(20, 3))
    scores = network(rows)
    assert scores == pytest.approx([by_hand(network, row) for row in rows], abs=1e-12)
    shares = network.contributions(rows, steps=2000)
    usual = network(network.usual[None])[0]
    assert shares.sum(axis=1) == pytest.approx(scores - usual, abs=2e-3)
    details = Contributions(network, rows)
    assert len(details[:3]) == 3
    assert {entry["name"] for entry in details[0]["contributions"]} == {"a", "b", "c"}
    sizes = [abs(entry["share"]) for entry in details[5]["contributions"]]
    assert sizes == sorted(sizes, reverse=True)


def test_slopes_are_slopes(network: FeatureMLP) -> None:
    rows = np.random.default_rng(1).normal(1, 1, size=(30, 3))
    step = 1e-6
    for column in range(3):
        moved = rows.copy()
        moved[:, column] += step
        slopes = (network(moved) - network(rows)) / step
        assert network._gradient(rows)[:, column] == pytest.approx(slopes, abs=1e-4)


def test_extreme_values_do_not_overflow() -> None:
    with np.errstate(over="raise"):
        assert logistic(np.array([-1e4, 0.0, 1e4])).tolist() == [0.0, 0.5, 1.0]


def test_the_same_network_makes_the_same_file(network: FeatureMLP, tmp_path: Path) -> None:
    told = dataclasses.replace(network, about={name: name for name in "abcdefgh"})
    for number in range(5):
        told.save(tmp_path / str(number))
    assert len({(tmp_path / str(number)).read_bytes() for number in range(5)}) == 1
    assert FeatureMLP.load(tmp_path / "0").about == told.about


def test_file(network: FeatureMLP, tmp_path: Path) -> None:
    network.about["seed"] = "3"
    network.save(tmp_path / "n.safetensors")
    again = FeatureMLP.load(tmp_path / "n.safetensors")
    rows = np.ones((2, 3))
    assert np.array_equal(again(rows), network(rows))
    assert (again.features, again.about) == (network.features, {"seed": "3"})
    (tmp_path / "other.safetensors").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not the weights"):
        FeatureMLP.load(tmp_path / "other.safetensors")
    with pytest.raises(InputError, match="no weights here"):
        FeatureMLP.load(tmp_path / "absent.safetensors")
