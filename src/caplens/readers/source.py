"""Where rows come from: a file, a gzipped file or a pipe, opened with limits and read as bytes, lines or text."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from caplens.core.errors import InputError
from caplens.readers.limits import Budget, ReadLimits

STANDARD_INPUT = "-"
_OPEN_DESCRIPTOR = re.compile(r"/dev/stdin|(/dev/fd|/proc/self/fd)/[0-9]+", re.ASCII)
_BLOCK = 1 << 20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class Source:
    """One input: its name for messages, its folder for the paths in it, and its bytes within the limits.

    A path that is ``-``, ``/dev/stdin`` or ``/dev/fd/N`` was opened by whoever started us and may be a pipe; any other
    path must be a regular file, or a named pipe where `pipes` allows it: opening one blocks until somebody writes.
    """

    def __init__(self, path: str | os.PathLike[str], limits: ReadLimits | None = None, pipes: bool = False) -> None:
        self.path = os.fspath(path)
        self.pipes = pipes
        self.given_open = self.path == STANDARD_INPUT or _OPEN_DESCRIPTOR.fullmatch(self.path) is not None
        self.name = "standard input" if self.path == STANDARD_INPUT else self.path
        self.folder = "" if self.given_open else os.path.dirname(self.path)
        """Where paths named in the file start."""
        self.limits = limits or ReadLimits.from_environment()
        self.budget = Budget(self.limits, self.name)
        self._stream: io.BufferedReader | None = None
        self._opened: list[BinaryIO] = []

    @property
    def suffix(self) -> str:
        """What the file's name says about its layout, ``.gz`` apart; lower case."""
        path = Path(self.path)
        return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()

    @property
    def is_plain_file(self) -> bool:
        """Whether the bytes on disk are the bytes to read, so that they can be found again later."""
        return not self.given_open and os.path.isfile(self.path) and not self.path.lower().endswith(".gz")

    @property
    def stream(self) -> io.BufferedReader:
        """The bytes, unpacked and counted; opened once."""
        if self._stream is None:
            self._stream = self._open()
        return self._stream

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opened in reversed(self._opened):
            opened.close()

    def check_file(self) -> None:
        """Refuse what is missing, and what is neither a regular file nor a pipe given on purpose."""
        try:
            mode = os.stat(self.path).st_mode
        except FileNotFoundError:
            raise InputError("there is no such file", where=self.name, remedy="check the path") from None
        except (OSError, ValueError) as error:  # ValueError: a null byte in the path
            raise InputError(f"cannot be read: {getattr(error, 'strerror', error)}", where=self.name) from None
        if stat.S_ISREG(mode) or self.given_open or (self.pipes and stat.S_ISFIFO(mode)):
            return
        kind = next((words for test, words in _KINDS if test(mode)), "something else")
        raise InputError(
            f"is {kind}, not a regular file",
            where=self.name,
            remedy="give a pipe as standard input (-), or pass pipes=True" if stat.S_ISFIFO(mode) else "give a file",
        )

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines, split at newlines only: captions may hold every other kind of line break."""
        number, blank, longest = 0, True, self.limits.field_bytes
        while line := self.stream.readline(longest + 1):
            number += 1
            self.budget.check_field(len(line), "the line", f"{self.name}, line {number}")
            self.budget.spend_row()
            blank = blank and not line.strip()
            yield number, self.decode(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line, number)
        if blank:
            raise InputError("the file is empty", where=self.name)

    def pieces(self) -> Iterator[str]:
        """The text in pieces, cut anywhere."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        newlines = 0
        while True:
            block = self.stream.read(_BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise self._not_text(error, newlines + 1) from None
            newlines += block.count(b"\n")
            yield text
            if not block:
                return

    def text(self) -> str:
        """All of the text."""
        return self.decode(self._not_blank(self.stream.read()).removeprefix(codecs.BOM_UTF8))

    def short_bytes(self) -> bytes:
        """All bytes of a file that counts as one value: a caption's own file, a page."""
        data = self.stream.read(self.limits.field_bytes + 1)
        self.budget.check_field(len(data), "the file", self.name)
        return self._not_blank(data)

    def _not_blank(self, data: bytes) -> bytes:
        if not data.strip():
            raise InputError("the file is empty", where=self.name)
        return data

    def random_access(self) -> str | BinaryIO:
        """Something a parser can move about in: the path of a plain file, or the unpacked bytes in memory."""
        if self.is_plain_file:
            return self.path
        return io.BytesIO(self.stream.read())

    def decode(self, data: bytes, line: int = 1, encoding: str = "utf-8") -> str:
        """Bytes as text; those that are none are refused with the line they stand in, where `data` starts at `line`."""
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            raise self._not_text(error, line, encoding) from None

    def _not_text(self, error: UnicodeDecodeError, line: int, encoding: str = "utf-8") -> InputError:
        line += error.object.count(b"\n", 0, error.start)
        return InputError(
            f"byte 0x{error.object[error.start]:02x} is not {encoding.upper()}",
            where=f"{self.name}, line {line}",
            remedy="save the file as UTF-8 (it may be Latin-1, Windows-1252 or UTF-16)",
        )

    def _open(self) -> io.BufferedReader:
        if self.path == STANDARD_INPUT:
            raw: BinaryIO | None = getattr(sys.stdin, "buffer", None)
            if raw is None:
                raise InputError("is closed", where=self.name, remedy="pipe a file into it, or name the file")
        else:
            self.check_file()
            try:
                raw = open(self.path, "rb")  # noqa: SIM115  # closed with the source
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror}", where=self.name) from None
            self._opened.append(raw)
        packed = _Counted(raw)
        buffered = io.BufferedReader(packed, _BLOCK)
        gzipped = buffered.peek(2)[:2] == b"\x1f\x8b" if self.given_open else self.path.lower().endswith(".gz")
        unpacked = gzip.GzipFile(fileobj=buffered) if gzipped else buffered
        return io.BufferedReader(_Limited(unpacked, packed if gzipped else None, self.budget), _BLOCK)


class _Counted(io.RawIOBase):
    """Bytes of a file that may be a pipe, counted; a block is filled before it is handed on."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        filled = 0
        while filled < len(buffer) and (block := self.file.read(len(buffer) - filled)):
            buffer[filled : filled + len(block)] = block
            filled += len(block)
        self.count += filled
        return filled


class _Limited(io.RawIOBase):
    """Unpacked bytes, charged to a budget; damage is told in our words."""

    def __init__(self, file: io.BufferedIOBase, packed: _Counted | None, budget: Budget) -> None:
        self.file, self.packed, self.budget = file, packed, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            block = self.file.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"the gzip data is damaged ({error})", where=self.budget.where) from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", where=self.budget.where) from None
        if self.packed is not None:
            self.budget.packed_bytes = self.packed.count
        self.budget.spend_bytes(len(block))
        buffer[: len(block)] = block
        return len(block)
