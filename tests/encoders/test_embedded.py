"""The embedded encoder: its own name, its heads, and what it can tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import CaplensError, InputError, MissingData
from caplens.encoders.embedded import EmbeddedEncoder, Head, heads_path, load_embedded, read_heads
from caplens.encoders.onnx import exact_products, quantized
from caplens.encoders.onnx_graph import expose


@pytest.fixture(scope="module")
def encoder() -> EmbeddedEncoder:
    try:
        return load_embedded()
    except MissingData as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", ["contrastive", "pac"])
def test_shipped_heads_are_small_and_whole(name: str) -> None:
    path = heads_path(name)
    assert path.stat().st_size < 8_000_000
    heads = read_heads(path)
    assert heads.name == name
    assert heads.image(np.ones((2, 1088), np.float32)).shape == (2, 512)
    assert heads.text(np.ones((2, 384), np.float32)).shape == (2, 512)


def test_a_head_equals_its_formula() -> None:
    from math import erf, sqrt

    image = read_heads(heads_path("contrastive")).image
    assert isinstance(image, Head)
    features = np.random.default_rng(0).normal(size=1088).astype(np.float32)
    x = (features.astype(float) - image.shift) * image.scale
    tensors = {name: array.astype(float) for name, array in image.tensors.items()}
    hidden = tensors["up.weight"] @ x + tensors["up.bias"]
    hidden = np.array([value * (1 + erf(value / sqrt(2))) / 2 for value in hidden])
    expected = tensors["linear.weight"] @ x + tensors["linear.bias"]
    expected += tensors["down.weight"] @ hidden + tensors["down.bias"]
    np.testing.assert_allclose(image(features[None])[0], expected, rtol=1e-3, atol=1e-3)


def test_what_is_no_head_file_is_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"a": np.ones(1, np.float32)}, tmp_path / "other.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"nothing")
    for name, reason in {
        "other": "holds no heads",
        "broken": "not heads of the embedded encoder",
        "absent": "no heads",
    }.items():
        with pytest.raises(CaplensError, match=reason):
            read_heads(heads_path(str(tmp_path / f"{name}.safetensors")))


def test_an_unknown_edition_is_named() -> None:
    with pytest.raises(InputError, match="no edition 'weak'"):
        heads_path("contrastive", "weak")


def session_of(model: bytes) -> Any:
    runtime = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])


def test_a_quantized_model_is_near_the_original_and_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    weight = onnx.numpy_helper.from_array(rng.normal(size=(64, 32)).astype(np.float32), "w")
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [5, size])
        for name, size in (("x", 64), ("y", 32))
    ]
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", [ends[0]], [ends[1]], [weight])
    path = tmp_path / "plain.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    made = quantized(path)
    assert b"MatMulInteger" in made.read_bytes()
    x = rng.normal(size=(5, 64)).astype(np.float32)
    exact, near = (session_of(file.read_bytes()).run(["y"], {"x": x})[0] for file in (path, made))
    assert 0 < np.abs(near - exact).max() < 0.03 * np.abs(exact).max()
    before = made.stat().st_mtime_ns
    assert quantized(path) == made
    assert made.stat().st_mtime_ns == before


def test_int8_is_in_the_name_and_in_the_hash(encoder: EmbeddedEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caplens.encoders.onnx.quantized", lambda path: path)
    other = load_embedded(int8=True)
    assert other.identity.startswith("embedded-contrastive-int8@")
    assert other.weights_hash != encoder.weights_hash
    assert other.tower_identity != encoder.tower_identity


def test_int8_reads_with_a_tuned_text_tower_as_float_does(tmp_path: Path, encoder: EmbeddedEncoder) -> None:
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    pytest.importorskip("onnx")
    shipped, tuned = heads_path("contrastive"), tmp_path / "tuned.safetensors"
    tensors = load_file(shipped)
    tensors["additions.5.query.up"] = np.full((384, 2), 0.1, np.float16)
    tensors["additions.5.query.down"] = np.full((2, 384), 0.1, np.float16)
    with safe_open(shipped, "np") as file:
        save_file(tensors, tuned, file.metadata())
    float_vector, int8_vector = (load_embedded(str(tuned), int8=int8).encode_texts(["a dog"]) for int8 in (False, True))
    np.testing.assert_array_equal(int8_vector, float_vector)
    assert not np.allclose(int8_vector, encoder.encode_texts(["a dog"]))


def test_int8_gives_a_picture_the_same_vector_alone_and_in_company(encoder: EmbeddedEncoder) -> None:
    pytest.importorskip("onnx")
    eight = load_embedded(int8=True)
    pictures = photos()[:3]
    alone = np.concatenate([eight.encode_images([picture]) for picture in pictures])
    np.testing.assert_allclose(eight.encode_images(pictures), alone, atol=1e-4)


def test_heads_on_the_same_towers_share_features(encoder: EmbeddedEncoder) -> None:
    other = load_embedded("pac")
    assert other.tower_identity == encoder.tower_identity
    assert other.identity != encoder.identity


def test_an_inner_tensor_becomes_an_output() -> None:
    onnx = pytest.importorskip("onnx")
    nodes = [
        onnx.helper.make_node("Mul", ["x", "x"], ["inner"]),
        onnx.helper.make_node("Add", ["inner", "x"], ["y"]),
    ]
    kinds = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = onnx.helper.make_graph(nodes, "g", [kinds[0]], [kinds[1]])
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
    inner, y = session_of(expose(model, "inner")).run(["inner", "y"], {"x": np.array([2, 3], np.float32)})
    assert inner.tolist() == [4, 9]
    assert y.tolist() == [6, 12]


def test_its_name_is_never_clip(encoder: EmbeddedEncoder) -> None:
    assert encoder.identity.startswith("embedded-contrastive@")
    assert "clip" not in encoder.identity


def test_text_batches_and_order_do_not_matter(encoder: EmbeddedEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a dog runs", "", "two men on a long wooden bench near the sea", "cat", "\ud83d broken", "a dog runs"]
    whole = encoder.encode_texts(texts)
    monkeypatch.setattr("caplens.encoders.base.TOKENS_PER_BATCH", 1)
    np.testing.assert_allclose(encoder.encode_texts(texts[::-1])[::-1], whole, atol=1e-4)
    tokens = encoder.encode_tokens(texts)
    np.testing.assert_allclose([one.whole for one in tokens], whole, atol=1e-4)
    assert [len(one.vectors) for one in tokens] == [len(one.ids) for one in tokens]
    assert [encoder.fits(text) for text in ("word " * 400, "word " * 250, "a dog")] == [False, True, True]


# Ten photos of scikit-image, each with a caption; the encoder never saw any of them.
PHOTOS = {
    "astronaut": "a smiling woman in an orange space suit",
    "camera": "a black and white photo of a man with a camera on a tripod",
    "chelsea": "a close up of a ginger cat's face",
    "coffee": "a cup of coffee on a wooden table",
    "coins": "rows of old coins on a dark background",
    "rocket": "a rocket on its launch pad at night",
    "motorcycle_left": "a motorcycle parked in a garage",
    "hubble_deep_field": "many stars and galaxies in dark space",
    "grass": "a field of green grass seen from above",
    "brick": "a brick wall",
}


def photos() -> list[Image.Image]:
    data = pytest.importorskip("skimage.data")
    pictures = []
    for name in PHOTOS:
        try:
            array = data.stereo_motorcycle()[0] if name == "motorcycle_left" else getattr(data, name)()
        except Exception as error:  # some are downloaded on first use
            pytest.skip(f"scikit-image has no {name} here: {error}")
        pictures.append(Image.fromarray(array).convert("RGB"))
    return pictures


def test_ten_photos_and_ten_captions_find_each_other(encoder: EmbeddedEncoder) -> None:
    from caplens.core.types import unit

    similarity = unit(encoder.encode_images(photos())) @ unit(encoder.encode_texts(list(PHOTOS.values()))).T
    right = np.arange(len(PHOTOS))
    assert (similarity.argmax(axis=1) == right).sum() >= 8
    assert (similarity.argmax(axis=0) == right).sum() >= 8


@pytest.fixture(scope="module")
def strong() -> EmbeddedEncoder:
    pytest.importorskip("onnxruntime")
    try:
        return load_embedded(edition="embedded-strong")
    except MissingData as missing:
        pytest.skip(str(missing))


def test_strong_has_its_own_name_and_towers(strong: EmbeddedEncoder, encoder: EmbeddedEncoder) -> None:
    assert strong.identity.startswith("embedded-strong-contrastive@")
    assert strong.tower_identity != encoder.tower_identity
    assert strong.grid_identity != encoder.grid_identity


def test_strong_finds_the_photo_of_every_caption_and_the_caption_of_every_photo(strong: EmbeddedEncoder) -> None:
    from caplens.core.types import unit

    similarity = unit(strong.encode_images(photos())) @ unit(strong.encode_texts(list(PHOTOS.values()))).T
    right = np.arange(len(PHOTOS))
    assert similarity.argmax(axis=0).tolist() == right.tolist()
    assert similarity.argmax(axis=1).tolist() == right.tolist()


def test_strong_gives_a_picture_the_same_vector_alone_and_in_company(strong: EmbeddedEncoder) -> None:
    pictures = photos()[:3]
    together = strong.encode_images(pictures)
    alone = np.concatenate([strong.encode_images([picture]) for picture in pictures])
    np.testing.assert_allclose(alone, together, atol=1e-6)


@pytest.fixture(scope="module")
def strong_int8(strong: EmbeddedEncoder) -> EmbeddedEncoder:
    if not exact_products():
        pytest.skip("8-bit products overflow on this processor")
    return load_embedded(edition="embedded-strong", int8=True)


def test_strong_int8_shares_nothing_in_the_cache_with_float(
    strong: EmbeddedEncoder, strong_int8: EmbeddedEncoder
) -> None:
    assert strong_int8.identity.startswith("embedded-strong-contrastive-int8@")
    for what in ("weights_hash", "tower_identity", "grid_identity", "fingerprint"):
        assert getattr(strong_int8, what) != getattr(strong, what)


def test_strong_int8_ranks_photos_and_captions_as_float_does(
    strong: EmbeddedEncoder, strong_int8: EmbeddedEncoder
) -> None:
    from scipy.stats import spearmanr

    from caplens.core.types import unit

    pictures, texts = photos(), unit(strong.encode_texts(list(PHOTOS.values()))).T
    vectors = [unit(encoder.encode_images(pictures)) for encoder in (strong, strong_int8)]
    exact, near = (found @ texts for found in vectors)
    assert near.argmax(axis=1).tolist() == exact.argmax(axis=1).tolist()
    assert near.argmax(axis=0).tolist() == exact.argmax(axis=0).tolist()
    assert spearmanr(exact.ravel(), near.ravel()).statistic > 0.97
    assert np.einsum("ij,ij->i", *vectors).min() > 0.95


def test_strong_int8_gives_a_picture_the_same_vector_alone_and_in_company(strong_int8: EmbeddedEncoder) -> None:
    pictures = photos()[:2]
    alone = np.concatenate([strong_int8.encode_images([picture]) for picture in pictures])
    np.testing.assert_array_equal(strong_int8.encode_images(pictures), alone)


@pytest.mark.usefixtures("strong")
def test_strong_int8_is_refused_where_products_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caplens.encoders.clip_vision.exact_products", lambda place: False)
    with pytest.raises(MissingData, match=r"embedded-strong-int8 needs .* no VNNI.*: use embedded-strong, .* in float"):
        load_embedded(edition="embedded-strong", int8=True)


def test_heads_belong_to_one_edition(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="heads for embedded, not for embedded-strong"):
        load_embedded(str(heads_path("contrastive")), "embedded-strong")


@pytest.mark.shared
def test_grids_pool_the_backbone_s_patches(encoder: EmbeddedEncoder, shared: Path) -> None:
    picture = Image.open(sorted((shared / "data/flickr8k/images").glob("*.jpg"))[0]).convert("RGB")
    pixels = encoder.pixels(picture)[None]
    grid = encoder.encode_grid(pixels, 4)
    assert grid.shape == (1, 4, 4, 384)
    corner = encoder.encode_grid(pixels, 16)[0, :4, 12:].mean(axis=(0, 1))
    np.testing.assert_allclose(grid[0, 0, 3], corner, atol=1e-4)
