"""Training InfoMetIC on a few made-up pictures: what is learned from, that it learns, and that it goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tests.encoders.random_clip import random_encoder

from caplens.core.progress import Progress, silent
from caplens.metrics.infometic.inference import load_model
from caplens.storage import weights
from caplens.text.words import PARSERS, Word
from caplens.training import infometic
from caplens.training.infometic import InfoMeticConfig
from caplens.training.infometic.data import (
    frequent_words,
    mentioned_regions,
    replace_word,
)
from caplens.training.infometic.losses import pearson_loss, reference_similarity
from caplens.training.infometic.regions import pack_regions, unpack_regions
from caplens.training.infometic.tensors import nearest, principal_projection
from caplens.vision.regions import Regions

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 40), "blue": (30, 40, 220), "white": (240, 240, 240)}
THINGS = ("cat", "dog", "man")
TINY = InfoMeticConfig(
    width=16, batch=4, group=2, neighbors=3, fine_batch=4, steps=6, warm_up=2, validate_every=3, patience=9
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caplens.storage.cache.cache_folder", lambda: tmp_path / "cache")
    needed = ("wordnet-3.0", PARSERS[0])
    if any(weights.find(name) is None for name in needed):
        pytest.skip(f"caplens weights fetch {' '.join(needed)}")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Pictures of one colour with captions that name it; half of them for validation."""
    random = np.random.default_rng(0)
    captions = {}
    for number, (colour, thing) in enumerate((colour, thing) for colour in COLOURS for thing in THINGS):
        noise = random.integers(-25, 25, (24, 24, 3))
        Image.fromarray(np.clip(noise + COLOURS[colour], 0, 255).astype(np.uint8)).save(tmp_path / f"{number}.png")
        texts = [f"a {colour} {thing} on the {colour} grass", f"the {thing}", f"a {colour} {thing}"]
        captions[f"{number}.png"] = {"split": "train" if number % 2 else "val", "captions": texts}
    (tmp_path / "captions.json").write_text(json.dumps(captions))
    return tmp_path


class Named:
    """Two regions with names."""

    name = identity = "named"

    def __call__(self, image: object, image_id: str) -> Regions:
        return Regions.of([[0, 0, 0.5, 1], [0.5, 0, 1, 1]], [0.9, 0.8], ["cat", "person"])


def train(
    data: Path, output: str, config: InfoMeticConfig, monkeypatch: pytest.MonkeyPatch, progress: Progress = silent
) -> dict[str, object]:
    monkeypatch.setattr("caplens.training.infometic.training.load_encoder", lambda name, **_: random_encoder(3))
    monkeypatch.setattr("caplens.training.infometic.training.make_proposer", lambda name: Named())
    return infometic.train(
        data,
        data / "captions.json",
        [],
        data / output,
        config,
        features=data / "features",
        progress=progress,
    )


