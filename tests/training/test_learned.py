"""Training of nneval and of the composite: their sets, and that training learns, resumes and repeats itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from caplens.errors import InputError
from caplens.training.config import read_config
from caplens.training.corruptions import CORRUPTIONS
from caplens.training.nneval import NNEvalConfig, fit, read_rated, training_set
from caplens.training.run import TrainingRun

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


def learn(folder: Path, config: NNEvalConfig) -> np.ndarray:
    """Captions by people have more of every feature; ratings follow the first one."""
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1], 60).astype(np.float32)
    features = random.normal(labels[:, None] * 1.5, 1, size=(120, 8))
    judged = random.normal(0.7, 1, size=(40, 8))
    return fit(features, labels, judged, judged.mean(axis=1), TrainingRun(folder, {}), config)(judged)


def test_nneval_learns_resumes_and_repeats_itself(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    config = NNEvalConfig(learning_rate=0.01, epochs=6)
    whole = learn(tmp_path / "whole", config)
    curve = TrainingRun(tmp_path / "whole", {}).points()
    assert curve[-1]["cross_entropy"] < curve[0]["cross_entropy"]
    assert max(point["kendall"] for point in curve) > 0.5
    learn(tmp_path / "parts", dataclasses.replace(config, epochs=3))
    assert np.array_equal(learn(tmp_path / "parts", config), whole)


def test_composite_grows_with_every_feature(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from caplens.metrics.composite import FEATURES
    from caplens.training.composite import CompositeConfig
    from caplens.training.composite import fit as fit_composite

    random = np.random.default_rng(0)
    grades = np.tile([0.9, 0.5, 0.1], (40, 1))
    features = random.normal(grades[..., None], 0.3, size=(40, 3, len(FEATURES)))
    config = CompositeConfig(epochs=15)
    network = fit_composite(features, grades, TrainingRun(tmp_path / "a", {}), config)
    assert float(network.about["right_order"]) > 0.9
    rows = features.reshape(-1, len(FEATURES))
    for column in range(len(FEATURES)):
        better = rows.copy()
        better[:, column] += 0.5
        assert (network.logits(better) >= network.logits(rows)).all()
    again = fit_composite(features, grades, TrainingRun(tmp_path / "b", {}), config)
    assert np.array_equal(again(rows), network(rows))


def test_corruptions_change_the_caption() -> None:
    honest, others = "A brown dog runs over the green grass.", ["a dog in a park", "a dog playing"]
    made = {name: corrupt(honest, others, np.random.default_rng(1)) for name, corrupt in CORRUPTIONS.items()}
    assert all(text != honest for text in made.values())
    assert sorted(made["shuffled words"].split()) == sorted(honest.rstrip(".").split())
    assert {"dog", "park", "playing"} <= set(made["list of objects"].replace(",", "").split())
    assert made["over-long caption"].startswith("A brown dog")
    assert len(made["over-long caption"].split()) > 20


def test_settings_and_rated_files(tmp_path: Path) -> None:
    settings = tmp_path / "s.toml"
    settings.write_text("epochs = 3\nlearning_rate = 1\n")
    assert read_config(settings, NNEvalConfig) == NNEvalConfig(epochs=3, learning_rate=1.0)
    for wrong, message in [("epoch = 3", "no setting 'epoch'"), ('batch = "x"', "no int"), ("=", "not a toml file")]:
        settings.write_text(wrong)
        with pytest.raises(InputError, match=message):
            read_config(settings, NNEvalConfig)
    rated = tmp_path / "r.jsonl"
    rated.write_text('{"caption": "a", "references": ["b"], "rating": 3}\n{"caption": "a"}\n')
    with pytest.raises(InputError, match="row 2"):
        read_rated(rated)
