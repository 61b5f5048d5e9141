"""nneval: the released network, the shipped one, and what goes into them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caplens
from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning, InputError, MissingData
from caplens.core.workspace import Workspace
from caplens.metrics.nneval import FEATURES, NNEval, load_network, nneval_features


def released_formula(arrays: dict[str, np.ndarray], features: np.ndarray) -> np.ndarray:
    """Two ReLU layers and a softmax over {machine, human}, as the released script has them."""
    hidden = np.maximum(features @ arrays["hiddenlayer__layer1__W1"] + arrays["hiddenlayer__layer1__b1"], 0)
    hidden = np.maximum(hidden @ arrays["hiddenlayer__layer2__W2"] + arrays["hiddenlayer__layer2__b2"], 0)
    out = hidden @ arrays["out_layer__out__W_out"] + arrays["out_layer__out__b_out"]
    powers = np.exp(out - out.max(axis=1, keepdims=True))
    return np.asarray(powers[:, 1] / powers.sum(axis=1))


@pytest.mark.shared
def test_released_weights_give_released_probabilities(shared: Path) -> None:
    path = shared / "data" / "nneval" / "released_weights.npz"
    features = np.random.default_rng(0).random((500, 8)) * [1, 1, 1, 1, 1, 1, 1, 0.4]
    with np.load(path) as arrays:
        expected = released_formula({name: arrays[name].astype(float) for name in arrays}, features)
    assert load_network(path)(features) == pytest.approx(expected, abs=1e-6)
    assert expected.std() > 0.01


def random_variables() -> dict[str, np.ndarray]:
    random = np.random.default_rng(4)
    shapes = {"hiddenlayer/layer1": (8, 72, "1"), "hiddenlayer/layer2": (72, 72, "2"), "out_layer/out": (72, 2, "_out")}
    made = {}
    for scope, (rows, columns, name) in shapes.items():
        made[f"{scope}/W{name}"] = random.normal(0, 0.3, (rows, columns)).astype(np.float32)
        made[f"{scope}/b{name}"] = random.normal(0, 0.3, columns).astype(np.float32)
    return made


def test_released_network_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="nneval-released"):
        NNEval(weights="released").signature_parts()
    folder = tmp_path / "weights" / "nneval-released"
    folder.mkdir(parents=True)
    variables = random_variables()
    arrays: dict[str, Any] = {name.replace("/", "__"): array for name, array in variables.items()}
    np.savez(folder / "model.npz", **arrays)
    features = np.random.default_rng(0).random((50, 8))
    expected = released_formula(arrays, features)
    assert load_network(folder / "model.npz")(features) == pytest.approx(expected, abs=1e-6)
    (named, ours) = (dict(NNEval(weights=name).signature_parts()) for name in ("released", "default"))
    assert named["weights"].startswith("model@")
    assert (named["scaled"], ours["scaled"]) == ("no", "min-max")


def test_foreign_weights_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", other=np.ones(3))
    with pytest.raises(InputError, match="docs/metrics/nneval"):
        load_network(tmp_path / "x.npz")
    with pytest.raises(InputError, match="no weights here"):
        NNEval(weights=tmp_path / "none.safetensors").signature_parts()


@pytest.fixture(scope="module")
def work() -> Workspace:
    candidates = ["a dog runs on the grass", "a bus", "two people ride bikes down a street"]
    references = [
        ["a brown dog runs over grass", "the dog is running"],
        ["a dog runs on the grass", "a brown dog"],
        ["two people riding bikes on a road", "a couple on bicycles"],
    ]
    made = Workspace(CaptionSet.of(candidates, references))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CaplensWarning)
            made.get_or_compute("features", lambda: nneval_features(made))
    except MissingData as missing:
        pytest.skip(str(missing))
    return made


def test_features_are_the_metrics_in_the_released_order(work: Workspace) -> None:
    features: np.ndarray = work.get_or_compute("features", lambda: np.zeros(0))
    assert features.shape == (3, len(FEATURES))
    captions = work.captions
    for column, name in enumerate(["meteor", "wmd", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "spice"]):
        scores = caplens.evaluate(captions.candidates, captions.references, metrics=[name])[name].scores
        assert features[:, column] == pytest.approx(scores)
    assert (features[:, 7] < 1).all()
    assert features[0, 7] > features[1, 7]


def test_scores_are_probabilities_with_reasons(work: Workspace) -> None:
    result = NNEval().result(work)
    assert ((result.scores > 0) & (result.scores < 1)).all()
    assert result.scores[0] > result.scores[1]
    assert result.details is not None
    entries = result.details[0]["contributions"]
    assert {entry["name"] for entry in entries} == set(FEATURES)
    assert "weights:nneval@" in result.signature
