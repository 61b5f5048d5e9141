"""CLIP's image tower: it is what it says, shown by CLIP's own text vectors of COCO's names."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tools.clip_zero_shot import text_vectors, zero_shot

from caplens.core.errors import MissingData
from caplens.core.types import unit
from caplens.encoders.backbones import ClipBackbones
from caplens.encoders.clip_vision import WEIGHTS, ClipVision
from caplens.encoders.onnx import exact_products
from caplens.encoders.onnx_graph import float_products
from caplens.storage import weights


def find(name: str) -> Path:
    try:
        return weights.require(name)
    except MissingData as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def tower() -> ClipVision:
    find(WEIGHTS)
    pytest.importorskip("onnxruntime")
    return ClipVision()


def test_the_edited_file_is_the_same_everywhere() -> None:
    edited = hashlib.sha256(float_products(find(WEIGHTS).read_bytes())).hexdigest()
    assert edited == "51265de295060be82c3aa54760efc21b638284a23065ac7d00821d75047d815f"


def test_vector_class_token_and_patches_are_readable(tower: ClipVision) -> None:
    pixels = tower.pixels(Image.new("RGB", (40, 30), "red"))
    projected, token, patches = tower.encode(np.stack([pixels, pixels]))
    assert (projected.shape, token.shape, patches.shape) == ((2, 512), (2, 768), (2, 14, 14, 768))
    assert np.array_equal(projected[0], projected[1])


def test_a_region_is_the_mean_of_its_patches_beside_the_whole(tower: ClipVision) -> None:
    """One pass: a box over everything is the whole picture, and a box over one patch is that patch."""
    find("all-MiniLM-L6-v2")
    towers = ClipBackbones()
    pixels = tower.pixels(Image.effect_mandelbrot((224, 224), (-2.0, -1.5, 1.0, 1.5), 100).convert("RGB"))
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1 / 14, 1 / 14]])
    whole, everything, corner = towers.region_features(pixels, boxes)
    np.testing.assert_allclose(whole, towers.image_features(pixels[None])[0], atol=1e-5)
    np.testing.assert_allclose(everything, whole, atol=1e-4)
    patch = tower.encode(pixels[None])[2][0, 0, 0]
    np.testing.assert_allclose(corner[1280:], (patch - patch.mean()) / patch.std(), atol=1e-3)
    np.testing.assert_array_equal(corner[:1280], whole[:1280])


def test_it_equals_the_hubs_tower(tower: ClipVision) -> None:
    """Where CLIP ViT-B/16 from the hub is on this machine."""
    if weights.find_published("openai/clip-vit-base-patch16") is None:
        pytest.skip("caplens weights fetch openai/clip-vit-base-patch16 needs the hub")
    from caplens.encoders.clip import load_clip

    pixels = tower.pixels(Image.effect_mandelbrot((224, 224), (-2.0, -1.5, 1.0, 1.5), 100).convert("RGB"))[None]
    official = load_clip("ViT-B-16").encode_pixels(pixels)
    assert unit(tower.encode(pixels)[0])[0] @ unit(official)[0] > 0.99


def test_what_is_kept_in_8_bits_lies_apart(tower: ClipVision, tmp_path: Path) -> None:
    if not exact_products():
        pytest.skip("8-bit products overflow on this processor")
    pixels = tower.pixels(Image.new("RGB", (40, 30), "red"))[None]
    near, exact = (ClipVision(keep=tmp_path, int8=int8).encode(pixels)[0][0] for int8 in (True, False))
    assert len(list(tmp_path.iterdir())) == 2
    assert 0.9 < unit(near[None])[0] @ unit(exact[None])[0] < 1 - 1e-5


@pytest.mark.shared
def test_it_finds_what_clips_texts_name(tower: ClipVision, shared: Path) -> None:
    """Zero-shot on few photos; over 3,388 the lowest of the six areas was 0.987 (tools/clip_zero_shot.py)."""
    texts = text_vectors(find("clip-vit-b-16-coco-names"))
    areas = zero_shot(tower, shared / "data" / "flickr8k", texts, 8)
    assert min(areas.values()) > 0.85
    assert np.mean(list(areas.values())) > 0.95


def test_a_picture_is_looked_at_once_where_a_folder_keeps_it(tower: ClipVision, tmp_path: Path) -> None:
    """What is kept is what the tower gives, in half precision; only unknown pictures go through it."""
    pixels = np.stack([tower.pixels(Image.new("RGB", (40, 30), color)) for color in ("red", "green")])
    keeping = ClipVision(keep=tmp_path)
    for found, expected in zip(keeping.encode(pixels[:1]), tower.encode(pixels[:1]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    (kept,) = tmp_path.rglob("*.safetensors")
    written = kept.stat().st_mtime_ns
    both = keeping.encode(pixels)
    assert kept.stat().st_mtime_ns == written
    assert len(list(tmp_path.rglob("*.safetensors"))) == 2
    for found, again in zip(keeping.encode(pixels), both, strict=True):
        assert np.array_equal(found, again)
