"""Vectors through the cache: the same, much sooner, and with a reason for what cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import InputError, MissingData
from caplens.encoders.base import Encoder
from caplens.encoders.devices import Placement
from caplens.encoders.embedder import Embedder
from caplens.storage.cache import EmbeddingCache
from caplens.vision.video import Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.encoders.random_clip import random_encoder  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for number in range(6):
        Image.fromarray(rng.integers(0, 255, (50, 40 + number, 3), np.uint8)).save(tmp_path / f"{number}.png")
    (tmp_path / "broken.png").write_bytes((tmp_path / "0.png").read_bytes()[:500])
    return tmp_path


def test_pictures_in_order_each_encoded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = random_encoder()
    calls: list[int] = []
    encode = encoder.image_features

    def counted(batch: np.ndarray) -> np.ndarray:
        calls.append(len(batch))
        return encode(batch)

    monkeypatch.setattr(encoder, "image_features", counted)
    monkeypatch.setattr(encoder, "place", Placement(batch_size=4))
    paths = [folder / f"{number}.png" for number in (3, 1, 0, 3, 5, 1, 2, 4)]
    embedder = Embedder(encoder, EmbeddingCache(folder / "cache.sqlite"))
    seen = embedder.images(paths)
    expected = encoder.encode_images([Image.open(path) for path in paths])
    np.testing.assert_allclose(seen.vectors, expected, atol=1e-5)
    assert calls[:2] == [4, 2]
    calls.clear()
    again = Embedder(encoder, EmbeddingCache(folder / "cache.sqlite")).images([*paths, folder / "0.png"])
    assert calls == []
    assert np.array_equal(again.vectors[:-1], seen.vectors)


def test_grids_are_patches_averaged_and_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = random_encoder()
    cache = EmbeddingCache(folder / "cache.sqlite")
    paths = [folder / "2.png", folder / "broken.png", folder / "0.png", None]
    seen = Embedder(encoder, cache).grids(paths, 1)
    pixels = np.stack([encoder.pixels(Image.open(folder / name)) for name in ("2.png", "0.png")])
    patches = encoder.model.vision_model(pixel_values=torch.from_numpy(pixels)).last_hidden_state[:, 1:]
    assert seen.vectors.shape == (4, 1, 1, patches.shape[-1])
    np.testing.assert_allclose(seen.vectors[[0, 2], 0, 0], patches.mean(1).detach().numpy(), atol=1e-5)
    assert set(seen.failures) == {1, 3}
    assert np.isnan(seen.vectors[[1, 3]]).all()
    monkeypatch.setattr(encoder, "encode_grid", None)  # the cache knows all that can be read
    assert np.array_equal(Embedder(encoder, cache).grids(paths, 1).vectors, seen.vectors, equal_nan=True)


def test_a_grid_finer_than_the_patches_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="no grid of 99 by 99"):
        Embedder(random_encoder(), EmbeddingCache(folder / "cache.sqlite")).grids([folder / "0.png"], 99)


def test_an_encoder_without_patches_says_so(folder: Path) -> None:
    with pytest.raises(MissingData, match="gives no grid"):
        Encoder.encode_grid(random_encoder(), np.zeros((1, 3, 8, 8), np.float32), 2)


def test_other_content_under_the_same_name_is_seen_anew(folder: Path) -> None:
    embedder = Embedder(random_encoder(), EmbeddingCache(folder / "cache.sqlite"))
    before = embedder.images([folder / "0.png"]).vectors
    Image.new("RGB", (30, 30), "red").save(folder / "0.png")
    assert not np.allclose(embedder.images([folder / "0.png"]).vectors, before)


def test_another_encoder_shares_nothing(folder: Path) -> None:
    cache = EmbeddingCache(folder / "cache.sqlite")
    one = Embedder(random_encoder(0), cache).texts(["the cat"])
    other = Embedder(random_encoder(1), cache).texts(["the cat"])
    assert not np.allclose(one, other)


def test_encoders_on_the_same_towers_share_features_but_not_vectors(folder: Path) -> None:
    one, other = random_encoder(0), random_encoder(0)
    with torch.no_grad():
        other.model.visual_projection.weight.mul_(2)
        other.model.text_projection.weight.mul_(3)
    cache, path = EmbeddingCache(folder / "cache.sqlite"), folder / "0.png"
    seen, read = Embedder(one, cache).images([path]).vectors, Embedder(one, cache).texts(["the cat"])
    entries = len(cache)
    np.testing.assert_allclose(Embedder(other, cache).images([path]).vectors, 2 * seen, rtol=1e-4)
    np.testing.assert_allclose(Embedder(other, cache).texts(["the cat"]), 3 * read, rtol=1e-4)
    assert len(cache) == entries == 2


def test_unreadable_pictures_are_nan_with_a_reason(folder: Path) -> None:
    embedder = Embedder(random_encoder(), EmbeddingCache(folder / "cache.sqlite"))
    seen = embedder.images([folder / "1.png", folder / "broken.png", None, folder, folder / "none.png"])
    assert np.isfinite(seen.vectors[0]).all()
    assert np.isnan(seen.vectors[1:]).all()
    reasons = [seen.failures[row] for row in (1, 2, 3, 4)]
    for reason, part in zip(reasons, ["damaged", "no image was given", "folder", "no such file"], strict=True):
        assert part in reason
    with pytest.raises(InputError, match="damaged"):
        Embedder(random_encoder(), EmbeddingCache(folder / "c2.sqlite"), strict=True).images([folder / "broken.png"])


def test_tokens_come_back_from_the_cache_exactly(tmp_path: Path) -> None:
    encoder = random_encoder()
    texts = ["the cat", "", "a dog on the cat", "the cat"]
    first = Embedder(encoder, EmbeddingCache(tmp_path / "c.sqlite")).tokens(texts)
    second = Embedder(encoder, EmbeddingCache(tmp_path / "c.sqlite")).tokens(texts)
    for one, two in zip(first, second, strict=True):
        assert one.ids == two.ids
        assert len(one.ids) == len(one.vectors)
        assert np.array_equal(one.vectors, two.vectors)
        assert np.array_equal(one.whole, two.whole)


def test_videos_are_kept_by_content_and_sampling(tmp_path: Path) -> None:
    pytest.importorskip("av")
    from tests.vision.test_video import write_video

    path = write_video(tmp_path / "film.mp4", 9)
    embedder = Embedder(random_encoder(), EmbeddingCache(tmp_path / "c.sqlite"))
    watched = embedder.videos([path, tmp_path / "none.mp4", path], Sampling.parse("every-2"))
    assert watched.frames[0] is not None
    assert watched.frames[0].shape == (5, 32)
    assert watched.frames[2] is watched.frames[0]
    assert "no such file" in watched.failures[1]
    again = embedder.videos([path], Sampling.parse("every-2")).frames[0]
    assert again is not None
    assert np.array_equal(again, watched.frames[0])
    other = embedder.videos([path], Sampling.parse("uniform-3")).frames[0]
    assert other is not None
    assert len(other) == 3
