"""What every reader yields: an id, some of caption, references, image and video, and the place they came from."""

from __future__ import annotations

import os
import re
import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caplens.core.captions import BinarySource, Media
from caplens.core.errors import InputError
from caplens.readers.columns import ColumnChoice, Columns, find_columns, listed
from caplens.readers.limits import ReadLimits
from caplens.readers.media import BytesMedia, from_data_address, is_data_address
from caplens.readers.strict_json import parse


@dataclass(slots=True)
class Row:
    """One record of a file; `place` says where it stands, for messages."""

    id: str
    place: str
    caption: str | None = None
    texts: list[str] | None = None
    """A list where one caption is usual: several captions to judge, or references."""
    references: list[str] | None = None
    image: Media | None = None
    video: Media | None = None
    group: str | None = None
    """The id of the picture, where the caption has an id of its own beside it."""
    located: bool = False
    """Whether the picture has been looked for already in the folder for pictures."""


@dataclass(slots=True)
class Record:
    """Named values and where they stand."""

    fields: dict[Any, Any]
    place: str
    number: int
    """Counts from 1; the id of a row that has none."""
    folder: str
    """Where the paths of pictures start."""

    def row(self, choice: ColumnChoice) -> Row:
        """The row of a record whose columns are known by their names alone; null means not given."""
        names = tuple([name for name, value in self.fields.items() if value is not None])
        return self.row_of(find_columns(names, choice, self.place))

    def row_of(self, columns: Columns) -> Row:
        """The row of a record with these columns."""
        value_of = self.fields.get
        caption, references, image = value_of(columns.caption), value_of(columns.references), value_of(columns.image)
        if references is None and columns.numbered_references:
            numbered = map(value_of, columns.numbered_references)
            references = [text for text in numbered if text is not None] or None
        row_id, group = value_of(columns.id), value_of(columns.group)
        id_text = _id_from(image, self.number) if row_id is None else _id_text(row_id, self.place)
        place = f"{self.place}, id {shortened(id_text)}"
        if caption is None and references is None:
            raise InputError(
                f"neither a caption nor references, only {listed(list(self.fields))}",
                where=place,
                remedy="name the columns id, caption, references, image or video, or choose with --caption-column",
            )
        several = isinstance(caption, list | tuple)
        return Row(
            id=id_text,
            place=place,
            caption=None if caption is None or several else check_text(caption, "the caption", place),
            texts=check_texts(caption, "caption", place) if several else None,
            references=None if references is None else check_texts(references, "reference", place),
            image=media_of(image, "image", self.folder, place),
            video=media_of(value_of(columns.video), "video", self.folder, place),
            group=None if group is None else _id_text(group, place),
        )


def _id_from(image: object, number: int) -> str:
    """The id of a row that has none: its picture's name without the suffix, or the number of the row."""
    path = image.get("path") if isinstance(image, dict) else getattr(image, "path", image)
    return Path(path).stem if isinstance(path, str) and path and not is_data_address(path) else str(number)


def _id_text(value: object, place: str) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise InputError(f"the id must be text or a whole number, not {shown(value)}", where=place)
    return str(value)


def check_text(value: object, what: str, place: str) -> str:
    """Any text is accepted, the empty one too; anything else is refused by name."""
    if not isinstance(value, str):
        raise InputError(
            f"{what} must be a string, not {_kind(value)} ({shown(value)})", where=place, remedy="write it in quotes"
        )
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(
                f"{what} holds half a character (U+{ord(value[error.start]):04X} at position {error.start + 1})",
                where=place,
                remedy="the text was cut or wrongly escaped when it was written; write it again",
            ) from None
    return value


def check_texts(value: object, what: str, place: str) -> list[str]:
    """A list of texts; one string stands for a list of one."""
    if isinstance(value, str):
        return [check_text(value, f"the {what}", place)]
    if not isinstance(value, list | tuple):
        raise InputError(f"{what}s must be a list of strings, not {_kind(value)} ({shown(value)})", where=place)
    if all(type(text) is str and text.isascii() for text in value):
        return list(value)
    return [check_text(text, f"{what} {number}", place) for number, text in enumerate(value, 1)]


def split_references(cell: str, place: str, limits: ReadLimits) -> list[str]:
    """The references in one cell of a table: a json list, or texts with ``|`` or line breaks between.

    >>> split_references("a dog | a brown dog|", "here", ReadLimits())
    ['a dog', 'a brown dog']
    """
    if cell.lstrip().startswith("["):
        try:
            texts = parse(cell, place, limits)
        except InputError as error:
            raise InputError(
                f"references start like a json list but are none ({error.problem}): {shortened(cell)}",
                where=place,
                remedy='write ["first", "second"]',
            ) from None
        return check_texts(texts, "reference", place)
    return [text.strip() for text in re.split(r"[|\n]", cell) if text.strip()] or [cell.strip()]


def media_of(value: object, what: str, folder: str, place: str) -> Media | None:
    """A picture or video as files give it: a path relative to the file, a URL, bytes, or Hugging Face's two of them."""
    if value is None:
        return None
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) and isinstance(value, BinarySource):
        return value
    if isinstance(value, dict) and ("bytes" in value or "path" in value):
        data, path = value.get("bytes"), value.get("path")
        if data is None:
            return media_of(path, what, folder, place)
        value = data
    if isinstance(value, bytes):
        return BytesMedia(f"{place}, {what}", value)
    if not isinstance(value, str) or not value:
        raise InputError(f"{what} must be a path, not {_kind(value)} ({shown(value)})", where=place)
    if is_data_address(value):
        return from_data_address(value, f"{place}, {what}")
    return value if "://" in value else os.path.join(folder, value)


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


def shown(value: object) -> str:
    """A value for a message, however large or deep it is."""
    return _REPR.repr(value)[:80]


def shortened(text: str) -> str:
    """A text in quotes, cut to fit into a message."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _kind(value: object) -> str:
    return {"NoneType": "null", "dict": "an object", "list": "a list", "str": "an empty string", "int": "a number"}.get(
        type(value).__name__, f"a {type(value).__name__}"
    )
