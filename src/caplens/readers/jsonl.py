"""jsonl: one object per line, ``{"id", "caption", "image"|"video", "references"}``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from caplens.core.errors import InputError
from caplens.readers.rows import Row, row_from_fields, text_lines


def read(path: Path) -> Iterator[Row]:
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        place = f"{path}, row {number}"
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"not json: {error.msg} at column {error.colno}", where=place) from None
        if not isinstance(fields, dict):
            raise InputError(f"each line must be an object, not {line.strip():.40}", where=place)
        yield row_from_fields(fields, place, number, path.parent)
