"""Locks between processes and threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock

LONGEST_WAIT = 1800.0


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder while the block runs: of several processes one works, the others wait.

    A lock only saves doing the same work twice; everything under it is also written atomically. So where none can be
    had (a read-only folder, a file system without locks, a holder that never ends) the block runs without.
    """
    file = path.with_name(f".{path.name}.lock")
    lock = FileLock(file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=LONGEST_WAIT)
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        # While it is held: whoever was waiting for this file sees that it is gone and makes a new one.
        with suppress(OSError):
            file.unlink()
        lock.release()
