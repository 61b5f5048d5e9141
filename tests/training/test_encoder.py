"""Training the embedded encoder's heads: splits, learning, resuming, and the file that the encoder reads."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caplens.core.errors import InputError
from caplens.core.types import unit
from caplens.encoders.embedded import JoinedHeads, read_heads
from caplens.training.pairs import read_pairs

torch = pytest.importorskip("torch")

from caplens.training import encoder as training  # noqa: E402
from caplens.training.contrastive import recall, symmetric_loss  # noqa: E402
from caplens.training.encoder import EncoderConfig, Features, encode, fit, save_heads, split_features  # noqa: E402
from caplens.training.gamed import CORRUPTIONS  # noqa: E402
from caplens.training.run import TrainingRun  # noqa: E402

CONFIG = EncoderConfig(epochs=8, batch=32, hidden=16, dimension=8, dropout=0.1, warm_up=2)


def toy(count: int = 96, seed: int = 0) -> Features:
    """Pictures and captions that share four hidden numbers."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(count, 4))
    maps = np.random.default_rng(99)
    pictures = (hidden @ maps.normal(size=(4, 20)) + 0.1 * rng.normal(size=(count, 20))).astype(np.float32)
    texts = np.repeat(hidden, 2, axis=0) @ maps.normal(size=(4, 12)) + 0.1 * rng.normal(size=(2 * count, 12))
    texts = (texts / np.linalg.norm(texts, axis=1, keepdims=True)).astype(np.float32)
    captions = [np.array([2 * row, 2 * row + 1]) for row in range(count)]
    return Features([f"{row}.jpg" for row in range(count)], pictures, texts, captions)


def nothing(task: str, done: int, total: int) -> None:
    pass


def test_splits_are_kept_and_test_pictures_left_out(tmp_path: Path) -> None:
    main = {
        "1_a.jpg": {"split": "train", "captions": ["one"]},
        "2_b.jpg": {"split": "train", "captions": ["two"]},
        "3_c.jpg": {"split": "val", "captions": ["three"]},
        "4_d.jpg": {"split": "test", "captions": ["four"]},
        "5_e.jpg": {"split": "none", "captions": ["five"]},
    }
    more = {
        "1.jpg": {"split": "train", "captions": ["uno"]},
        "2.jpg": {"split": "test", "captions": ["due"]},
        "4.jpg": {"split": "train", "captions": ["quattro"]},
    }
    (tmp_path / "main.json").write_text(json.dumps(main))
    with gzip.open(tmp_path / "more.json.gz", "wt") as file:
        json.dump(more, file)
    pairs = read_pairs(tmp_path / "main.json", [tmp_path / "more.json.gz"])
    assert pairs.train == {"1_a.jpg": ["one", "uno"]}
    assert (pairs.val, pairs.test) == ({"3_c.jpg": ["three"]}, {"4_d.jpg": ["four"]})
    (tmp_path / "bad.json").write_text('{"a": []}')
    with pytest.raises(InputError, match="split"):
        read_pairs(tmp_path / "bad.json")


def test_the_loss_equals_its_equation() -> None:
    rng = np.random.default_rng(0)
    v, t = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (v, t)]
    grid = np.exp(unit[0] @ unit[1].T * 7)
    expected = -np.mean([np.log(grid[i, i] / grid[i].sum()) for i in range(5)])
    expected -= np.mean([np.log(grid[i, i] / grid[:, i].sum()) for i in range(5)])
    assert float(symmetric_loss(torch.tensor(v), torch.tensor(t), 7.0)) == pytest.approx(expected)


def test_soft_targets_equal_their_equation() -> None:
    rng = np.random.default_rng(0)
    v, t = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in rng.normal(size=(2, 4, 3)))
    nearness, share = rng.normal(size=(4, 4)), 0.3
    expected = 0.0
    for logits, near in ((7 * v @ t.T, nearness), (7 * t @ v.T, nearness.T)):
        for row in range(4):
            shares = np.exp(near[row]) / np.exp(near[row]).sum()
            wanted = [(1 - share) * (row == column) + share * shares[column] for column in range(4)]
            logs = logits[row] - np.log(np.exp(logits[row]).sum())
            expected -= sum(w * g for w, g in zip(wanted, logs, strict=True)) / 4
    found = symmetric_loss(torch.tensor(v), torch.tensor(t), 7.0, (share, torch.tensor(nearness)))
    assert float(found) == pytest.approx(expected)


