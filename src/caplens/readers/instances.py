"""COCO's instance annotations: which things people outlined in every picture."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

from caplens.core.errors import InputError
from caplens.readers.source import Source
from caplens.readers.strict_json import JsonStream


def read_instances(path: str | os.PathLike[str]) -> dict[str, frozenset[str]]:
    """Return the names of the things in every picture, by its number and by its file's name without the ending."""
    names: dict[Any, str] = {}
    files: dict[Any, str] = {}
    categories_of: dict[Any, set[Any]] = {}
    with Source(path) as source:
        stream = JsonStream(source)
        if stream.peek() != "{":
            raise _not_instances(source.name)
        for key in stream.members():
            if key not in ("categories", "images", "annotations"):
                stream.skip()
                continue
            for number in stream.elements():
                entry = stream.value()
                try:
                    if key == "categories":
                        names[entry["id"]] = entry["name"]
                    elif key == "images":
                        files[entry["id"]] = PurePath(entry.get("file_name", "")).stem
                    else:
                        categories_of.setdefault(entry["image_id"], set()).add(entry["category_id"])
                except (TypeError, KeyError, AttributeError) as error:
                    raise InputError(f"an entry lacks {error}", where=f"{source.name}, {key} {number}") from None
        stream.finish()
        if not names or not categories_of:
            raise _not_instances(source.name)
    things: dict[str, frozenset[str]] = {}
    for image in {*files, *categories_of}:  # a picture in which nobody outlined anything is known too
        seen = frozenset(names[category] for category in categories_of.get(image, ()) if category in names)
        things[str(image)] = seen
        if files.get(image):
            things[files[image]] = seen
    return things


def _not_instances(where: str) -> InputError:
    return InputError(
        "not COCO's instance annotations", where=where, remedy="give instances_val2014.json or a file like it"
    )
