"""Copies of files for several processes on this machine: one in memory for all of them, which nobody can change.

A file that is mapped ends the process when somebody shortens it. A sealed copy cannot be shortened, so that it may be
mapped. Where the system has no such thing (it is Linux's), every process reads the file itself.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

_adopted: dict[Path, int] = {}
"""The copies that this process was told of."""


def make_copies(paths: Iterable[Path]) -> dict[Path, int]:
    """Return descriptors of sealed copies, for our children to adopt and us to close; none if one cannot be made."""
    copies: dict[Path, int] = {}
    try:
        for path in dict.fromkeys(paths):
            copies[path] = _copy(path)
    except (AttributeError, OSError):  # another system, an old kernel, too little memory
        close_copies(copies)
        return {}
    return copies


def _copy(path: Path) -> int:
    import fcntl

    descriptor = os.memfd_create(path.name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with path.open("rb") as source, os.fdopen(os.dup(descriptor), "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def close_copies(copies: Mapping[Path, int]) -> None:
    """Close the descriptors; the memory is free when the last process with a copy has ended."""
    for descriptor in copies.values():
        os.close(descriptor)


def adopt_copies(copies: Mapping[Path, int]) -> None:
    """Read these files from the copies that the parent process holds from now on."""
    for path, descriptor in copies.items():
        if path in _adopted:
            os.close(_adopted.pop(path))
        with contextlib.suppress(OSError):  # where a process may not look at its parent, it reads the file itself
            _adopted[path] = os.open(f"/proc/{os.getppid()}/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)


def shared_copy(path: Path) -> Path:
    """Return where to read a file from: its copy in memory, if there is one, else the file."""
    return Path(f"/proc/self/fd/{_adopted[path]}") if path in _adopted else path
