"""json as people have it: COCO results and annotations, Karpathy's files, lists of records, ``{id: caption(s)}``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from caplens.core.errors import InputError
from caplens.readers.columns import ColumnChoice
from caplens.readers.rows import Record, Row, check_text, check_texts, shortened, shown
from caplens.readers.source import Source
from caplens.readers.strict_json import JsonStream

_MOST_BEFORE_THE_LISTS = 50
"""Remarks ("info", "licenses") that may come before a data set's lists, until it is taken for {id: caption}."""


def read(source: Source, choice: ColumnChoice) -> Iterator[Row]:
    stream = JsonStream(source)
    start = stream.peek()
    if start == "[":
        yield from _records(stream, choice)
    elif start == "{":
        yield from _object(stream, choice)
    elif not start:
        raise InputError("the file is empty", where=source.name)
    else:
        raise InputError(f"expected a list or an object, found {shown(stream.value())}", where=source.name)
    stream.finish()


def _records(stream: JsonStream, choice: ColumnChoice) -> Iterator[Row]:
    number = 0
    for number in stream.elements():
        yield _record(stream.value(), number, stream.source).row(choice)
    if not number:
        raise InputError("the list is empty", where=stream.source.name)


def _record(fields: Any, number: int, source: Source) -> Record:
    place = f"{source.name}, row {number}"
    if not isinstance(fields, dict):
        raise InputError(f"each entry must be an object, not {shown(fields)}", where=place)
    return Record(fields, place, number, source.folder)


def _object(stream: JsonStream, choice: ColumnChoice) -> Iterator[Row]:
    """The rows of an object: a data set with lists of images or annotations, or a mapping by id."""
    keys = stream.members()
    before: list[tuple[str, Any]] = []
    for key in keys:
        if (key == "images" and stream.begins("[{")) or (key == "annotations" and stream.begins("[{", "[]")):
            yield from _dataset(stream, chain([key], keys), choice)
            return
        before.append((key, stream.value()))
        if len(before) == _MOST_BEFORE_THE_LISTS:
            break
    entries = chain(before, ((key, stream.value()) for key in keys))
    number = 0
    for number, (key, value) in enumerate(entries, 1):
        yield _entry(key, value, number, stream.source, choice)
    if not number:
        raise InputError("the object is empty", where=stream.source.name)


def _entry(key: str, value: Any, number: int, source: Source, choice: ColumnChoice) -> Row:
    place = f"{source.name}, row {number}, id {shortened(key)}"
    if isinstance(value, dict):
        return Record({"id": key, **value}, place, number, source.folder).row(choice)
    if isinstance(value, list):
        return Row(key, place, texts=check_texts(value, "reference", place))
    return Row(key, place, caption=check_text(value, "the caption", place))


def _dataset(stream: JsonStream, keys: Iterator[str], choice: ColumnChoice) -> Iterator[Row]:
    """COCO annotations (a list of images, a list of captions) or Karpathy's file (images with their sentences)."""
    file_names: dict[Any, Any] = {}
    early: list[Record] = []
    has_images = has_rows = False
    for key in keys:
        if key == "images":
            has_images = True
            for number in stream.elements():
                record = _record(stream.value(), number, stream.source)
                if "sentences" in record.fields:
                    has_rows = True
                    yield _karpathy(record, choice)
                elif isinstance(record.fields.get("id"), str | int):
                    file_names[record.fields["id"]] = record.fields.get("file_name")
            continue
        if key != "annotations":
            stream.skip()
            continue
        for number in stream.elements():
            has_rows = True
            record = _record(stream.value(), number, stream.source)
            if has_images:
                yield _annotation(record, file_names, choice)
            else:
                early.append(record)
    for record in early:
        yield _annotation(record, file_names, choice)
    if not has_rows:
        raise InputError(
            "the images have neither annotations nor sentences",
            where=stream.source.name,
            remedy="give the file of captions, not of images alone",
        )


def _annotation(record: Record, file_names: dict[Any, Any], choice: ColumnChoice) -> Row:
    """One caption of a picture: its own id stands beside the picture's, and the picture's is what others name."""
    fields = record.fields
    image_id = fields.get("image_id")
    if isinstance(image_id, str | int):
        fields["id"] = image_id
        fields["image"] = file_names.get(image_id) or fields.get("image")
    return record.row(choice)


def _karpathy(record: Record, choice: ColumnChoice) -> Row:
    """A picture with its sentences; it is called by its COCO number where it has one, else by its file name."""
    fields = record.fields
    sentences = fields.pop("sentences")
    if not isinstance(sentences, list) or not all(isinstance(entry, dict) for entry in sentences):
        raise InputError(f"sentences must be a list of objects, not {shown(sentences)}", where=record.place)
    fields["captions"] = [entry.get("raw") for entry in sentences]
    folder, name = fields.get("filepath"), fields.get("filename")
    if isinstance(folder, str) and isinstance(name, str):
        fields["image"] = f"{folder}/{name}"
    return record.row(choice)
