"""webdataset: a tar whose members share a key (``0001.jpg``, ``0001.txt``, ``0001.json``); streamed, never extracted.

Only the small text members are read. A picture is remembered by its place in the archive and read when it is looked at.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from caplens.core.captions import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from caplens.core.errors import InputError
from caplens.readers.columns import CAPTION_NAMES, IMAGE_NAMES, VIDEO_NAMES, ColumnChoice, plain_name
from caplens.readers.media import FileSlice
from caplens.readers.rows import Record, Row, shortened, shown
from caplens.readers.source import Source
from caplens.readers.strict_json import parse

_TEXT_SUFFIXES = (".txt", ".caption", ".cap")


@dataclass(frozen=True)
class TarMember:
    """A file inside an uncompressed tar; opens as bytes, pickles as four values."""

    archive: str
    name: str
    offset: int
    size: int

    def open(self) -> BinaryIO:
        return io.BufferedReader(FileSlice(self.archive, self.offset, self.size))


@dataclass
class _Sample:
    """The members of one key, as far as they have come."""

    key: str
    caption: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    image: TarMember | None = None
    video: TarMember | None = None
    suffixes: set[str] = field(default_factory=set)
    members: list[tarfile.TarInfo] = field(default_factory=list)


def read(source: Source, choice: ColumnChoice) -> Iterator[Row]:
    if not source.is_plain_file:
        source.check_file()
        raise InputError(
            "a tar must be a plain file: its pictures are read from it later",
            where=source.name,
            remedy="save it, and gunzip it if it is compressed",
        )
    for number, sample in enumerate(_samples(source), 1):
        yield from _row(sample, number, source, choice)


def copy_rows(source: Source, choice: ColumnChoice, keep: Sequence[bool], target: tarfile.TarFile) -> None:
    """Copy the samples of some rows, counted as `read` yields them, with every member that they have."""
    wanted = iter(keep)
    for number, sample in enumerate(_samples(source), 1):
        if any(True for _ in _row(sample, number, source, choice)) and next(wanted):
            for member in sample.members:
                # Whoever unpacks what was filtered trusts it more than what came from elsewhere.
                if member.name.startswith("/") or ".." in member.name.split("/"):
                    place = f"{source.name}, member {shortened(member.name)}"
                    raise InputError("would be unpacked outside of its folder", where=place, remedy="pack it again")
                with open(source.path, "rb") as file:
                    file.seek(member.offset_data)
                    target.addfile(plain_member(member.name, member.size), file)


def plain_member(name: str, size: int) -> tarfile.TarInfo:
    """A member's header without owner and time: equal content gives equal archives."""
    made = tarfile.TarInfo(name)
    made.size = size
    return made


def _samples(source: Source) -> Iterator[_Sample]:
    sample: _Sample | None = None
    for archive, member in _members(source):
        key, suffix = _split(member.name)
        if sample is None or key != sample.key:
            if sample is not None:
                yield sample
            sample = _Sample(key)
        sample.members.append(member)
        _add(sample, suffix, archive, member, source)
    if sample is not None:
        yield sample


def _members(source: Source) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """The regular files of an archive; one whose headers lead backwards or ask for too much is refused."""
    passed = -1
    try:
        with open(source.path, "rb") as file, tarfile.open(fileobj=_Guarded(file, source), mode="r:") as archive:
            for member in archive:
                place = f"{source.name}, member {shortened(member.name)}"
                source.budget.spend_row()
                # A negative size would lead back to this member, for ever.
                if member.size < 0 or member.offset <= passed:
                    raise InputError(f"the archive is damaged (a member of {member.size} bytes)", where=place)
                passed = member.offset
                if member.issparse():
                    raise InputError("is stored with holes", where=place, remedy="pack it again without --sparse")
                if member.isfile():
                    yield archive, member
                archive.members.clear()  # type: ignore[attr-defined]  # else every header stays in memory
    except tarfile.ReadError as error:
        raise InputError(
            f"not a plain tar ({error})", where=source.name, remedy="gunzip it first if it is compressed"
        ) from None
    except (tarfile.TarError, ValueError, OverflowError, IndexError, KeyError, RecursionError) as error:
        # What the library trips over where a header is damaged.
        raise InputError(f"the archive is damaged ({type(error).__name__}: {error})", where=source.name) from None


class _Guarded(io.RawIOBase):
    """A file for tarfile, which reads long names and attributes whole, whatever size their header claims."""

    def __init__(self, file: BinaryIO, source: Source) -> None:
        self._file, self._source = file, source

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > self._source.limits.field_bytes:
            raise self._source.limits.exceeded(
                "field_bytes", f"a header asks for {size:,} bytes", f"{self._source.name}, byte {self.tell():,}"
            )
        data = self._file.read(size)
        self._source.budget.spend_bytes(len(data))
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _split(name: str) -> tuple[str, str]:
    """webdataset's rule: the key is everything up to the first dot of the base name."""
    folder, base = os.path.split(name)
    stem, _, suffix = base.partition(".")
    return os.path.join(folder, stem), "." + suffix.lower()


def _add(sample: _Sample, suffix: str, archive: tarfile.TarFile, member: tarfile.TarInfo, source: Source) -> None:
    place = f"{source.name}, member {shortened(member.name)}"
    role = "the caption" if suffix in _TEXT_SUFFIXES else suffix
    if role in sample.suffixes:
        raise InputError(f"{role} of this sample stands twice", where=place, remedy="keep one of them")
    sample.suffixes.add(role)
    if suffix in _TEXT_SUFFIXES:
        sample.caption = _text(archive, member, source, place).rstrip("\n")
    elif suffix == ".json":
        fields = parse(_text(archive, member, source, place), place, source.limits)
        if not isinstance(fields, dict):
            raise InputError(f"must be an object, not {shown(fields)}", where=place)
        sample.fields = fields
    elif suffix in IMAGE_SUFFIXES:
        sample.image = TarMember(source.path, member.name, member.offset_data, member.size)
    elif suffix in VIDEO_SUFFIXES:
        sample.video = TarMember(source.path, member.name, member.offset_data, member.size)


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo, source: Source, place: str) -> str:
    source.budget.check_field(member.size, "the text", place)
    file = archive.extractfile(member)
    assert file is not None  # only regular files come here
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not UTF-8", where=place, remedy="save it as UTF-8") from None


def _row(sample: _Sample, number: int, source: Source, choice: ColumnChoice) -> Iterator[Row]:
    # Names in the json side file are the original ones; the picture is the member, and so is the caption.
    replaced = {*IMAGE_NAMES, *VIDEO_NAMES, "key"}
    fields = {name: value for name, value in sample.fields.items() if plain_name(name) not in replaced}
    if sample.caption is not None and choice.caption is None:
        fields = {name: value for name, value in fields.items() if plain_name(name) not in CAPTION_NAMES}
        fields["caption"] = sample.caption
    if not fields:
        return  # a picture without text is nothing to judge
    place = f"{source.name}, sample {number}"
    row = Record({"id": sample.key, **fields}, place, number, source.folder).row(replace(choice, image=None))
    row.image, row.video = sample.image, sample.video
    yield row
