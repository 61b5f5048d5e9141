"""The device and the type reach every tensor; what is absent is said in one line."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import InputError, MissingData
from caplens.core.types import Vectors
from caplens.encoders.devices import CPU, Placement, check_device, place_onnx, place_torch

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.encoders.random_clip import random_encoder  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from caplens.encoders.clip import ClipEncoder  # noqa: E402
from caplens.encoders.embedder import Embedder  # noqa: E402
from caplens.metrics import load_metric  # noqa: E402

TEXTS = ["the cat", "the dog on the cat", "a"]


def placed(place: Placement) -> ClipEncoder:
    encoder = random_encoder()
    return ClipEncoder(encoder.model, encoder._tokenizer, encoder.name, encoder.weights_hash, place)


def pictures(count: int) -> list[Image.Image]:
    random = np.random.default_rng(1)
    return [Image.fromarray(random.integers(0, 256, (40, 50, 3), dtype=np.uint8)) for _ in range(count)]


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes devices and types of every tensor that an operation takes or gives."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: set[tuple[str, object]] = set()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):  # type: ignore[no-untyped-def]
        made = function(*arguments, **(named or {}))
        for value in tree_leaves((arguments, named, made)):
            if isinstance(value, torch.Tensor) and value.dim():
                self.seen.add((value.device.type, value.dtype))
        return made


def test_every_tensor_is_on_the_device() -> None:
    """On the meta device, which refuses to mix with any other, both towers run from the first tensor to the last."""
    encoder = placed(Placement("meta", "bfloat16"))
    pixels = np.stack([encoder.pixels(picture) for picture in pictures(2)])
    ids = [encoder.tokenize(text)[0] for text in TEXTS]
    with torch.inference_mode():
        seen, read = encoder._look(pixels).pooler_output, encoder._ends(ids)
        assert encoder.model.visual_projection(seen).device.type == "meta"
        assert encoder.model.text_projection(read).device.type == "meta"
    assert (seen.dtype, read.dtype) == (torch.bfloat16, torch.bfloat16)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_operation_is_wider_than_asked(dtype: str) -> None:
    encoder = placed(Placement("cpu", dtype))
    with Recorder() as recorder:
        encoder.encode_images(pictures(2))
        encoder.encode_texts(TEXTS)
    types = {found for _, found in recorder.seen}
    assert torch.float64 not in types
    assert getattr(torch, dtype) in types


def test_half_precision_goes_through_the_whole_path_and_is_in_the_signature(tmp_path: Path) -> None:
    exact, rough = placed(CPU), placed(Placement("cpu", "bfloat16"))
    for one, other in (
        (exact.encode_images(pictures(3)), rough.encode_images(pictures(3))),
        (exact.encode_texts(TEXTS), rough.encode_texts(TEXTS)),
    ):
        assert other.dtype == np.float32
        cosines = (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
        assert cosines.min() > 0.99
        assert not np.array_equal(one, other)
    assert exact.fingerprint != rough.fingerprint  # else the cache would mix them
    assert exact.fingerprint == random_encoder().fingerprint
    parts = dict(load_metric("clip-s", encoder=rough).signature_parts())
    assert (parts["dtype"], parts["device"]) == ("bfloat16", "cpu")
    assert "dtype" not in dict(load_metric("clip-s", encoder=exact).signature_parts())


def test_batch_sizes_change_nothing() -> None:
    one, many = placed(Placement(batch_size=1)), placed(Placement(batch_size=64))
    assert (one.image_batch, many.image_batch, placed(CPU).image_batch) == (1, 64, 16)
    np.testing.assert_allclose(one.encode_images(pictures(3)), many.encode_images(pictures(3)), atol=1e-5)


def test_the_next_pictures_are_decoded_while_the_encoder_computes(tmp_path: Path) -> None:
    decoded_next = threading.Event()
    encoder = placed(Placement(batch_size=2))
    prepare, count = encoder.pixels, 0

    def pixels(image: Image.Image) -> Vectors:
        nonlocal count
        count += 1
        if count > 2:
            decoded_next.set()
        return prepare(image)

    compute = encoder.image_features

    def image_features(batch: Vectors) -> Vectors:
        assert decoded_next.wait(20), "nothing was decoded while the first batch was computed"
        return compute(batch)

    encoder.pixels, encoder.image_features = pixels, image_features  # type: ignore[method-assign]
    paths: list[str | None] = []
    for number, picture in enumerate(pictures(6)):
        paths.append(str(tmp_path / f"{number}.png"))
        picture.save(tmp_path / f"{number}.png")
    assert not Embedder(encoder).images(list(paths)).failures


@pytest.mark.skipif(torch.cuda.is_available(), reason="could not import: there is a GPU after all")
def test_an_absent_device_is_one_clear_line() -> None:
    with pytest.raises(MissingData, match=r"there is no device cuda:1 here as far as torch sees: take (cpu|mps)"):
        place_torch("cuda:1")
    assert place_torch("auto").kind in ("cpu", "mps")
    pytest.importorskip("onnxruntime")
    with pytest.raises(MissingData, match="cannot use cuda: take cpu, or install onnxruntime-gpu"):
        place_onnx("cuda")
    assert place_onnx("auto") == CPU
    with pytest.raises(InputError, match="computes in float32"):
        place_onnx("cpu", "bfloat16")


@pytest.mark.parametrize(
    ("device", "dtype", "batch"),
    [("gpu", "float32", None), ("cuda:x", "float32", None), ("cpu", "float64", None), ("cpu", "float32", 0)],
)
def test_what_names_nothing_is_refused(device: str, dtype: str, batch: int | None) -> None:
    with pytest.raises(InputError, match="it takes"):
        check_device(device, dtype, batch)
    with pytest.raises(InputError, match="it takes"):
        load_metric("clip-s", device=device, dtype=dtype, batch_size=batch)


def test_onnxruntime_is_told_the_device() -> None:
    assert Placement("cuda:1").providers() == [("CUDAExecutionProvider", {"device_id": "1"}), "CPUExecutionProvider"]
    assert CPU.providers() == ["CPUExecutionProvider"]
