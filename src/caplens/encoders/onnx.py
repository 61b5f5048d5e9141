"""Run published onnx files as data: sessions on the CPU, with inner tensors made visible."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from caplens.core.optional import require
from caplens.storage import weights
from caplens.storage.cache import FileCache

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_FLOAT = 1  # TensorProto.FLOAT


def expose(model: bytes, tensor: str) -> bytes:
    """The same model with one of its inner float tensors as a further output.

    Messages in this encoding merge when they are put one after the other, so a few bytes at the end add an output to
    the graph: ModelProto{graph (7): {output (12): {name (1), type (2): {tensor_type (1): {elem_type (1)}}}}}.
    """
    kind = _field(2, _field(1, bytes([1 << 3, _FLOAT])))
    return model + _field(7, _field(12, _field(1, tensor.encode()) + kind))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first.

    >>> _varint(300).hex()
    'ac02'
    """
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def session(path: Path, tensor: str) -> InferenceSession:
    """A session that gives `tensor`, an output or an inner tensor of the model; threads as OMP_NUM_THREADS says."""
    onnxruntime = require("onnxruntime", purpose="the embedded encoder")
    options = onnxruntime.SessionOptions()
    asked = os.environ.get("OMP_NUM_THREADS", "")
    options.intra_op_num_threads = int(asked) if asked.isdigit() else min(os.cpu_count() or 1, 4)
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # tensors that no output needs are none of the user's business
    return onnxruntime.InferenceSession(expose(path.read_bytes(), tensor), options, providers=["CPUExecutionProvider"])


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
