"""Tables: csv, tsv and parquet with the columns id, caption, image or video, references.

In a csv, references are a json list in one cell, or columns reference_1, reference_2, …; in parquet a list column.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.readers.rows import FIELD_NAMES, Row, read_bytes, row_from_fields, text_lines

_LARGEST_CELL = 64 * 1024 * 1024


def read(path: Path) -> Iterator[Row]:
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    records = _parquet(path) if kind.lower() == ".parquet" else _csv(path, "\t" if kind.lower() == ".tsv" else ",")
    for number, (place, fields) in enumerate(records, 1):
        yield row_from_fields(fields, place, number, path.parent)


def _csv(path: Path, delimiter: str) -> Iterator[tuple[str, dict[str, Any]]]:
    csv.field_size_limit(_LARGEST_CELL)
    reader = csv.DictReader(text_lines(path), delimiter=delimiter, strict=True)
    header = reader.fieldnames or []
    known = {name for names in FIELD_NAMES.values() for name in names}
    if not known.intersection(header):
        raise InputError(
            f"the first line has no column we know (found {', '.join(header)[:80]})",
            where=str(path),
            remedy="start with a header such as: id,caption,references",
        )
    number = 0
    try:
        for number, fields in enumerate(reader, 1):
            place = f"{path}, row {number} (line {reader.line_num})"
            if None in fields:
                raise InputError(
                    f"{len(header) + len(fields[None])} cells for {len(header)} columns",
                    where=place,
                    remedy="put text that holds commas into quotes",
                )
            for name in FIELD_NAMES["references"]:
                cell = fields.get(name)
                if cell and cell.lstrip().startswith("["):
                    fields[name] = _json_cell(cell, place)
            # An empty cell is an empty caption; in every other column it means "not given".
            captions = FIELD_NAMES["caption"]
            yield place, {name: cell for name, cell in fields.items() if cell not in ("", None) or name in captions}
    except csv.Error as error:
        raise InputError(f"not csv: {error}", where=f"{path}, row {number + 1}") from None


def _json_cell(cell: str, place: str) -> Any:
    try:
        return json.loads(cell)
    except json.JSONDecodeError:
        raise InputError(
            f"references start like a json list but are none: {cell:.60}",
            where=place,
            remedy='write ["first", "second"]',
        ) from None


def _parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    arrow_invalid = require("pyarrow:ArrowInvalid", purpose="reading parquet")
    parquet_file = require("pyarrow.parquet:ParquetFile", purpose="reading parquet")
    source = io.BytesIO(read_bytes(path)) if path.suffix == ".gz" else path
    try:
        table = parquet_file(source)
        number = 0
        for batch in table.iter_batches():
            for fields in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", fields
    except FileNotFoundError:
        raise InputError("there is no such file", where=str(path), remedy="check the path") from None
    except (arrow_invalid, OSError) as error:
        raise InputError(f"not parquet: {str(error).splitlines()[0]}", where=str(path)) from None
