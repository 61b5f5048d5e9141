"""parquet: text columns, lists of references, and pictures inside as Hugging Face writes them (``{bytes, path}``).

Texts are read as a dictionary and an index, as they are stored: a caption that is repeated a million times costs one.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.readers.columns import ColumnChoice, Columns
from caplens.readers.limits import Budget
from caplens.readers.parquet_footer import column_values
from caplens.readers.rows import Row
from caplens.readers.source import Source
from caplens.readers.table import table_columns, table_record

_ROWS_AT_ONCE = 256
_PICTURES_AT_ONCE = 16


def read(source: Source, choice: ColumnChoice) -> Iterator[Row]:
    pyarrow = require("pyarrow", purpose="reading parquet")
    source.check_file()
    try:
        yield from _rows(source, choice)
    except MemoryError:  # Arrow's own is an ArrowException too
        raise InputError("needs more memory than there is", where=source.name) from None
    except UnicodeDecodeError:
        raise InputError("holds text that is not UTF-8", where=source.name, remedy="write it again as UTF-8") from None
    except (pyarrow.ArrowException, OSError) as error:
        raise _damaged(error, source.name) from None


def _damaged(error: Exception, where: str) -> InputError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError(f"not parquet: {reason[:160]}", where=where)


def _rows(source: Source, choice: ColumnChoice) -> Iterator[Row]:
    from pyarrow.parquet import ParquetFile

    file = source.random_access()
    source.budget.packed_bytes = os.path.getsize(file) if isinstance(file, str) else source.budget.bytes
    with ParquetFile(file, pre_buffer=False) as plain:
        schema, metadata = plain.schema_arrow, plain.metadata
        leaves = [plain.schema.column(position) for position in range(metadata.num_columns)]
    columns = table_columns(schema.names, choice, source.name)
    # Pictures stay where they are; only those of a file that is not on disk are kept in memory.
    pictures = {
        name: path
        for name in (columns.image, columns.video)
        if name is not None and isinstance(file, str) and (path := _bytes_inside(schema, name))
    }
    paths = [leaf.path for leaf in leaves if _is_wanted(leaf.path, columns, pictures)]
    texts = [leaf.path for leaf in leaves if leaf.path in paths and leaf.physical_type == "BYTE_ARRAY"]
    wanted = {place: not leaf.max_repetition_level for place, leaf in enumerate(leaves) if leaf.path in paths}
    _check_declared_size(metadata, wanted, source, file)
    number = 0
    with ParquetFile(file, read_dictionary=texts, pre_buffer=False) as table:
        for group in range(metadata.num_row_groups):
            row_in_group = 0
            for batch in table.iter_batches(_ROWS_AT_ONCE, [group], paths, use_threads=False):
                for column in batch.columns:
                    total, longest = _text_bytes(column)
                    source.budget.check_field(longest, "one value", f"{source.name}, after row {number}")
                    source.budget.spend_bytes(total)
                for cells in _without_dictionaries(batch).to_pylist():
                    number += 1
                    source.budget.spend_row()
                    place = f"{source.name}, row {number}"
                    for name, path in pictures.items():
                        named = (cells.get(name) or {}).get("path")
                        cells[name] = ParquetPicture(source.path, path, group, row_in_group, number, named)
                    record = table_record(cells, columns, place, number, source.folder, source.limits)
                    yield record.row_of(columns)
                    row_in_group += 1


def _bytes_inside(schema: Any, name: str) -> str | None:
    """The path of the column that holds a picture's bytes, None where the column holds something else."""
    import pyarrow.types as types

    kind = schema.field(name).type
    if types.is_struct(kind) and (position := kind.get_field_index("bytes")) >= 0:
        kind, name = kind.field(position).type, f"{name}.bytes"
    return name if types.is_binary(kind) or types.is_large_binary(kind) else None


def _is_wanted(path: str, columns: Columns, pictures: dict[str, str]) -> bool:
    for name in columns.names:
        if path == name or path.startswith(f"{name}."):
            return name not in pictures or path == f"{name}.path"
    return False


