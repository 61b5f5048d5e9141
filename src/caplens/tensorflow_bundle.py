"""Read the tensors of a TensorFlow checkpoint (`prefix.index`, `prefix.data-…`) without TensorFlow.

The index is a sorted table as LevelDB writes them: blocks of key-value pairs, a block that lists the blocks, a footer
that says where that one is. A value is a small protocol buffer: type, shape, and where in the data files the raw
numbers lie, with their CRC-32C.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.errors import InputError

MAGIC = 0xDB4775248B80FB57
FOOTER = 48
DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 2: np.dtype("<f8"), 3: np.dtype("<i4"), 9: np.dtype("<i8")}
"""Numbers of TensorFlow's DataType; a checkpoint's other kinds (strings, object graphs) are passed over."""


def read_bundle(prefix: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Name to array, of every plain numeric tensor in the checkpoint."""
    prefix = Path(prefix)
    index = prefix.with_name(prefix.name + ".index")
    if not index.is_file():
        raise InputError("there is no checkpoint index here", where=str(index))
    try:
        entries = dict(_table(index.read_bytes()))
        shards = _single(entries.pop(b"")).get(1, 1)
        data = [
            prefix.with_name(f"{prefix.name}.data-{number:05d}-of-{shards:05d}").read_bytes()
            for number in range(shards)
        ]
        return {
            name.decode(): tensor for name, value in entries.items() if (tensor := _tensor(value, data)) is not None
        }
    except FileNotFoundError as error:
        raise InputError("a part of the checkpoint is not here", where=str(error.filename)) from None
    except (KeyError, IndexError, TypeError, ValueError, struct.error) as error:
        raise InputError(f"not a TensorFlow checkpoint, or a damaged one ({error})", where=str(index)) from None


def _table(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Every pair of the sorted table."""
    footer = content[-FOOTER:]
    if len(content) < FOOTER or struct.unpack("<Q", footer[-8:])[0] != MAGIC:
        raise ValueError("its last bytes are not those of an index")
    place = 0
    for _ in range(2):  # the block of statistics, then the handle of the block that lists the blocks
        start, place = _varint(footer, place)
        size, place = _varint(footer, place)
    for _, handle in _block(content, start, size):
        start, after = _varint(handle, 0)
        size, _ = _varint(handle, after)
        yield from _block(content, start, size)


def _block(content: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The pairs of one block; a key leaves out what it shares with the one before."""
    if content[start + size] != 0:
        raise ValueError("a block is compressed, which TensorFlow does not do in checkpoints")
    block = content[start : start + size]
    restarts = struct.unpack("<I", block[-4:])[0]
    end, place, key = size - 4 * (restarts + 1), 0, b""
    while place < end:
        shared, place = _varint(block, place)
        own, place = _varint(block, place)
        length, place = _varint(block, place)
        key = key[:shared] + block[place : place + own]
        yield key, block[place + own : place + own + length]
        place += own + length


def _tensor(entry: bytes, data: list[bytes]) -> NDArray[Any] | None:
    """BundleEntryProto: 1 type, 2 shape, 3 shard, 4 offset, 5 size, 6 CRC, 7 slices."""
    fields = dict(_fields(entry))
    kind = DTYPES.get(fields.get(1, 0))
    if kind is None or 7 in fields:
        return None
    # TensorShapeProto: 2 dimensions, each with its 1 size.
    shape = [_single(value).get(1, 0) for number, value in _fields(fields.get(2, b"")) if number == 2]
    start = fields.get(4, 0)
    raw = data[fields.get(3, 0)][start : start + fields.get(5, 0)]
    if _masked(_crc32c(raw)) != fields[6]:
        raise ValueError("a tensor's checksum does not fit its bytes")
    return np.frombuffer(raw, kind).reshape(shape)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and values of a protocol buffer, in order."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        if tag & 7 == 0:
            value, place = _varint(message, place)
            yield tag >> 3, value
        elif tag & 7 == 2:
            length, place = _varint(message, place)
            yield tag >> 3, message[place : place + length]
            place += length
        elif tag & 7 == 5:
            yield tag >> 3, struct.unpack_from("<I", message, place)[0]
            place += 4
        else:
            raise ValueError(f"a field of wire type {tag & 7}")


def _single(message: bytes) -> dict[int, Any]:
    return dict(_fields(message))


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, low ones first, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def _crc32c(data: bytes) -> int:
    """Castagnoli's CRC, as the format asks for; the standard library has only the other one."""
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    value = 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 255] ^ value >> 8
    return value ^ 0xFFFFFFFF


def _masked(crc: int) -> int:
    """LevelDB stores checksums rotated and shifted, so that a checksum of checksums stays one."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
