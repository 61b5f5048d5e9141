"""Edits of onnx files: products of 8-bit weights in float, against a real quantizer and numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caplens.core.errors import InputError
from caplens.encoders.onnx import session
from caplens.encoders.onnx_graph import EVERY, float_products, integer_product


@pytest.fixture
def quantized(tmp_path: Path) -> Path:
    """Two matrix products with a sigmoid between, in 8-bit numbers as the runtime's own tool makes them."""
    onnx = pytest.importorskip("onnx")
    quantization = pytest.importorskip("onnxruntime.quantization")
    rng = np.random.default_rng(0)
    weights = [
        onnx.numpy_helper.from_array(rng.normal(size=size).astype(np.float32), name)
        for name, size in (("w", (16, 8)), ("v", (8, 4)))
    ]
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        onnx.helper.make_node("Sigmoid", ["h"], ["g"]),
        onnx.helper.make_node("MatMul", ["g", "v"], ["y"], name="second"),
    ]
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [5, size])
        for name, size in (("x", 16), ("y", 4))
    ]
    graph = onnx.helper.make_graph(nodes, "g", [ends[0]], [ends[1]], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "plain.onnx")
    path = tmp_path / "quantized.onnx"
    quantization.quantize_dynamic(
        tmp_path / "plain.onnx", path, per_channel=True, weight_type=quantization.QuantType.QInt8
    )
    return path


def dequantized(path: Path, name: str) -> Any:
    onnx = pytest.importorskip("onnx")
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}
    weight, zero = (stored[f"{name}_{part}"].astype(np.float64) for part in ("quantized", "zero_point"))
    return (weight - zero) * stored[f"{name}_scale"]


def test_products_in_float_equal_numpy_on_the_stored_weights(quantized: Path) -> None:
    x = np.random.default_rng(1).normal(size=(5, 16)).astype(np.float32)
    hidden = 1 / (1 + np.exp(-(x @ dequantized(quantized, "w"))))
    exact = hidden @ dequantized(quantized, "v")
    (in_float,) = session(quantized, in_float=EVERY).run(["y"], {"x": x})
    (in_8_bits,) = session(quantized).run(["y"], {"x": x})
    assert np.abs(in_float - exact).max() < 1e-6
    assert np.abs(in_8_bits - exact).max() > 1e-4  # or the test shows nothing


def test_nothing_is_left_of_the_8_bit_arithmetic(quantized: Path) -> None:
    onnx = pytest.importorskip("onnx")
    edited = onnx.load_from_string(float_products(quantized.read_bytes()))
    onnx.checker.check_model(edited)
    operators = [node.op_type for node in edited.graph.node]
    assert operators == ["DequantizeLinear", "MatMul", "Sigmoid", "DequantizeLinear", "MatMul"]


def test_products_that_are_not_asked_for_stay_in_8_bits(quantized: Path) -> None:
    onnx = pytest.importorskip("onnx")
    edited = onnx.load_from_string(float_products(quantized.read_bytes(), "second"))
    onnx.checker.check_model(edited)
    operators = [node.op_type for node in edited.graph.node]
    assert sorted(operators[:5]) == ["Cast", "DynamicQuantizeLinear", "MatMulInteger", "Mul", "Mul"]
    assert operators[5:] == ["Sigmoid", "DequantizeLinear", "MatMul"]


def test_an_input_that_an_8_bit_product_shares_is_still_quantized(tmp_path: Path) -> None:
    """As with attention: queries may be in float beside keys in 8 bits."""
    onnx = pytest.importorskip("onnx")
    quantization = pytest.importorskip("onnxruntime.quantization")
    rng = np.random.default_rng(0)
    stored = [onnx.numpy_helper.from_array(rng.normal(size=(16, 8)).astype(np.float32), name) for name in "wv"]
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [5, size])
        for name, size in (("x", 16), ("y", 8), ("z", 8))
    ]
    nodes = [onnx.helper.make_node("MatMul", ["x", w], [y], name=f"to_{y}") for w, y in ("wy", "vz")]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "plain.onnx")
    path = tmp_path / "quantized.onnx"
    quantization.quantize_dynamic(
        tmp_path / "plain.onnx", path, per_channel=True, weight_type=quantization.QuantType.QInt8
    )
    x = rng.normal(size=(5, 16)).astype(np.float32)
    y, z = session(path, in_float="to_y").run(["y", "z"], {"x": x})
    np.testing.assert_allclose(y, x @ dequantized(path, "w"), atol=1e-5)
    np.testing.assert_array_equal(z, session(path).run(["z"], {"x": x})[0])


def test_one_8_bit_product_is_a_model_of_its_own() -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = integer_product(np.array([[1, -2, 3], [-4, 5, -128]], np.int8))
    x = np.array([[1, 255], [0, 7]], np.uint8)
    (y,) = runtime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(["y"], {"x": x})
    assert y.tolist() == [[-1019, 1273, -32637], [-28, 35, -896]]


def test_a_model_without_8_bit_products_stays_as_it_is(quantized: Path) -> None:
    plain = quantized.with_name("plain.onnx").read_bytes()
    assert float_products(plain) == plain


@pytest.mark.parametrize("end", [10, 200])
def test_a_cut_file_is_refused(quantized: Path, end: int) -> None:
    with pytest.raises(InputError, match="not an onnx file"):
        float_products(quantized.read_bytes()[:end])
