"""Training of the composite: its captions, and that training learns and repeats itself."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError, MissingData
from caplens.metrics._mlp import FeatureMLP
from caplens.metrics.caplens_score import FEATURES, PICTURE
from caplens.training import composite
from caplens.training.composite import CompositeConfig
from caplens.training.composite.data import Collection, Trial, machine_trial, people_trial
from caplens.training.composite.model import HonestCaptions, fit_meaning, fit_picture, fit_well_formedness
from caplens.training.gamed import CORRUPTIONS

HUMAN = {f"{n}": [f"person {place} saw {n}" for place in range(5)] for n in range(40)}


def test_composite_trials_hold_right_and_wrong_captions() -> None:
    config = CompositeConfig(images=30)
    nearest = np.array([[*(other for other in range(40) if other != own), own] for own in range(30)])
    collection = Collection(HUMAN, list(HUMAN)[:30], nearest)
    people = people_trial(collection, config)
    assert people.right.sum() == 30
    assert people.weights()[people.right].sum() == pytest.approx(0.5)
    assert people.weights().sum() == pytest.approx(1)
    assert people.captions.references is not None
    for candidate, references, image, source in zip(
        people.captions.candidates, people.captions.references, people.images, people.sources, strict=True
    ):
        assert candidate in HUMAN[source]
        assert set(references) <= set(HUMAN[image])
        assert candidate not in references
    # A picture whose captions are used often weighs no more in sum than one whose captions are used once.
    sums: dict[str, float] = {}
    for source, right, weight in zip(people.sources, people.right, people.weights(), strict=True):
        if not right:
            sums[source] = sums.get(source, 0) + weight
    assert max(sums.values()) == pytest.approx(min(sums.values()))
    assert machine_trial(collection, {}, config) is None
    machines = machine_trial(collection, {name: [f"machine saw {name}"] for name in HUMAN}, config)
    assert machines is not None
    assert machines.right.sum() == 30
    assert people_trial(collection, config).captions == people.captions


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
    background = {f"usual {n}": [f"a {one} stands near a tree"] * 5 for n, one in enumerate(who)}
    config = CompositeConfig(images=22, gamed=8, folds=3)
    try:
        first = composite.train([human], {}, background, None, tmp_path / "first", config)
    except MissingData as missing:
        pytest.skip(str(missing))
    second = composite.train([human], {}, background, None, tmp_path / "second", config)
    assert first["weights"] == str(tmp_path / "first" / "caplens.safetensors")
    assert {**first, "weights": ""} == {**second, "weights": ""}
    one, other = (FeatureMLP.load(result["weights"]) for result in (first, second))
    assert np.array_equal(one.layers[0][0], other.layers[0][0])
    assert np.array_equal(one.extra["bank"], other.extra["bank"])
    assert first["feature weights"] == dict(zip(FEATURES, one.layers[0][0][:, 0].tolist(), strict=True))
    assert (one.layers[0][0] >= 0).all()
    assert first["feature weights"][PICTURE] == 0  # no picture was there
    curve = [json.loads(line) for line in (tmp_path / "first" / "curve.jsonl").read_text().splitlines()]
    assert [point["pictures"] for point in curve] == [22]
    assert (tmp_path / "first" / "curve.png").stat().st_size > 1000
    with pytest.raises(InputError, match="another configuration"):
        composite.train([human], {}, background, None, tmp_path / "first", dataclasses.replace(config, seed=2))


def test_composite_learns_well_formedness() -> None:
    """Gamed captions lead in meaning; two features of form give them all away, honest ones often lack the first."""
    random = np.random.default_rng(1)
    logits = np.tile([0.0, 1, 1, 1, 1, 1], 50)
    form = np.zeros((300, 3))
    form[np.arange(300) % 6 > 0, :2] = -1
    form[:, 2] = random.normal(0, 0.1, 300)
    right = np.repeat([1.0, 0], 100)
    honest = HonestCaptions(2 * right - 1, np.zeros((200, 3)), right, np.full(200, 1 / 200))
    honest.form[:60, 0] = -1
    wins = []
    for given_up in (0.0, 0.04):
        weights = fit_well_formedness(logits, form, honest, CompositeConfig(given_up=given_up))
        assert (weights >= 0).all()
        scores = (logits + form @ weights).reshape(50, 6)
        wins.append((scores[:, :1] > scores[:, 1:]).mean(axis=0).min())
    # No more than is enough, a little over the lead of 1 that gamed captions have, from the feature that costs less.
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
