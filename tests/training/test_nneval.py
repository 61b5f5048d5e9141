"""Training of NNEval: its set, and that training learns, resumes and repeats itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.metrics._mlp import FeatureMLP
from caplens.storage.identity import Identity
from caplens.training.run import TrainingRun

pytest.importorskip("torch")

from caplens.training import nneval
from caplens.training.nneval import NNEvalConfig, RatedCaptions, fit, read_rated_captions, training_set

HUMAN = {f"image {n}": [f"person {place} saw {n}" for place in range(5)] for n in range(6)}
MACHINE = {f"image {n}": [f"machine {place} saw {n}" for place in range(4)] for n in range(6)}


def test_nneval_set_is_the_papers() -> None:
    captions, labels = training_set(HUMAN, MACHINE, NNEvalConfig())
    assert labels.sum() * 2 == len(labels) == 36
    assert captions.references is not None
    for candidate, references, label in zip(captions.candidates, captions.references, labels, strict=True):
        assert len(set(references)) == 4
        assert candidate not in references
        assert candidate.startswith("person") == bool(label)
        assert {text.split()[-1] for text in references} == {candidate.split()[-1]}
    assert training_set(HUMAN, MACHINE, NNEvalConfig())[0] == captions
    assert training_set(HUMAN, MACHINE, NNEvalConfig(seed=2))[0] != captions


def learn(folder: Path, config: NNEvalConfig) -> tuple[FeatureMLP, np.ndarray]:
    """Captions by people have more of every feature; ratings follow the first one."""
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1], 60).astype(np.float32)
    features = random.normal(labels[:, None] * 1.5, 1, size=(120, 8))
    judged = random.normal(0.7, 1, size=(40, 8))
    network = fit(features, labels, judged, judged.mean(axis=1), TrainingRun(folder, {}), config)
    return network, network(judged)


def test_nneval_learns_resumes_and_repeats_itself(tmp_path: Path) -> None:
    config = NNEvalConfig(learning_rate=0.01, epochs=6)
    _, whole = learn(tmp_path / "whole", config)
    curve = TrainingRun(tmp_path / "whole", {}).points()
    assert curve[-1]["cross_entropy"] < curve[0]["cross_entropy"]
    assert max(point["kendall"] for point in curve) > 0.5
    learn(tmp_path / "parts", dataclasses.replace(config, epochs=3))
    assert np.array_equal(learn(tmp_path / "parts", config)[1], whole)


def test_monotone_nneval_never_falls_and_has_a_floor(tmp_path: Path) -> None:
    config = NNEvalConfig(learning_rate=0.01, epochs=6, monotone=True)
    network = learn(tmp_path, config)[0]
    assert all((weight >= 0).all() for weight, _ in network.layers)
    low = network(np.random.default_rng(1).uniform(-9, -8, size=(20, 8)))
    assert np.unique(low).size == 1
    assert (network(np.full((1, 8), 3.0)) > low[0]).all()


def test_rated_captions_are_read_row_by_row(tmp_path: Path) -> None:
    rated = tmp_path / "r.jsonl"
    rated.write_text('{"caption": "a", "references": ["b"], "rating": 3}\n{"caption": "a"}\n')
    with pytest.raises(InputError, match="row 2"):
        read_rated_captions(rated)


def test_it_is_not_resumed_with_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    random = np.random.default_rng(0)
    monkeypatch.setattr(nneval, "nneval_features", lambda work: random.random((len(work.captions), 8)))
    monkeypatch.setattr(nneval, "features_identity", lambda: Identity.of("toy"))
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    config = NNEvalConfig(epochs=2)
    rated = RatedCaptions(CaptionSet.of(["a", "b", "c"], [["a"]] * 3), np.array([1.0, 2.0, 3.0]))
    result = nneval.train(HUMAN, MACHINE, rated, tmp_path / "run", config)
    assert result == nneval.train(HUMAN, MACHINE, rated, tmp_path / "run", config)
    assert Path(result["weights"]).is_file()
    others = {name: [f"other {text}" for text in texts] for name, texts in MACHINE.items()}
    for machine, ratings in ((others, rated.ratings), (MACHINE, rated.ratings[::-1])):
        with pytest.raises(InputError, match="another configuration"):
            nneval.train(HUMAN, machine, RatedCaptions(rated.captions, ratings), tmp_path / "run", config)


def test_what_cannot_be_trained_on_is_named(tmp_path: Path) -> None:
    rated = RatedCaptions(CaptionSet.of(["a"], [["a"]]), np.array([1.0]))
    with pytest.raises(InputError, match="no feature 'BLEU'; it has METEOR"):
        nneval.train(HUMAN, MACHINE, rated, tmp_path, leave_out=["BLEU"])
    with pytest.raises(InputError, match="no image has five captions by people and one by a machine"):
        nneval.train(HUMAN, {}, rated, tmp_path)
