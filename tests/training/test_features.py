"""Features for training: read from the cache for the same captions, references, pictures and makers, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning
from caplens.core.types import Floats
from caplens.storage.identity import Identity
from caplens.training.features import Arrays, cached_features, kept_features
from caplens.training.pairs import caption_features, picture_features


class Counter:
    """Computes features and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, captions: CaptionSet) -> Floats:
        self.calls += 1
        return np.full((len(captions), 1), float(self.calls))


@pytest.fixture
def compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    return Counter()


def test_the_same_is_computed_once(compute: Counter) -> None:
    captions = CaptionSet.of(["a"], [["b"]])
    for _ in range(3):
        assert cached_features(captions, Identity.of("x"), compute).tolist() == [[1.0]]
    assert compute.calls == 1


def test_anything_else_is_computed(compute: Counter, tmp_path: Path) -> None:
    picture = tmp_path / "0.jpg"
    picture.write_bytes(b"one")
    sets = [
        CaptionSet.of(["a"]),
        CaptionSet.of(["b"]),
        CaptionSet.of(["a"], [["b"]]),
        CaptionSet.of(["a"], images=[picture]),
    ]
    for captions in sets:
        cached_features(captions, Identity.of("x"), compute)
    assert compute.calls == 4
    cached_features(sets[0], Identity.of("y"), compute)
    picture.write_bytes(b"two")
    assert cached_features(sets[-1], Identity.of("x"), compute).tolist() == [[6.0]]


def test_what_has_no_lasting_identity_is_not_kept(compute: Counter, tmp_path: Path) -> None:
    captions = CaptionSet.of(["a"])
    for _ in range(2):
        cached_features(captions, Identity.of(lambda: 1), compute)
        cached_features(CaptionSet.of(["a"], images=["https://example.org/a.jpg"]), Identity.of("x"), compute)
    assert compute.calls == 4
    assert not list((tmp_path / "cache").rglob("*.npy"))


def test_a_damaged_or_read_only_cache_costs_time_only(
    compute: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captions = CaptionSet.of(["a"])
    cached_features(captions, Identity.of("x"), compute)
    for path in (tmp_path / "cache").rglob("*.npy"):
        path.write_bytes(b"broken")
    with pytest.warns(CaplensWarning, match="was damaged; it is made anew"):
        assert cached_features(captions, Identity.of("x"), compute).tolist() == [[2.0]]
    monkeypatch.setenv("CAPLENS_CACHE", str(next((tmp_path / "cache").rglob("*.npy"))))
    with pytest.warns(CaplensWarning, match="nothing can be kept in"):
        assert cached_features(captions, Identity.of("x"), compute).tolist() == [[3.0]]


def test_a_file_is_read_for_its_identity_and_only_then(tmp_path: Path) -> None:
    path, calls = tmp_path / "kept.safetensors", 0

    def compute() -> Arrays:
        nonlocal calls
        calls += 1
        return {"features": np.array([calls], np.float16)}

    made = [kept_features(path, Identity.of(name), compute)["features"].item() for name in "xxyyx"]
    assert made == [1, 1, 2, 2, 3]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(CaplensWarning, match="kept.safetensors: not features .*; it is made anew"):
        assert kept_features(path, Identity.of("x"), compute)["features"].item() == 4
    assert kept_features(path, Identity.of("x"), compute)["features"].item() == 4


class Frozen:
    """The mean of a picture, and the length of a text."""

    def __init__(self, tower_identity: str = "tower", preprocessing: str = "plain") -> None:
        self.tower_identity, self.preprocessing, self.calls = tower_identity, preprocessing, 0

    def pixels(self, image: Image.Image) -> np.ndarray:
        return np.asarray(image, np.float32)

    def image_features(self, batch: np.ndarray) -> np.ndarray:
        self.calls += 1
        return np.asarray(batch.mean(axis=(1, 2)))

    def tokenize(self, text: str) -> tuple[list[int], bool]:
        return [len(text)], False

    def caption_features(self, batch: object) -> np.ndarray:
        self.calls += 1
        return np.array(batch, np.float32)


def darker(image: Image.Image, name: str) -> Image.Image:
    return image.point(lambda value: value // 2)


def test_features_of_pictures_belong_to_their_encoder_and_their_bytes(tmp_path: Path) -> None:
    picture, kept = tmp_path / "0.png", tmp_path / "kept"
    Image.new("RGB", (2, 2), (100, 0, 0)).save(picture)

    def red(frozen: Frozen, **options: Any) -> float:
        return float(picture_features(frozen, tmp_path, ["0.png"], kept, **options)[0, 0])

    frozen = Frozen()
    assert [red(frozen), red(frozen), frozen.calls] == [100, 100, 1]
    for other in (Frozen("another tower"), Frozen(preprocessing="other pixels")):
        assert [red(other), other.calls] == [100, 1]
    assert red(frozen, change=darker) == 50
    assert red(frozen) == 100
    Image.new("RGB", (2, 2), (200, 0, 0)).save(picture)
    assert red(frozen) == 200


def test_features_of_captions_belong_to_their_encoder_and_their_texts(tmp_path: Path) -> None:
    path, frozen, other = tmp_path / "captions.safetensors", Frozen(), Frozen("another tower")
    for texts in (["a", "bb"], ["bb", "a", "a"]):
        assert {text: row.item() for text, row in caption_features(frozen, texts, path).items()} == {"a": 1, "bb": 2}
    assert frozen.calls == 1
    caption_features(other, ["a", "bb"], path)
    caption_features(frozen, ["a", "ccc"], path)
    assert (other.calls, frozen.calls) == (1, 2)
