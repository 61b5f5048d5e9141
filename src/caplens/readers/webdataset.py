"""webdataset: a tar whose members share a key (``0001.jpg``, ``0001.txt``, ``0001.json``); streamed, never extracted.

Only the small text members are read. A picture is remembered by its place in the archive and read when it is looked at.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from caplens.core.captions import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from caplens.core.errors import InputError
from caplens.readers.rows import Row, row_from_fields

_TEXT_SUFFIXES = (".txt", ".caption", ".cap")


@dataclass(frozen=True)
class TarMember:
    """A file inside an uncompressed tar; opens as bytes, pickles as three values."""

    archive: str
    name: str
    offset: int
    size: int

    def open(self) -> BinaryIO:
        with open(self.archive, "rb") as file:
            file.seek(self.offset)
            return io.BytesIO(file.read(self.size))


def read(path: Path) -> Iterator[Row]:
    number = 0
    fields: dict[str, object] = {}
    current: str | None = None
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if not member.isfile():
                    continue
                key, suffix = _split(member.name)
                if key != current and current is not None:
                    number += 1
                    yield from _row(fields, current, path, number)
                    fields = {}
                current = key
                if suffix in _TEXT_SUFFIXES:
                    fields["caption"] = _text(archive, member, path)
                elif suffix == ".json":
                    fields = {**_object(archive, member, path), **fields}
                elif suffix in IMAGE_SUFFIXES or suffix in VIDEO_SUFFIXES:
                    kind = "image" if suffix in IMAGE_SUFFIXES else "video"
                    fields[f"{kind} member"] = TarMember(str(path), member.name, member.offset_data, member.size)
                archive.members.clear()  # type: ignore[attr-defined]  # else every header stays in memory
            if current is not None:
                yield from _row(fields, current, path, number + 1)
    except FileNotFoundError:
        raise InputError("there is no such file", where=str(path), remedy="check the path") from None
    except tarfile.ReadError as error:
        raise InputError(
            f"not a plain tar ({error})", where=str(path), remedy="gunzip it first if it is compressed"
        ) from None


def _split(name: str) -> tuple[str, str]:
    """webdataset's rule: the key is everything up to the first dot of the base name."""
    folder, base = os.path.split(name)
    stem, _, suffix = base.partition(".")
    return os.path.join(folder, stem), "." + suffix.lower()


def _row(fields: dict[str, object], key: str, path: Path, number: int) -> Iterator[Row]:
    image, video = fields.pop("image member", None), fields.pop("video member", None)
    # Names in the json side file are the original ones; the picture is the member.
    plain = {name: value for name, value in fields.items() if name not in ("image", "video", "file_name", "key")}
    if not plain:
        return  # a picture without text is nothing to judge
    row = row_from_fields({"id": key, **plain}, f"{path}, sample {number}", number, path.parent)
    row.image, row.video = image, video  # type: ignore[assignment]
    yield row


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> str:
    file = archive.extractfile(member)
    assert file is not None  # only regular files come here
    try:
        return file.read().decode("utf-8-sig").rstrip("\n")
    except UnicodeDecodeError:
        raise InputError("not UTF-8", where=f"{path}, member {member.name}", remedy="save it as UTF-8") from None


def _object(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> dict[str, object]:
    try:
        made = json.loads(_text(archive, member, path))
    except json.JSONDecodeError as error:
        raise InputError(f"not json: {error.msg}", where=f"{path}, member {member.name}") from None
    if not isinstance(made, dict):
        raise InputError("must be an object", where=f"{path}, member {member.name}")
    return made
