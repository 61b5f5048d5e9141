"""Name temporary files and folders after the process that writes them, and sweep those whose writer is gone."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from caplens.storage.paths import cache_folder, data_folder

DAY = 24 * 3600.0
_NAME = re.compile(r"\..*\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.part", re.DOTALL)
# Version 0.1 did not put the process into the name.
_OLD_NAME = re.compile(r"\..+\.[a-z0-9_]{8}\.part", re.DOTALL)
_OLD_FOLDER = re.compile(r"\..+\.[a-z0-9_]{8}", re.DOTALL)


def temporary_beside(target: Path) -> Path:
    """Return a hidden name beside `target` that nobody else uses and that says who writes it.

    The name is cut, so that a target with the longest name a file system takes still has a temporary one.
    """
    return target.with_name(f".{target.name[:40]}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.part")


def sweep() -> int:
    """Remove what killed processes left in the data folder and in the cache; return how many bytes that freed.

    A leftover is removed when its writer ran on this machine and is gone, or when nothing in it changed for a day.
    """
    weights = data_folder() / "weights"
    cache = cache_folder()
    freed = 0
    for folder in (weights, cache, *_folders(cache)):
        for path in _entries(folder):
            old_folder = folder == weights and _OLD_FOLDER.fullmatch(path.name) and path.is_dir()
            if (_NAME.fullmatch(path.name) or _OLD_NAME.fullmatch(path.name) or old_folder) and _abandoned(path):
                freed += _size(path)
                _remove(path)
    return freed


def _abandoned(path: Path) -> bool:
    named = _NAME.fullmatch(path.name)
    if named is not None and named[1] == _machine() and _is_gone(int(named[2])):
        return True
    try:
        newest = max(entry.lstat().st_mtime for entry in (path, *_below(path)))
    except OSError:  # somebody is at work there
        return False
    return time.time() - newest > DAY


def _machine() -> str:
    """Return a short name of this machine: containers that share a folder do not share process numbers."""
    return hashlib.sha256(platform.node().encode("utf-8", "replace")).hexdigest()[:8]


def _is_gone(process: int) -> bool:
    if os.name != "posix":  # there, signal 0 is not a question but an order
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _folders(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if path.is_dir() and not path.is_symlink()]


def _below(path: Path) -> Iterable[Path]:
    return path.rglob("*") if path.is_dir() and not path.is_symlink() else ()


def _size(path: Path) -> int:
    try:
        return sum(entry.lstat().st_size for entry in (path, *_below(path)))
    except OSError:
        return 0


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
