"""Content digests of files: the same as long as the bytes are the same, and quick to ask for again."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from pathlib import Path

from caplens.core.errors import InputError

SETTLED_NS = 2_000_000_000
"""File systems stamp changes in steps of up to two seconds, so a file that has just changed may change unseen."""

_lock = threading.Lock()
_digests: dict[tuple[int, int], tuple[tuple[int, int, int], str]] = {}
"""Device and inode to the size, times and sha256 of the file's last known state."""


def digest(path: Path) -> str:
    """Return the sha256 of a file, read now."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def content_digest(path: str | os.PathLike[str]) -> str:
    """Return the sha256 of a file's bytes, or of the names and bytes of everything in a folder.

    A file that did not change since it was last asked about is not read again: size, inode and times tell.
    """
    target = Path(path)
    if not target.is_dir():
        return _file_digest(target)
    combined = hashlib.sha256()
    for inside in sorted(entry for entry in target.rglob("*") if entry.is_file()):
        combined.update(f"{inside.relative_to(target).as_posix()}\0{_file_digest(inside)}\n".encode())
    return combined.hexdigest()


def _file_digest(path: Path) -> str:
    before = path.stat()
    if not stat.S_ISREG(before.st_mode):  # opening a pipe would wait for somebody to write into it
        raise InputError("is not a regular file", where=str(path))
    place = before.st_dev, before.st_ino
    with _lock:
        known = _digests.get(place)
    if known is not None and known[0] == _state(before):
        return known[1]
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        after = os.fstat(stream.fileno())
    if _state(before) == _state(after) and time.time_ns() - after.st_mtime_ns > SETTLED_NS:
        with _lock:
            _digests[place] = _state(after), sha256
    return sha256


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
