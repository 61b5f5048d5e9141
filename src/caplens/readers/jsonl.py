"""jsonl: one object per line, ``{"id", "caption", "image"|"video", "references"}``."""

from __future__ import annotations

from collections.abc import Iterator

from caplens.core.errors import InputError
from caplens.readers.columns import ColumnChoice
from caplens.readers.rows import Record, Row, shown
from caplens.readers.source import Source
from caplens.readers.strict_json import parse


def read(source: Source, choice: ColumnChoice) -> Iterator[Row]:
    for number, line in source.lines():
        if not line.strip():
            continue
        place = f"{source.name}, row {number}"
        fields = parse(line, place, source.limits)
        if not isinstance(fields, dict):
            raise InputError(f"each line must be an object, not {shown(fields)}", where=place)
        yield Record(fields, place, number, source.folder).row(choice)