def test_the_teacher_does_not_compare_a_caption_with_itself() -> None:
    texts = np.eye(3, dtype=np.float32)
    features = Features(["a", "b"], np.ones((2, 1), np.float32), texts, [np.array([0, 1]), np.array([1, 2])])
    nearness = training.Teacher(features).nearness(torch.tensor([0, 1]), np.array([1, 2]))
    assert nearness.tolist() == [[0.0, 0.0], [0.5, 0.0]]  # caption 1 is also the second picture's, and half of it


def test_it_learns(tmp_path: Path) -> None:
    features = {"train": toy(), "val": toy(40, seed=1)}
    heads, _ = fit(features, replace(CONFIG, epochs=60, learning_rate=0.01), TrainingRun(tmp_path, {}), nothing)
    after, _ = recall(*encode(heads, features["val"]), features["val"].owner)
    assert after > 0.5  # chance is 0.025


class _Killed(Exception):
    pass


def test_captions_of_unseen_pictures_keep_their_words_in_place(tmp_path: Path) -> None:
    """Two captions about things that no training picture shows find each other better when they were trained to."""
    rng = np.random.default_rng(7)
    about = np.repeat(rng.normal(size=(300, 1, 6)) @ rng.normal(size=(6, 12)), 2, axis=1)
    pairs = (about + 0.8 * rng.normal(size=about.shape)).astype(np.float32)
    pairs /= np.linalg.norm(pairs, axis=-1, keepdims=True)
    found = {}
    for weight in (0.0, 2.0):
        config = replace(CONFIG, consistency=weight, soft=0.3)
        seen = {"train": replace(toy(), unseen=pairs[:200]), "val": toy(40, seed=1)}
        heads, _ = fit(seen, config, TrainingRun(tmp_path / str(weight), {"weight": weight}), nothing)
        with torch.inference_mode():
            first, second = (heads["text"].eval()(torch.from_numpy(pairs[200:, side])).numpy() for side in (0, 1))
        found[weight] = recall(first, second, np.arange(100))[0]
    assert found[2.0] > found[0.0]


def test_gamed_captions_lose_when_heads_were_trained_so(tmp_path: Path) -> None:
    """A gamed caption says what the honest one says, and one thing more: that it is gamed."""

    def with_gamed(features: Features) -> Features:
        form = np.zeros((1, features.texts.shape[1]), np.float32)
        form[0, 0] = 0.5
        honest = features.texts[[rows[0] for rows in features.captions]]
        return replace(features, gamed=unit(honest + form).astype(np.float32)[:, None])

    train, val = with_gamed(toy()), with_gamed(toy(40, seed=1))
    assert val.gamed is not None
    lost = {}
    for weight in (0.0, 1.0):
        config = replace(CONFIG, gamed=weight, epochs=40, learning_rate=0.01)
        heads, _ = fit({"train": train, "val": val}, config, TrainingRun(tmp_path / str(weight), {}), nothing)
        pictures, captions = (unit(vectors) for vectors in encode(heads, val))
        with torch.inference_mode():
            gamed = unit(heads["text"](torch.from_numpy(val.gamed[:, 0])).numpy())
        honest = (pictures * captions[::2]).sum(axis=1)
        lost[weight] = float((honest > (pictures * gamed).sum(axis=1)).mean())
    assert lost[1.0] > max(0.9, lost[0.0])


def test_every_picture_has_captions_gamed_in_each_way(tmp_path: Path) -> None:
    class Reader:
        tower_identity = "letters"

        def tokenize(self, text: str) -> tuple[list[int], bool]:
            return [ord(letter) for letter in text], False

        def caption_features(self, batch: list[tuple[int, ...]]) -> np.ndarray:
            return np.array([[len(ids), sum(ids)] for ids in batch], np.float32)

    captions = {"a.jpg": ["a dog runs", "a brown dog", "it runs"], "b.jpg": ["one caption only"]}
    reader: Any = Reader()
    made = training.gamed_features(reader, captions, tmp_path, 0)
    assert made.shape == (2, len(CORRUPTIONS), 2)
    assert np.array_equal(made, training.gamed_features(reader, captions, tmp_path, 0))
    assert not np.array_equal(made, training.gamed_features(reader, captions, tmp_path, 1))