def test_an_interrupted_training_ends_with_the_same_weights(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(data, "whole", TINY, monkeypatch)
    real = torch.optim.AdamW.step
    steps = []

    def until_the_fifth(self: torch.optim.AdamW, *given: object) -> object:
        steps.append(1)
        if len(steps) == 5:
            raise KeyboardInterrupt
        return real(self)

    monkeypatch.setattr(torch.optim.AdamW, "step", until_the_fifth)
    with pytest.raises(KeyboardInterrupt):
        train(data, "parts", TINY, monkeypatch)
    monkeypatch.setattr(torch.optim.AdamW, "step", real)
    parts = train(data, "parts", TINY, monkeypatch)
    assert Path(str(whole["weights"])).read_bytes() == Path(str(parts["weights"])).read_bytes()
    assert (data / "whole" / "curve.png").is_file()
    loaded = load_model(str(whole["weights"]))
    assert loaded.encoder == random_encoder(3).identity
    assert loaded.fusion.input_width == random_encoder(3).dimension


def test_it_learns_and_every_switch_runs(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(data, "long", replace(TINY, steps=60, validate_every=30), monkeypatch)
    first, last = (json.loads(line) for line in (data / "long" / "curve.jsonl").read_text().splitlines())
    assert last["train"] < first["train"]
    switches: list[dict[str, Any]] = [
        {"hard_textual_negatives": False, "intra_layers": 0},
        {"fine_grained": False, "whole_image": False},
        {"inter_layers": 0, "on_cosine": False},
        {"graded": 0.0, "at_beta": 0.0},
    ]
    for number, switch in enumerate(switches):
        reached = train(data, f"switch{number}", replace(TINY, steps=3, **switch), monkeypatch)
        assert ("words" in reached) == switch.get("fine_grained", True)
        assert ("hard textual negatives" in reached) == switch.get("hard_textual_negatives", True)
        assert ("graded" in reached) == bool(switch.get("graded", True))


def test_it_takes_as_many_steps_as_it_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that is fewer than there are between two validations."""
    reached = train(data, "few", replace(TINY, steps=4, validate_every=100), monkeypatch)
    assert (reached["steps"], reached["best step"]) == (4, 4)
    assert [json.loads(line)["step"] for line in (data / "few" / "curve.jsonl").read_text().splitlines()] == [4]


def test_progress_is_shown_for_every_part(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins with nothing done, so that its bar is there while the first picture or caption is worked on."""
    reports: dict[str, list[tuple[int, int]]] = {}

    def record(task: str, done: int, total: int) -> None:
        reports.setdefault(task, []).append((done, total))

    train(data, "seen", replace(TINY, steps=3), monkeypatch, record)
    assert list(reports) == [
        "tags of words",
        "regions of pictures",
        "vectors of regions",
        "features of captions",
        "vectors of tokens",
        "training InfoMetIC",
    ]
    assert all(steps[0][0] == 0 and steps[-1][0] == steps[-1][1] for steps in reports.values())
    assert [done for done, _ in reports["regions of pictures"]] == [*range(7)] * 2  # train, then val
    assert [done for done, _ in reports["vectors of regions"]] == [*range(7), 6] * 2
    assert [done for done, _ in reports["training InfoMetIC"]] == [0, 1, 2, 3]


def test_a_corrupted_caption_has_one_word_that_no_caption_of_the_picture_uses() -> None:
    words = [Word("a", "DT", False), Word("dog", "NN", True), Word("runs", "VBZ", True)]
    frequent = frequent_words([words, [Word("cat", "NN", True), Word("man", "NN", True)]])
    assert frequent == {"NN": ["cat", "dog", "man"], "VBZ": ["runs"]}
    for seed in range(20):
        replaced = replace_word(words, frequent, frozenset({"dog", "runs", "man"}), np.random.default_rng(seed))
        assert replaced is not None
        assert ([word.text for word in replaced[0]], replaced[1]) == (["a", "cat", "runs"], 1)
    assert replace_word(words, frequent, frozenset({"dog", "runs", "man", "cat"}), np.random.default_rng(0)) is None


def test_weak_labels_are_sure_names_that_a_noun_can_mean() -> None:
    class Same:
        def means(self, noun: str, label: str) -> bool:
            return noun == label

    regions = Regions.of(np.zeros((4, 4)), [0.9, 0.8, 0.7, 0.1], ["dog", "cat", "", "dog"])
    named, said = mentioned_regions([Word("dog", "NN", True), Word("cat", "JJ", True)], regions, Same())  # type: ignore[arg-type]
    assert named.tolist() == [True, True, False, False]
    assert said.tolist() == [True, False, False, False]


def test_regions_survive_packing() -> None:
    images = [Regions.of(np.eye(4)[:count], np.ones(count), ["x"] * count) for count in (2, 0, 3)]
    for before, after in zip(images, unpack_regions(pack_regions(images)), strict=True):
        np.testing.assert_array_equal(before.boxes, after.boxes)
        np.testing.assert_array_equal(before.confidences, after.confidences)
        assert before.labels == after.labels


def test_the_pearson_loss_is_nothing_for_a_rising_line_and_two_for_a_falling_one() -> None:
    wanted = torch.tensor([[0.1, 0.5], [0.3, 0.9]])
    assert pearson_loss(7 * wanted - 3, wanted).item() == pytest.approx(0, abs=1e-6)
    assert pearson_loss(-wanted, wanted).item() == pytest.approx(2, abs=1e-6)


def test_reference_similarity_is_the_mean_cosine_with_a_pictures_other_captions() -> None:
    vectors = torch.nn.functional.normalize(torch.randn(5, 8, generator=torch.Generator().manual_seed(0)), dim=-1)
    owner = torch.tensor([0, 0, 0, 1, 1])
    texts, sums = torch.tensor([1, 3]), torch.stack([vectors[:3].sum(dim=0), vectors[3:].sum(dim=0)])
    similarity = reference_similarity(vectors[texts], owner[texts], sums, torch.tensor([3, 2]), torch.tensor([0, 1]))
    expected = [[(vectors[1] @ vectors[[0, 2]].T).mean(), (vectors[3] @ vectors[:3].T).mean()],
                [(vectors[1] @ vectors[3:].T).mean(), vectors[3] @ vectors[4]]]  # fmt: skip
    np.testing.assert_allclose(similarity.numpy(), np.array(expected, np.float32), atol=1e-6)


def test_the_projection_keeps_cosines_and_neighbors_are_others() -> None:
    random = np.random.default_rng(0)
    vectors = (random.normal(size=(200, 4)) @ random.normal(size=(4, 30))).astype(np.float32)
    projection = principal_projection(vectors, 5).numpy()
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose((units @ projection[:-1]) @ (units @ projection[:-1]).T, 5 * units @ units.T, atol=1e-4)
    assert (nearest(vectors, 3) != np.arange(200)[:, None]).all()
