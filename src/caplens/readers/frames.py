"""Tables that are in memory already: a pandas DataFrame, a Hugging Face ``datasets.Dataset``.

Neither package is imported: a table is known by what it can do.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from caplens.core.errors import InputError
from caplens.readers.columns import ColumnChoice
from caplens.readers.limits import ReadLimits
from caplens.readers.rows import Row
from caplens.readers.source import Source
from caplens.readers.table import table_columns, table_record

_ROWS_AT_ONCE = 256
_MISSING = ("NAType", "NaTType")


def is_frame(source: object) -> bool:
    """Whether something is a table that `caplens.read` takes."""
    return _is_dataset(source) or (hasattr(source, "columns") and hasattr(source, "iloc"))


def _is_dataset(source: object) -> bool:
    # One that can only be gone through once has no length; its pictures could not be found again.
    return all(hasattr(source, name) for name in ("column_names", "with_format", "__len__"))


def read(source: Any, choice: ColumnChoice, limits: ReadLimits) -> Iterator[Row]:
    where = f"the {type(source).__name__}"
    names = source.column_names if _is_dataset(source) else list(source.columns)
    if isinstance(names, dict):
        raise InputError(f"has splits ({', '.join(names)[:80]})", where=where, remedy="choose one: read(data['test'])")
    columns = table_columns([str(name) for name in names], choice, where)
    cells_of = _dataset_cells if _is_dataset(source) else _pandas_cells
    for number, cells in enumerate(cells_of(source, columns.names), 1):
        yield table_record(cells, columns, f"{where}, row {number}", number, "", limits).row_of(columns)


def _pandas_cells(frame: Any, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    originals = {str(name): name for name in frame.columns}
    for values in zip(*(frame[originals[name]] for name in names), strict=True):
        yield {name: _plain(value) for name, value in zip(names, values, strict=True)}


def _plain(value: Any) -> Any:
    """A cell as Python's own kind of value; pandas has several ways to say that it is empty."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if type(value).__name__ in _MISSING or (isinstance(value, float) and value != value):
        return None
    return value


def _dataset_cells(dataset: Any, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    # As arrow, pictures stay packed; otherwise every one of them would be decoded here.
    stored = dataset.with_format("arrow")
    row = 0
    for table in stored.iter(batch_size=_ROWS_AT_ONCE):
        pictures = [name for name in names if _has_bytes(table.schema.field(name).type)]
        batch = table.select([name for name in names if name not in pictures]).to_pylist()
        for name in pictures:
            paths = _paths(table.column(name))
            for position, cells in enumerate(batch):
                cells[name] = DatasetPicture(stored, row + position, name, paths[position])
        yield from batch
        row += len(batch)


def _has_bytes(kind: Any) -> bool:
    return hasattr(kind, "get_field_index") and kind.get_field_index("bytes") >= 0


def _paths(column: Any) -> list[str | None]:
    return [path for chunk in column.chunks for path in chunk.field("path").to_pylist()]


@dataclass(frozen=True)
class DatasetPicture:
    """A picture inside a data set; opens as bytes."""

    dataset: Any = field(repr=False, compare=False)
    row: int
    column: str
    path: str | None

    @property
    def name(self) -> str:
        return f"row {self.row + 1} of the data set, {self.column}" + (f" {self.path}" if self.path else "")

    def open(self) -> BinaryIO:
        cell = self.dataset[self.row].column(self.column)[0].as_py() or {}
        if cell.get("bytes") is not None:
            return io.BytesIO(cell["bytes"])
        if not self.path:
            return io.BytesIO()
        file = Source(self.path)
        file.check_file()
        return open(file.path, "rb")
