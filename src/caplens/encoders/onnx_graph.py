"""Edit onnx files as data: show an inner tensor, compute 8-bit matrix products in float; write one such product.

An onnx file is one message of Google's protocol buffers. These edits need only its outline, so they walk the fields by
hand: the result is the same byte for byte on every machine, whatever is installed, and can be named by its sum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError

_FLOAT, _UINT8, _INT8, _INT32 = 1, 2, 3, 6  # of TensorProto.DataType
_INT = 2  # AttributeProto.INT
_IR_VERSION, _GRAPH, _OPSET = 1, 7, 8  # of ModelProto
_NODE, _NAME, _INITIALIZER, _INPUT, _OUTPUT = 1, 2, 5, 11, 12  # of GraphProto
_BYTES = 2  # the wire type of strings and messages

EVERY = ".*"
"""A pattern for the names of products: all of them."""


def expose(model: bytes, tensor: str) -> bytes:
    """Return the same model with one of its inner float tensors as a further output.

    Messages in this encoding merge when they are put one after the other, so a few bytes at the end add an output to
    the graph: ModelProto{graph (7): {output (12): {name (1), type (2): {tensor_type (1): {elem_type (1)}}}}}.
    """
    return model + _field(_GRAPH, _end(_OUTPUT, tensor, _FLOAT))


def integer_product(weight: NDArray[np.int8]) -> bytes:
    """Return a model of one 8-bit product, y = x · weight: x in 8 bits without sign, y in 32 bits."""
    stored = b"".join(_number(1, side) for side in weight.shape) + _number(2, _INT8)
    stored += _field(8, b"weight") + _field(9, weight.tobytes())
    graph = _node("MatMulInteger", ["x", "weight"], "y") + _field(_NAME, b"product") + _field(_INITIALIZER, stored)
    graph += _end(_INPUT, "x", _UINT8) + _end(_OUTPUT, "y", _INT32)
    return _number(_IR_VERSION, 8) + _field(_OPSET, _number(2, 13)) + _field(_GRAPH, graph)


def float_products(model: bytes, which: str = EVERY) -> bytes:
    """Return the same model with 8-bit matrix products as float products of the dequantized weight.

    `which` is a pattern for the names of products; others stay in 8 bits.

    A quantizer turned each product x W into four steps: x to 8 bits (DynamicQuantizeLinear), the product of integers
    (MatMulInteger), its conversion (Cast) and its scale (Mul, by a scale that another Mul makes). On processors without
    VNNI the integer product overflows. Here x is multiplied by scale · (W - zero point), and x stays as it is; the
    stored weights are not touched.
    """
    return b"".join(
        _field(_GRAPH, _float_graph(content, which)) if number == _GRAPH else raw
        for number, content, raw in _fields(model)
    )


class _Node:
    """A node of a graph: inputs (1), outputs (2), name (3) and operator (4)."""

    def __init__(self, content: memoryview) -> None:
        texts: dict[int, list[str]] = {1: [], 2: [], 3: [], 4: []}
        for number, value, _ in _fields(content):
            if number in texts:
                texts[number].append(str(value, "utf-8"))
        self.inputs, self.outputs = texts[1], texts[2]
        self.name, self.operator = "".join(texts[3]), texts[4][0]


def _float_graph(graph: memoryview, which: str) -> bytes:
    fields = list(_fields(graph))
    nodes = {position: _Node(content) for position, (number, content, _) in enumerate(fields) if number == _NODE}
    consumer = {name: position for position, node in nodes.items() for name in node.inputs}
    producer = {name: position for position, node in nodes.items() for name in node.outputs}
    products = {position: node for position, node in nodes.items() if node.operator == "MatMulInteger"}
    chosen = {position: node for position, node in products.items() if re.search(which, node.name)}
    in_8_bits = {node.inputs[0] for position, node in products.items() if position not in chosen}
    edited = {
        position: b""
        for position, node in nodes.items()
        if node.operator == "DynamicQuantizeLinear" and not in_8_bits.intersection(node.outputs)
    }
    for position, node in chosen.items():
        quantized, weight, _, zero_point = node.inputs
        cast = consumer[node.outputs[0]]
        scaled = consumer[nodes[cast].outputs[0]]
        scales = producer[next(name for name in nodes[scaled].inputs if name not in nodes[cast].outputs)]
        steps = [nodes[step].operator for step in (producer[quantized], cast, scaled, scales)]
        if steps != ["DynamicQuantizeLinear", "Cast", "Mul", "Mul"]:
            raise InputError(f"is not quantized as expected: {', '.join(steps)} around {node.outputs[0]}")
        scale = next(name for name in nodes[scales].inputs if name not in producer)  # the other is that of x
        dequantized = f"{weight}_float"
        edited[position] = _node("DequantizeLinear", [weight, scale, zero_point], dequantized, axis=1)
        edited[position] += _node(
            "MatMul", [nodes[producer[quantized]].inputs[0], dequantized], nodes[scaled].outputs[0]
        )
        edited.update(dict.fromkeys((cast, scaled, scales), b""))
    return b"".join(edited.get(position, raw) for position, (_, _, raw) in enumerate(fields))


def _end(number: int, name: str, kind: int) -> bytes:
    """Return an input or output as a field of the graph: name (1), type (2): tensor_type (1): elem_type (1)."""
    return _field(number, _field(1, name.encode()) + _field(2, _field(1, _number(1, kind))))


def _node(operator: str, inputs: list[str], output: str, **attributes: int) -> bytes:
    """Return a node as a field of the graph; an attribute is a number here: name (1), value (3), type (20)."""
    content = b"".join(_field(1, name.encode()) for name in inputs) + _field(2, output.encode())
    content += _field(3, output.encode()) + _field(4, operator.encode())
    for name, value in attributes.items():
        content += _field(5, _field(1, name.encode()) + _number(3, value) + _number(20, _INT))
    return _field(_NODE, content)


def _fields(message: bytes | memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Yield the number of every field, its content (empty for numbers), and all its bytes; nothing is copied."""
    view, start = memoryview(message), 0
    while start < len(view):
        key, at = _read_varint(view, start)
        kind, content = key & 7, view[:0]
        if kind == 0:
            _, at = _read_varint(view, at)
        elif kind == _BYTES:
            length, at = _read_varint(view, at)
            content = view[at : at + length]
            at += length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        if kind not in (0, 1, _BYTES, 5) or at > len(view):
            raise InputError("is not an onnx file: it breaks off or holds what no such file holds")
        yield key >> 3, content, view[start:at]
        start = at


def _read_varint(view: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(view) and shift < 64:
        byte = view[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at
    raise InputError("is not an onnx file: it breaks off inside a number")


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first.

    >>> _varint(300).hex()
    'ac02'
    """
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
