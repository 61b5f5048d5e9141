"""What every reader yields: an id, some of caption, references, image and video, and the place they came from."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from caplens.core.captions import Media
from caplens.core.errors import InputError

# The first name is ours; the others are what common files call the same column.
FIELD_NAMES = {
    "id": ("id", "image_id", "key", "video_id"),
    "caption": ("caption", "candidate", "cand", "text", "prediction"),
    "references": ("references", "refs", "reference"),
    "image": ("image", "file_name", "image_path", "img", "filename"),
    "video": ("video", "video_path"),
}


@dataclass(slots=True)
class Row:
    """One record of a file; `place` says where it stands, for messages."""

    id: str
    place: str
    caption: str | None = None
    references: list[str] | None = None
    image: Media | None = None
    video: Media | None = None


def row_from_fields(fields: Mapping[str, Any], place: str, number: int, base: Path) -> Row:
    """Make a row from named values; media paths are relative to `base`, and a missing id is the row number."""
    caption, references, image = (_pick(fields, column) for column in ("caption", "references", "image"))
    if references is None:
        references = [
            text for name, text in fields.items() if name.startswith("reference_") and text is not None
        ] or None
    row_id = _pick(fields, "id")
    if row_id is None:
        row_id = Path(image).stem if isinstance(image, str) else str(number)
    if not isinstance(row_id, str | int) or isinstance(row_id, bool):
        raise InputError(f"the id must be text or a whole number, not {row_id!r:.60}", where=place)
    place = f"{place}, id {str(row_id)!r}"
    if caption is None and references is None:
        raise InputError(
            f"neither a caption nor references, only {', '.join(map(repr, fields)) or 'nothing'}",
            where=place,
            remedy="name the columns id, caption, references, image or video",
        )
    return Row(
        id=str(row_id),
        place=place,
        caption=None if caption is None else check_text(caption, "the caption", place),
        references=None if references is None else check_texts(references, place),
        image=media_path(image, "image", base, place),
        video=media_path(_pick(fields, "video"), "video", base, place),
    )


def _pick(fields: Mapping[str, Any], column: str) -> Any:
    for name in FIELD_NAMES[column]:
        if fields.get(name) is not None:
            return fields[name]
    return None


def check_text(value: object, what: str, place: str) -> str:
    """Any text is accepted, the empty one too; anything else is refused by name."""
    if not isinstance(value, str):
        raise InputError(
            f"{what} must be a string, not {_kind(value)} ({value!r:.60})", where=place, remedy="write it in quotes"
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


def check_texts(value: object, place: str) -> list[str]:
    """A list of references; one string stands for a list of one."""
    if isinstance(value, str):
        return [check_text(value, "the reference", place)]
    if not isinstance(value, Sequence):
        raise InputError(f"references must be a list of strings, not {_kind(value)} ({value!r:.60})", where=place)
    return [check_text(text, f"reference {number}", place) for number, text in enumerate(value, 1)]


def media_path(value: object, what: str, base: Path, place: str) -> Media | None:
    """A path relative to the file that names it; a URL stays as it is."""
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise InputError(f"{what} must be a path, not {_kind(value)} ({value!r:.60})", where=place)
    return value if "://" in value else os.fspath(base / value)


def _kind(value: object) -> str:
    return {"NoneType": "null", "dict": "an object", "list": "a list", "str": "an empty string"}.get(
        type(value).__name__, f"a {type(value).__name__}"
    )


def read_bytes(path: Path) -> bytes:
    """A file's bytes, unzipped if its name ends in .gz; missing, unreadable and empty files get their own message."""
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise InputError("there is no such file", where=str(path), remedy="check the path") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"the gzip data is damaged ({error})", where=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    if not data.strip():
        raise InputError("the file is empty", where=str(path))
    return data


def read_text(path: Path) -> str:
    """A file's text; bytes that are not UTF-8 are refused with the line they stand in."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"byte 0x{data[error.start]:02x} is not UTF-8", where=f"{path}, line {line}", remedy="save it as UTF-8"
        ) from None


def text_lines(path: Path) -> TextIO:
    """A file's text as lines, split at newlines only: captions may hold every other kind of line break."""
    return io.StringIO(read_text(path), newline="\n")
