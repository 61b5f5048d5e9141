"""json as people have it: COCO results and annotations, lists of records, ``{id: caption}``, ``{id: [references]}``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from caplens.core.errors import InputError
from caplens.readers.rows import Row, check_text, check_texts, read_text, row_from_fields


def read(path: Path) -> Iterator[Row]:
    text = read_text(path)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not json: {error.msg}", where=f"{path}, line {error.lineno}, column {error.colno}") from None
    if isinstance(content, list):
        return _records(content, path)
    if isinstance(content, dict):
        if "annotations" in content:
            return _annotations(content, path)
        json.loads(text, object_pairs_hook=lambda pairs: _refuse_duplicates(pairs, path))
        return _mapping(content, path)
    raise InputError(f"expected a list or an object, found {content!r:.40}", where=str(path))


def _records(records: list[Any], path: Path) -> Iterator[Row]:
    if not records:
        raise InputError("the list is empty", where=str(path))
    for number, fields in enumerate(records, 1):
        place = f"{path}, row {number}"
        if not isinstance(fields, dict):
            raise InputError(f"each entry must be an object, not {fields!r:.40}", where=place)
        yield row_from_fields(fields, place, number, path.parent)


def _annotations(content: dict[str, Any], path: Path) -> Iterator[Row]:
    """COCO annotations: one record per caption, its own id beside the picture's; file names stand in a second list."""
    names = {image["id"]: image.get("file_name") for image in content.get("images", ()) if "id" in image}
    records = [
        {**fields, "id": fields["image_id"], "image": names.get(fields["image_id"])}
        if isinstance(fields, dict) and "image_id" in fields
        else fields
        for fields in content["annotations"]
    ]
    return _records(records, path)


def _mapping(content: dict[str, Any], path: Path) -> Iterator[Row]:
    if not content:
        raise InputError("the object is empty", where=str(path))
    for number, (key, value) in enumerate(content.items(), 1):
        place = f"{path}, row {number}, id {key!r}"
        if isinstance(value, dict):
            yield row_from_fields({"id": key, **value}, place, number, path.parent)
        elif isinstance(value, list):
            yield Row(key, place, references=check_texts(value, place))
        else:
            yield Row(key, place, caption=check_text(value, "the caption", place))


def _refuse_duplicates(pairs: list[tuple[str, Any]], path: Path) -> None:
    """Python's reader keeps the last of two equal keys silently; a caption would be lost."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise InputError(f"id {key!r} stands twice", where=str(path), remedy="one entry per id")
        seen.add(key)
