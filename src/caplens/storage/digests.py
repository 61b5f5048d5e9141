"""Content digests of files: the same as long as the bytes are the same, and quick to ask for again."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path

from caplens.core.errors import InputError

Fingerprint = tuple[int, ...]
SETTLED_NS = 2_000_000_000
"""Nanoseconds: the clock of a file system ticks up to two seconds apart, so what just changed may change unseen."""

_digests: dict[Path, tuple[Fingerprint, str]] = {}
"""What this process has read: the sha256 of a file and the fingerprint it had then."""


def digest(path: Path) -> str:
    """Return the sha256 of a file, read now."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fingerprint(path: Path) -> Fingerprint:
    """Return size, time of change of the content, time of change of anything, and inode of a file."""
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino


def is_settled(mark: Fingerprint) -> bool:
    """Say whether a file with this fingerprint would have another one if it changed now."""
    return time.time_ns() - max(mark[1:3]) > SETTLED_NS


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
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for somebody to write into it
        raise InputError("is not a regular file", where=str(path))
    name, mark = path.absolute(), fingerprint(path)
    known = _digests.get(name)
    if known is not None and known[0] == mark:
        return known[1]
    sha256 = digest(path)
    if fingerprint(path) == mark and is_settled(mark):
        _digests[name] = mark, sha256
    return sha256
