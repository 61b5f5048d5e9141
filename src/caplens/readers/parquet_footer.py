"""How many values the columns of a parquet file say they have, read from its footer by ourselves.

pyarrow answers the same question, but where the statistics of a column are damaged it ends the process for it: the call
is declared to raise nothing, and raises. https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, BinaryIO

from caplens.core.errors import InputError

_TAIL = 8  # the length of the footer in four bytes, and PAR1
_ROW_GROUPS, _COLUMNS, _COLUMN_METADATA, _NUM_VALUES = 4, 1, 3, 5  # FileMetaData, RowGroup, ColumnChunk, ColumnMetaData
_FIXED = {3: 1, 7: 8}  # bytes of a byte and of a double
_BOOLEANS, _INTEGERS, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), (4, 5, 6), 8, (9, 10), 11, 12
_DEEPEST = 16
"""Nested values of a footer; the format has seven."""


def column_values(file: str | BinaryIO, metadata: Any, where: str) -> list[list[int]]:
    """Return for every row group how many values each of its columns declares; `metadata` is what pyarrow read."""
    try:
        compact = _Compact(_footer(file))
        values = [
            [
                sum(
                    max(0, compact.integer()) for _ in compact.find(_COLUMN_METADATA) for _ in compact.find(_NUM_VALUES)
                )
                for _ in compact.find(_COLUMNS)
                for _ in compact.elements()
            ]
            for _ in compact.find(_ROW_GROUPS)
            for _ in compact.elements()
        ]
        if [len(columns) for columns in values] != [metadata.num_columns] * metadata.num_row_groups:
            raise ValueError
        return values
    except (IndexError, ValueError):
        raise InputError("not parquet: its footer is damaged", where=where) from None


def _footer(file: str | BinaryIO) -> bytes:
    with open(file, "rb") if isinstance(file, str) else nullcontext(file) as opened:
        end = opened.seek(0, io.SEEK_END)
        opened.seek(max(0, end - _TAIL))
        length = int.from_bytes(opened.read(4), "little")
        opened.seek(max(0, end - _TAIL - length))
        return opened.read(length)


class _Compact:
    """Walks through Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def find(self, wanted: int) -> Iterator[None]:
        """Go through a struct and stop before the value of the wanted field, which the caller reads."""
        for field, kind in self._fields():
            if field == wanted:
                yield
            else:
                self._skip(kind, _DEEPEST)

    def elements(self) -> Iterator[None]:
        """Go through a list and stop before every element, which the caller reads."""
        size, _ = self._list_header()
        for _ in range(size):
            yield

    def integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _varint(self) -> int:
        number, shift = 0, 0
        while shift < 70:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
        raise ValueError

    def _fields(self) -> Iterator[tuple[int, int]]:
        """The number and the type of every field of a struct, each before its value."""
        field = 0
        while header := self._byte():
            field = field + (header >> 4) if header >> 4 else self.integer()
            yield field, header & 15

    def _list_header(self) -> tuple[int, int]:
        header = self._byte()
        return self._varint() if header >> 4 == 15 else header >> 4, header & 15

    def _skip(self, kind: int, depth: int) -> None:
        if depth == 0:
            raise ValueError
        if kind in _INTEGERS:
            self._varint()
        elif kind in _FIXED:
            self._at += _FIXED[kind]
        elif kind == _BINARY:
            length = self._varint()
            self._at += length
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth - 1)
        elif kind in _LISTS:
            size, inner = self._list_header()
            if inner in _BOOLEANS:  # a byte each, unlike those that are fields
                self._at += size
            else:
                for _ in range(size):
                    self._skip(inner, depth - 1)
        elif kind == _MAP:
            if size := self._varint():
                kinds = self._byte()
                for _ in range(size):
                    self._skip(kinds >> 4, depth - 1)
                    self._skip(kinds & 15, depth - 1)
        elif kind not in _BOOLEANS:
            raise ValueError
