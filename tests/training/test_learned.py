"""Training of nneval and of the composite: their sets, and that training learns, resumes and repeats itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError, MissingData
from caplens.metrics._mlp import FeatureMLP
from caplens.metrics.caplens_score import FEATURES, PICTURE
from caplens.storage.identity import Identity
from caplens.training.composite import Honest, fit_manners, fit_meaning, fit_picture, train_composite
from caplens.training.composite_trials import CompositeConfig, Group, Trial, machine_trial, people_trial
from caplens.training.config import read_config
from caplens.training.corruptions import CORRUPTIONS
from caplens.training.nneval import NNEvalConfig, Rated, fit, read_rated, train_nneval, training_set
from caplens.training.trainer import TrainingRun

HUMAN_MANY = {f"{n}": [f"person {place} saw {n}" for place in range(5)] for n in range(40)}
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
    pytest.importorskip("torch")
    config = NNEvalConfig(learning_rate=0.01, epochs=6)
    _, whole = learn(tmp_path / "whole", config)
    curve = TrainingRun(tmp_path / "whole", {}).points()
    assert curve[-1]["cross_entropy"] < curve[0]["cross_entropy"]
    assert max(point["kendall"] for point in curve) > 0.5
    learn(tmp_path / "parts", dataclasses.replace(config, epochs=3))
    assert np.array_equal(learn(tmp_path / "parts", config)[1], whole)


def test_monotone_nneval_never_falls_and_has_a_floor(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    config = NNEvalConfig(learning_rate=0.01, epochs=6, monotone=True)
    network = learn(tmp_path, config)[0]
    assert all((weight >= 0).all() for weight, _ in network.layers)
    low = network(np.random.default_rng(1).uniform(-9, -8, size=(20, 8)))
    assert np.unique(low).size == 1
    assert (network(np.full((1, 8), 3.0)) > low[0]).all()


def test_composite_trials_hold_right_and_wrong_captions() -> None:
    config = CompositeConfig(images=30)
    nearest = np.array([[*(other for other in range(40) if other != own), own] for own in range(30)])
    group = Group(HUMAN_MANY, list(HUMAN_MANY)[:30], nearest)
    people = people_trial(group, config)
    assert people.right.sum() == 30
    assert people.weights()[people.right].sum() == pytest.approx(0.5)
    assert people.weights().sum() == pytest.approx(1)
    assert people.captions.references is not None
    for candidate, references, image, source in zip(
        people.captions.candidates, people.captions.references, people.images, people.sources, strict=True
    ):
        assert candidate in HUMAN_MANY[source]
        assert set(references) <= set(HUMAN_MANY[image])
        assert candidate not in references
    # A picture whose captions are used often weighs no more in sum than one whose captions are used once.
    sums: dict[str, float] = {}
    for source, right, weight in zip(people.sources, people.right, people.weights(), strict=True):
        if not right:
            sums[source] = sums.get(source, 0) + weight
    assert max(sums.values()) == pytest.approx(min(sums.values()))
    assert machine_trial(group, {}, config) is None
    machines = machine_trial(group, {name: [f"machine saw {name}"] for name in HUMAN_MANY}, config)
    assert machines is not None
    assert machines.right.sum() == 30
    assert people_trial(group, config).captions == people.captions


def test_composite_learns_positive_weights() -> None:
    random = np.random.default_rng(0)
    images = [str(number // 3) for number in range(600)]
    sources = [image if number % 3 == 0 else f"not {image}" for number, image in enumerate(images)]
    trial = Trial(CaptionSet.of(["a"] * 600), images, sources)
    features = random.normal(trial.right[:, None] * [2.0, 1.0, 0.0, -1.0], 1, size=(600, 4))
    model = fit_meaning([(trial, features)], CompositeConfig())
    assert model.weights[0] > model.weights[1] > 0.2
    assert model.weights[3] == 0
    assert float(model.about["held_out_right_order"]) > 0.9
    expected, weight = fit_picture(model, [trial], features, features[:, 0] + random.normal(trial.right, 0.5))
    assert weight > 0
    assert expected[0] == pytest.approx(1, abs=0.2)


def test_composite_training_repeats_itself_and_draws_its_curve(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("safetensors")
    who, does = ["man", "dog", "girl", "horse", "boy", "cat"], ["runs", "sleeps", "jumps", "waits"]
    human = {
        f"{one} {act}": [f"a {one} {act} {place}" for place in ("here", "on the grass", "by a road", "again", "today")]
        for one in who
        for act in does
    }
    usual = {f"usual {n}": [f"a {one} stands near a tree"] * 5 for n, one in enumerate(who)}
    config = CompositeConfig(images=22, gamed=8, folds=3)
    try:
        first = train_composite([human], {}, usual, None, tmp_path / "first", config)
    except MissingData as missing:
        pytest.skip(str(missing))
    second = train_composite([human], {}, usual, None, tmp_path / "second", config)
    kept = FeatureMLP.load(tmp_path / "first" / "caplens.safetensors")
    assert first.about == second.about == kept.about
    for made in (second, kept):
        assert np.array_equal(made.layers[0][0], first.layers[0][0])
        assert np.array_equal(made.extra["bank"], first.extra["bank"])
    assert (first.layers[0][0] >= 0).all()
    assert first.layers[0][0][FEATURES.index(PICTURE)] == 0  # no picture was there
    assert [point["pictures"] for point in TrainingRun(tmp_path / "first", _facts(first, config)).points()] == [22]
    assert (tmp_path / "first" / "curve.png").stat().st_size > 1000
    with pytest.raises(InputError, match="another configuration"):
        train_composite([human], {}, usual, None, tmp_path / "first", dataclasses.replace(config, seed=2))


def _facts(network: FeatureMLP, config: CompositeConfig) -> dict[str, object]:
    return {
        **dataclasses.asdict(config),
        **{key: network.about[key] for key in ("images", "captions", "pictures", "data")},
    }


def test_composite_learns_well_formedness() -> None:
    """Gamed captions lead in meaning; two features of form give them all away, honest ones often lack the first."""
    random = np.random.default_rng(1)
    logits = np.tile([0.0, 1, 1, 1, 1, 1], 50)
    behaved = np.zeros((300, 3))
    behaved[np.arange(300) % 6 > 0, :2] = -1
    behaved[:, 2] = random.normal(0, 0.1, 300)
    right = np.repeat([1.0, 0], 100)
    honest = Honest(2 * right - 1, np.zeros((200, 3)), right, np.full(200, 1 / 200))
    honest.behaved[:60, 0] = -1
    wins = []
    for given_up in (0.0, 0.04):
        weights = fit_manners(logits, behaved, honest, CompositeConfig(given_up=given_up))
        assert (weights >= 0).all()
        scores = (logits + behaved @ weights).reshape(50, 6)
        wins.append((scores[:, :1] > scores[:, 1:]).mean(axis=0).min())
    # No more than is enough, a little over the lead of 1 that gamed captions have, and from the manner that costs less.
    assert min(wins) >= 0.96
    assert weights[0] == 0
    assert 1 < weights[1] < 2


def test_corruptions_change_the_caption() -> None:
    honest, others = "A brown dog runs over the green grass.", ["a dog in a park", "a dog playing"]
    made = {name: corrupt(honest, others, np.random.default_rng(1)) for name, corrupt in CORRUPTIONS.items()}
    assert all(text != honest for text in made.values())
    assert sorted(made["shuffled words"].split()) == sorted(honest.rstrip(".").split())
    lists = [CORRUPTIONS["list of objects"](honest, others, np.random.default_rng(seed)) for seed in range(20)]
    assert all("dog" in text for text in lists)  # what all mention is in every list
    assert {3, 7} <= {len(text.replace(",", "").replace(" and", "").split()) for text in lists}
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


def test_nneval_is_not_resumed_with_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    random = np.random.default_rng(0)
    monkeypatch.setattr("caplens.training.nneval.nneval_features", lambda work: random.random((len(work.captions), 8)))
    monkeypatch.setattr("caplens.training.nneval.features_identity", lambda: Identity.of("toy"))
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    config = NNEvalConfig(epochs=2)
    rated = Rated(CaptionSet.of(["a", "b", "c"], [["a"]] * 3), np.array([1.0, 2.0, 3.0]))
    train_nneval(HUMAN, MACHINE, rated, tmp_path / "run", config)
    train_nneval(HUMAN, MACHINE, rated, tmp_path / "run", config)
    others = {name: [f"other {text}" for text in texts] for name, texts in MACHINE.items()}
    for machine, ratings in ((others, rated.ratings), (MACHINE, rated.ratings[::-1])):
        with pytest.raises(InputError, match="another configuration"):
            train_nneval(HUMAN, machine, Rated(rated.captions, ratings), tmp_path / "run", config)