def test_consistency_without_captions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "main.json").write_text(
        json.dumps({f"{split}.jpg": {"split": split, "captions": ["one"]} for split in ("train", "val")})
    )
    with pytest.raises(InputError, match="text-only"):
        training.train(tmp_path, tmp_path / "main.json", [], tmp_path / "run", replace(CONFIG, consistency=1.0))


def test_an_interrupted_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    features = {"train": toy(), "val": toy(40, seed=1)}
    whole, scale = fit(features, CONFIG, TrainingRun(tmp_path / "whole", {}), nothing)

    def stop(task: str, done: int, total: int) -> None:
        if done == 10:  # of 24 steps, in the fourth of eight epochs
            raise _Killed

    with pytest.raises(_Killed):
        fit(features, CONFIG, TrainingRun(tmp_path / "part", {}), stop)
    resumed, scale_again = fit(features, CONFIG, TrainingRun(tmp_path / "part", {}), nothing)
    assert scale == scale_again
    for side, head in whole.items():
        for name, value in head.state_dict().items():
            assert torch.equal(value, resumed[side].state_dict()[name]), (side, name)
    assert (tmp_path / "part" / "curve.jsonl").read_text() == (tmp_path / "whole" / "curve.jsonl").read_text()


def test_saved_heads_give_the_trained_vectors(tmp_path: Path) -> None:
    val = toy(40, seed=1)
    heads, _ = fit({"train": toy(), "val": val}, CONFIG, TrainingRun(tmp_path, {}), nothing)
    save_heads(heads, tmp_path / "heads.safetensors", "toy", {})
    read = read_heads(tmp_path / "heads.safetensors")
    assert read.name == "toy"
    pictures, captions = encode(heads, val)
    np.testing.assert_allclose(read.image(val.pictures), pictures, atol=0.02)  # float16
    np.testing.assert_allclose(read.text(val.ordered_texts), captions, atol=0.02)


def test_heads_beside_each_other_see_their_columns_and_count_alike(tmp_path: Path) -> None:
    """The second pair looks at the first columns only; a cosine is the mean of both pairs' cosines."""
    val = toy(40, seed=1)
    config = replace(CONFIG, columns_beside=4)
    heads, _ = fit({"train": toy(), "val": val}, config, TrainingRun(tmp_path, {}), nothing)
    save_heads(heads, tmp_path / "heads.safetensors", "toy", {})
    read = read_heads(tmp_path / "heads.safetensors")
    assert isinstance(read.image, JoinedHeads)
    assert isinstance(read.text, JoinedHeads)
    assert read.image.dimension == read.text.dimension == 2 * config.dimension
    pictures, captions = encode(heads, val)
    np.testing.assert_allclose(read.image(val.pictures), pictures, atol=0.02)  # float16
    np.testing.assert_allclose(read.text(val.ordered_texts), captions, atol=0.02)
    blind = val.pictures.copy()
    blind[:, 4:] = 7
    second = read.image.parts[1]
    assert np.array_equal(second(blind), second(val.pictures))
    assert not np.array_equal(read.image.parts[0](blind), read.image.parts[0](val.pictures))
    texts = val.ordered_texts[:40]
    apart = [
        np.einsum("ij,ij->i", unit(image(val.pictures)), unit(text(texts)))
        for image, text in zip(read.image.parts, read.text.parts, strict=True)
    ]
    joined = np.einsum("ij,ij->i", unit(read.image(val.pictures)), unit(read.text(texts)))
    np.testing.assert_allclose(joined, np.mean(apart, axis=0), atol=1e-6)


def test_split_features_keep_who_owns_what() -> None:
    pictures = {name: np.full(2, number, np.float32) for number, name in enumerate("abc")}
    texts = {text: np.full(3, number, np.float32) for number, text in enumerate(["x", "y", "z"])}
    split = split_features({"b": ["z", "x"], "a": ["x"]}, pictures, texts)
    assert split.names == ["b", "a"]
    assert split.pictures[:, 0].tolist() == [1, 0]
    assert split.owner.tolist() == [0, 0, 1]
    assert split.ordered_texts[:, 0].tolist() == [2, 0, 0]


