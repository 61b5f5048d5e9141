"""Pictures that are not files of their own: bytes at hand, part of a larger file, a ``data:`` address."""

from __future__ import annotations

import base64
import binascii
import io
from dataclasses import dataclass, field
from typing import BinaryIO
from urllib.parse import unquote_to_bytes


@dataclass(frozen=True)
class BytesMedia:
    """A picture or video whose bytes are in memory."""

    name: str
    data: bytes = field(repr=False)

    def open(self) -> BinaryIO:
        return io.BytesIO(self.data)


class FileSlice(io.RawIOBase):
    """Reads and seeks inside a part of a file, so that nobody has to hold a large one in memory."""

    def __init__(self, path: str, offset: int, size: int) -> None:
        self._file = open(path, "rb")  # noqa: SIM115  # closed with this object
        self._offset, self._size, self._position = offset, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._file.seek(self._offset + self._position)
        data = self._file.read(max(0, min(len(buffer), self._size - self._position)))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def is_data_address(text: str) -> bool:
    """Whether a text carries its picture in itself: ``data:image/png;base64,…``."""
    return text[:5].lower() == "data:"


def from_data_address(address: str, name: str) -> BytesMedia:
    """The picture that a ``data:`` address holds; one that is damaged holds no bytes.

    >>> from_data_address("data:image/gif;base64,R0lGODlh", "dot").open().read()
    b'GIF89a'
    """
    header, _, body = address.partition(",")
    data = unquote_to_bytes(body)
    if header.lower().endswith(";base64"):
        data = b"".join(data.split())
        try:
            data = base64.b64decode(data + b"=" * (-len(data) % 4))
        except binascii.Error:
            data = b""
    return BytesMedia(name, data)
