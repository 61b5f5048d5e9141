"""Whether 8-bit products are exact here: asked of the processor, not of its flags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from caplens.encoders import onnx
from caplens.encoders.devices import CPU, Placement
from caplens.encoders.onnx_graph import integer_product


class Processor:
    """A session of one 8-bit product on a processor that adds pairs of products in so many bits (32: with VNNI)."""

    def __init__(self, weight: Any, bits: int) -> None:
        self.weight, self.most = weight.astype(np.int64), 2 ** (bits - 1) - 1

    def run(self, _: list[str], feed: dict[str, Any]) -> list[Any]:
        products = feed["x"].astype(np.int64)[:, :, None] * self.weight
        pairs = products[:, 0::2] + products[:, 1::2]
        return [np.clip(pairs, -self.most - 1, self.most).sum(axis=1).astype(np.int32)]


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    onnx.exact_products.cache_clear()


@pytest.mark.parametrize(("bits", "exact"), [(16, False), (32, True)])
def test_a_processor_that_overflows_is_found_out(bits: int, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def keep(weight: Any) -> bytes:
        asked.append(weight)
        return integer_product(weight)

    def start(model: bytes, place: Placement) -> Processor:
        return Processor(asked[-1], bits)

    monkeypatch.setattr(onnx, "integer_product", keep)
    monkeypatch.setattr(onnx, "_session", start)
    assert onnx.exact_products() is exact


def test_the_answer_is_that_of_this_processor() -> None:
    """Random products of full range agree with what one product of the largest numbers says."""
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    weight = rng.choice(np.array([-128, -100, 100, 127], np.int8), (768, 32))
    x = rng.integers(200, 256, (197, 768), np.uint8)
    (found,) = onnx._session(integer_product(weight), CPU).run(["y"], {"x": x})
    assert np.array_equal(found, x.astype(np.int32) @ weight.astype(np.int32)) is onnx.exact_products()
