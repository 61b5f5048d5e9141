"""TensorFlow checkpoints, read without TensorFlow: against what it wrote and files written here."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import numpy as np
import pytest

from caplens.errors import InputError
from caplens.tensorflow_bundle import read_bundle

# Written by tf.compat.v1.train.Saver of TensorFlow 2.21: layer/weight, layer/bias and step.
REAL_INDEX = (
    "AAAGCAEaAggBAAoPbGF5ZXIvYmlhcwgBEgQSAggCKAg1RT8WiAYGFXdlaWdodAgBEggSAggCEgIIAyAIKBg1TcnANwAEDXN0ZXAI"
    "AxIAICAoBDVi6CNmAAAAAAEAAAAAuTelKAAAAAABAAAAAMDyobAAAQJ0AF8AAAAAAQAAAABTnqMlZAhxDgAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAFf7gIskdUfb"
)
REAL_DATA = "AACAPwAAAMAAAAAAAACAPgAAAD8AAEA/AACAPwAAoD+cAAAA"
KINDS = {"float32": 1, "float64": 2, "int32": 3, "int64": 9}


def varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def crc32c(data: bytes) -> int:
    """Bit by bit, as the polynomial says."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 * (value & 1)
    return value ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def block(pairs: list[tuple[bytes, bytes]], every: int = 3) -> bytes:
    """Keys share their beginnings, with a restart at every few of them."""
    made, restarts, before = b"", [], b""
    for number, (key, value) in enumerate(pairs):
        shared = 0
        if number % every == 0:
            restarts.append(len(made))
        else:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        made += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    return made + b"".join(struct.pack("<I", place) for place in restarts) + struct.pack("<I", len(restarts))


def write_bundle(prefix: Path, tensors: dict[str, np.ndarray], per_block: int = 4, kind: int = 0) -> None:
    data, pairs = b"", [(b"", b"\x08\x01\x1a\x02\x08\x01")]  # one shard, little-endian, version 1
    for name, tensor in sorted(tensors.items()):
        raw = tensor.tobytes()
        sizes = [b"\x08" + varint(size) for size in tensor.shape]
        shape = b"".join(b"\x12" + varint(len(size)) + size for size in sizes)
        entry = b"\x08" + varint(KINDS[tensor.dtype.name]) + b"\x12" + varint(len(shape)) + shape
        if data:  # protocol buffers leave out a zero
            entry += b"\x20" + varint(len(data))
        pairs.append((name.encode(), entry + b"\x28" + varint(len(raw)) + b"\x35" + masked(raw)))
        data += raw
    content, listed = b"", []
    for start in range(0, len(pairs), per_block):
        some = pairs[start : start + per_block]
        handle = varint(len(content)) + varint(len(made := block(some)))
        content += made + bytes([kind]) + masked(made + bytes([kind]))
        listed.append((some[-1][0], handle))
    handles = b""
    for made in (block([]), block(listed)):
        handles += varint(len(content)) + varint(len(made))
        content += made + b"\0" + masked(made + b"\0")
    footer = handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    prefix.with_name(prefix.name + ".index").write_bytes(content + footer)
    prefix.with_name(prefix.name + ".data-00000-of-00001").write_bytes(data)


def tensors() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    made = {f"layer{number}/weight": random.normal(size=(3, number + 1)).astype(np.float32) for number in range(9)}
    return {**made, "step": np.array(156, np.int32), "wide": random.normal(size=7), "count": np.arange(300)}


def test_a_bundle_comes_back(tmp_path: Path) -> None:
    written = tensors()
    write_bundle(tmp_path / "model.ckpt", written)
    found = read_bundle(tmp_path / "model.ckpt")
    assert found.keys() == written.keys()
    for name, tensor in written.items():
        assert found[name].dtype == tensor.dtype
        assert np.array_equal(found[name], tensor)
        assert found[name].shape == tensor.shape


def test_what_tensorflow_wrote(tmp_path: Path) -> None:
    (tmp_path / "small.ckpt.index").write_bytes(base64.b64decode(REAL_INDEX))
    (tmp_path / "small.ckpt.data-00000-of-00001").write_bytes(base64.b64decode(REAL_DATA))
    found = read_bundle(tmp_path / "small.ckpt")
    assert found["layer/weight"].tolist() == [[0, 0.25, 0.5], [0.75, 1, 1.25]]
    assert found["layer/bias"].tolist() == [1, -2]
    assert found["step"] == 156


def test_damage_is_noticed(tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", tensors())
    data, index = tmp_path / "m.data-00000-of-00001", tmp_path / "m.index"
    whole, table = data.read_bytes(), index.read_bytes()
    data.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    with pytest.raises(InputError, match="checksum"):
        read_bundle(tmp_path / "m")
    data.unlink()
    with pytest.raises(InputError, match="not here"):
        read_bundle(tmp_path / "m")
    data.write_bytes(whole)
    for broken in (b"", table[:-1], table[:20] + table[60:], b"\xff" * len(table)):
        index.write_bytes(broken)
        with pytest.raises(InputError, match="damaged"):
            read_bundle(tmp_path / "m")
    write_bundle(tmp_path / "m", tensors(), kind=1)
    with pytest.raises(InputError, match="compressed"):
        read_bundle(tmp_path / "m")
    with pytest.raises(InputError, match="no checkpoint index"):
        read_bundle(tmp_path / "other")