def _check_declared_size(metadata: Any, leaves: dict[int, bool], source: Source, file: str | BinaryIO) -> None:
    """Refuse a file that says itself that it is too large, before anything is unpacked.

    `leaves` are the columns that will be read, each with whether it has one value a row.
    """
    if metadata.num_rows > source.limits.rows:
        raise source.limits.exceeded("rows", f"has {metadata.num_rows:,} rows", source.name)
    declared = Budget(source.limits, source.name, source.budget.packed_bytes)
    in_lists = None if all(leaves.values()) else column_values(file, metadata, source.name)
    for group in range(metadata.num_row_groups):
        # A repeated value takes almost no room in the file, and four bytes of index once it is read.
        rows = metadata.row_group(group)
        values = [
            rows.num_rows if flat or in_lists is None else in_lists[group][position]
            for position, flat in leaves.items()
        ]
        declared.spend_bytes(rows.total_byte_size + 4 * sum(values))


def _text_bytes(array: Any) -> tuple[int, int]:
    """How many bytes the values of an array have as Python objects, all together and the longest."""
    import pyarrow.compute
    import pyarrow.types as types

    kind = array.type
    if types.is_dictionary(kind) and not types.is_primitive(kind.value_type):
        lengths = pyarrow.compute.binary_length(array.dictionary)
        total = pyarrow.compute.sum(lengths.take(array.indices))
        return total.as_py() or 0, pyarrow.compute.max(lengths).as_py() or 0
    if types.is_struct(kind):
        parts = [_text_bytes(part) for part in array.flatten()]
        return sum(total for total, _ in parts), max((longest for _, longest in parts), default=0)
    if types.is_list(kind) or types.is_large_list(kind):
        return _text_bytes(array.flatten())
    return array.nbytes, 0


def _without_dictionaries(batch: Any) -> Any:
    """The same values written out, which Python takes over many times faster."""
    import pyarrow

    columns = [column.cast(_plain_type(column.type)) for column in batch.columns]
    return pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain_type(kind: Any) -> Any:
    import pyarrow
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return kind.value_type
    if types.is_list(kind) or types.is_large_list(kind):
        values = kind.value_field.with_type(_plain_type(kind.value_type))
        return pyarrow.list_(values) if types.is_list(kind) else pyarrow.large_list(values)
    if types.is_struct(kind):
        return pyarrow.struct([entry.with_type(_plain_type(entry.type)) for entry in kind])
    return kind


@dataclass(frozen=True)
class ParquetPicture:
    """A picture inside a parquet file; opens as bytes, pickles as a few values."""

    file: str
    column: str
    group: int
    row: int
    """Counts from 0 within the row group."""
    number: int
    """Counts from 1 within the file."""
    path: str | None = None
    """What the picture was called before it was put into the file."""

    @property
    def name(self) -> str:
        return f"{self.file}, row {self.number}" + (f", {self.path}" if self.path else "")

    def open(self) -> BinaryIO:
        pyarrow = require("pyarrow", purpose="reading parquet")
        try:
            data = _PICTURES.read(self)
        except pyarrow.ArrowException as error:
            raise _damaged(error, self.name) from None
        if data is not None:
            return io.BytesIO(data)
        if not self.path:
            return io.BytesIO()
        # A cell without bytes names a file beside this one.
        beside = Source(Path(self.file).parent / self.path)
        beside.check_file()
        return open(beside.path, "rb")


class _PictureCursor:
    """Walks through the pictures of one row group: they are mostly asked for in order, and a group may be gigabytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[object, ...] = ()
        self._batches: Iterator[Any] = iter(())
        self._batch: Any = None
        self._start = 0

    def read(self, picture: ParquetPicture) -> bytes | None:
        """The bytes of a picture, None where the cell has none."""
        from pyarrow.parquet import ParquetFile

        with self._lock:
            status = os.stat(picture.file)
            key = (picture.file, picture.column, picture.group, status.st_size, status.st_mtime_ns)
            if key != self._key or picture.row < self._start:
                table = ParquetFile(picture.file, read_dictionary=[picture.column], pre_buffer=False)
                self._batches = table.iter_batches(
                    _PICTURES_AT_ONCE, [picture.group], [picture.column], use_threads=False
                )
                self._key, self._batch, self._start = key, next(self._batches, None), 0
            while self._batch is not None and picture.row >= self._start + self._batch.num_rows:
                self._start += self._batch.num_rows
                self._batch = next(self._batches, None)
            if self._batch is None:
                self._key = ()
                raise InputError("is not there any more", where=picture.name)
            cell = self._batch.column(0)[picture.row - self._start].as_py()
        data = cell.get("bytes") if isinstance(cell, dict) else cell
        return data if isinstance(data, bytes) else None


_PICTURES = _PictureCursor()