def test_features_are_kept_and_not_made_again(tmp_path: Path) -> None:
    from PIL import Image

    class Frozen:
        calls = 0
        tower_identity, preprocessing = "frozen", "small"

        def pixels(self, image: Image.Image) -> np.ndarray:
            return np.asarray(image.resize((2, 2)), np.float32).transpose(2, 0, 1)

        def image_features(self, batch: np.ndarray) -> np.ndarray:
            Frozen.calls += 1
            return batch.reshape(len(batch), -1)

        def tokenize(self, text: str) -> tuple[list[int], bool]:
            return [len(text)], False

        def caption_features(self, batch: object) -> np.ndarray:
            Frozen.calls += 1
            return np.array([[ids[0]] for ids in batch], np.float32)  # type: ignore[attr-defined]

    for number in range(6):
        Image.new("RGB", (4, 4), (number * 10, 0, 0)).save(tmp_path / f"{number}.png")
    captions = {
        f"{number}.png": {"split": "train" if number < 4 else "val", "captions": ["a" * number]} for number in range(6)
    }
    (tmp_path / "captions.json").write_text(json.dumps(captions))
    pairs = read_pairs(tmp_path / "captions.json")
    reports: list[tuple[str, int, int]] = []

    def record(task: str, done: int, total: int) -> None:
        reports.append((task, done, Frozen.calls))

    loaded = [training.load_features(Frozen(), pairs, tmp_path, tmp_path / "kept", record) for _ in range(2)]
    assert Frozen.calls == 3  # pictures in fours, captions at once
    assert reports[0] == ("features of pictures", 0, 0)  # before anything is computed
    assert reports[1:3] == [("features of pictures", 4, 1), ("features of pictures", 6, 2)]
    assert ("features of captions", 0, 2) in reports
    for split in ("train", "val"):
        assert np.array_equal(loaded[0][split].pictures, loaded[1][split].pictures)
        assert np.array_equal(loaded[0][split].ordered_texts, loaded[1][split].ordered_texts)
    assert loaded[0]["train"].pictures[:, 0].tolist() == [0, 10, 20, 30]


def test_upper_layers_of_the_text_tower_are_tuned_with_the_heads(tmp_path: Path) -> None:
    from caplens.encoders.backbones import TEXT
    from caplens.encoders.bert import BertEncoder
    from caplens.storage import weights

    if weights.find(TEXT) is None:
        pytest.skip(f"caplens weights fetch {TEXT}")
    texts = [f"a {color} {thing}" for color in ("red", "green", "black") for thing in ("dog", "car", "tree", "ball")]
    tower = BertEncoder(weights.require(TEXT))
    states = tower.states(tower.tokenize(texts), tower.layers - 1)
    final = [own.mean(axis=0) for own in tower.states(tower.tokenize(texts))]
    pictures = np.eye(len(texts), dtype=np.float32)
    features = Features(texts, pictures, np.stack(final), [np.array([row]) for row in range(len(texts))], states)
    config = replace(CONFIG, epochs=3, tuned_layers=1, rank=2, soft=0.5, captions_per_picture=1)
    heads, scale = fit({"train": features, "val": features}, config, TrainingRun(tmp_path, {}), nothing)
    save_heads(heads, tmp_path / "heads.safetensors", "toy", {"edition": "embedded-strong", "scale": scale})
    read = read_heads(tmp_path / "heads.safetensors")
    assert (read.edition, read.scale) == ("embedded-strong", scale)
    tuned = BertEncoder(weights.require(TEXT), read.additions)
    _, captions = encode(heads, features)
    for row, own in enumerate(tuned.states(tuned.tokenize(texts))):
        mean = own.mean(axis=0)
        np.testing.assert_allclose(read.text((mean / np.linalg.norm(mean))[None])[0], captions[row], atol=0.02)
    assert any(np.abs(array).max() > 0 for name, array in (read.additions or {}).items() if name.endswith("up"))
