"""Run published onnx files as data: sessions with inner tensors made visible."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from caplens.core.optional import require
from caplens.core.threads import threads_here
from caplens.encoders.devices import CPU, Placement
from caplens.encoders.onnx_graph import expose, float_products
from caplens.storage import weights
from caplens.storage.cache import FileCache

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def session(path: Path, tensor: str = "", *, in_float: bool = False, place: Placement = CPU) -> InferenceSession:
    """Return a session that gives the model's outputs and its inner `tensor`, and computes at this place.

    With `in_float`, products of a model in 8-bit numbers are computed in float.
    """
    onnxruntime = require("onnxruntime", purpose="the embedded encoder")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads_here()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # tensors that no output needs are none of the user's business
    model = path.read_bytes()
    if in_float:
        model = float_products(model)
        # Else the runtime sees 8-bit weights before a product and computes in 8 bits after all.
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    if tensor:
        model = expose(model, tensor)
    return onnxruntime.InferenceSession(model, options, providers=place.providers())


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
