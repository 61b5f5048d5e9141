"""Run published onnx files as data: sessions with inner tensors made visible."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from caplens.core.optional import require
from caplens.core.threads import threads_here
from caplens.core.types import Vectors
from caplens.encoders.devices import CPU, Placement
from caplens.encoders.onnx_graph import expose, float_products, integer_product
from caplens.storage import weights
from caplens.storage.cache import FileCache

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def session(path: Path, tensor: str = "", *, in_float: str | None = None, place: Placement = CPU) -> InferenceSession:
    """Return a session that gives the model's outputs and its inner `tensor`, and computes at this place.

    Products of a model in 8-bit numbers whose names match `in_float` are computed in float.
    """
    model = path.read_bytes()
    if in_float is not None:
        model = float_products(model, in_float)
    if tensor:
        model = expose(model, tensor)
    return _session(model, place)


def _session(model: bytes, place: Placement) -> InferenceSession:
    onnxruntime = require("onnxruntime", purpose="the embedded encoder")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads_here()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # tensors that no output needs are none of the user's business
    # Else the runtime sees 8-bit weights before a float product and computes in 8 bits after all.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(model, options, providers=place.providers())


def run_one_by_one(model: InferenceSession, outputs: Sequence[str], feed: str, batch: Vectors) -> list[Vectors]:
    """Return a model's outputs for a batch whose rows were run alone.

    In 8 bits, all numbers of a batch share one scale: in company, a row's outputs would be others.
    """
    rows = [model.run(outputs, {feed: batch[row : row + 1]}) for row in range(len(batch))]
    return [np.concatenate(parts) for parts in zip(*rows, strict=True)]


@functools.cache
def exact_products(place: Placement = CPU) -> bool:
    """Say whether 8-bit products are exact at this place.

    Without VNNI, x86 processors add pairs of products in 16 bits, and pairs of large ones overflow. Whatever processor
    and runtime are here, one product of the largest numbers tells.
    """
    weight = np.tile(np.array([127, -128], np.int8), (64, 8))
    x = np.full((8, 64), 255, np.uint8)
    (found,) = _session(integer_product(weight), place).run(["y"], {"x": x})
    return np.array_equal(found, x.astype(np.int32) @ weight.astype(np.int32))


def quantized(path: Path) -> Path:
    """The same model with matrix products in 8-bit numbers, one scale per channel; made once and kept in the cache."""
    return FileCache("int8").get_or_build(f"{weights.digest(path)[:16]}.onnx", lambda target: _quantize(path, target))


def _quantize(path: Path, target: Path) -> None:
    quantization = require("onnxruntime.quantization", "onnx", purpose="making 8-bit weights")
    root, thread = logging.getLogger(), threading.get_ident()

    def of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    root.addFilter(of_others)  # advice on graph clean-ups that change nothing here; other threads keep their records
    try:
        quantization.quantize_dynamic(
            path,
            target,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=True,  # 7 bits: with 8, sums overflow on processors without VNNI
            weight_type=quantization.QuantType.QInt8,
        )
    finally:
        root.removeFilter(of_others)
