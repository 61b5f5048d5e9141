"""Write files so that nothing half-written is ever seen, and nothing is overwritten that should stay."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from caplens.core.errors import InputError
from caplens.storage.leftovers import temporary_beside

AnyPath = str | os.PathLike[str]
# Kinds of targets that are neither files to replace nor streams to write to.
_REFUSED = {stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a block device"}


@contextmanager
def atomic_path(path: AnyPath) -> Iterator[Path]:
    """Yield a temporary path to write to; renamed to `path` on success, removed on any failure, Ctrl-C included.

    A link is followed: what it points to is replaced, and the link stays. A file that was there keeps its mode, a new
    one gets what the umask allows. A pipe or a character device is written to as a stream when all is done.
    """
    if _is_stream(path):
        with tempfile.TemporaryDirectory(prefix="caplens-") as folder:
            temporary = Path(folder) / "output"
            yield temporary
            with temporary.open("rb") as source, _open_stream(path) as stream:
                shutil.copyfileobj(source, stream)
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(target.stat().st_mode) & 0o777 if target.exists() else None
    temporary = temporary_beside(target)
    # The kernel applies the umask, which a process cannot even read without changing it for all of its threads.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else mode))
    try:
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: AnyPath, content: str | bytes) -> None:
    """Write a whole file, or leave what was there."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    if _is_stream(path):
        with _open_stream(path) as stream:
            stream.write(data)
    else:
        with atomic_path(path) as temporary:
            temporary.write_bytes(data)


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill; on success it takes the place of `target`, on any failure it is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_beside(target)
    temporary.mkdir()
    try:
        yield temporary
        if target.exists():
            old = temporary_beside(target)
            target.rename(old)
            temporary.rename(target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def refuse_overwriting(outputs: Iterable[AnyPath | None], inputs: Iterable[AnyPath | None]) -> None:
    """Raise an `InputError` if a file that will be written is one that is read; `None` and "-" are nobody's files."""
    present = [output for output in outputs if output is not None and output != "-" and os.path.isfile(output)]
    if not present:
        return
    for source in inputs:
        for output in present:
            if source is not None and os.path.isfile(source) and os.path.samefile(output, source):
                raise InputError(
                    "this file is read by the command and would be overwritten by it",
                    where=os.fspath(output),
                    remedy="name another file to write to",
                )


def _is_stream(path: AnyPath) -> bool:
    """Say whether a target is written to as it is; raise an `InputError` for one that cannot be written to at all."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISREG(mode):
        # /dev/stdout may lead to a file, which must not be replaced while the shell writes to it.
        parent = os.path.realpath(os.path.dirname(os.path.abspath(path)))
        return parent == "/dev" or parent.startswith("/proc/")
    kind = _REFUSED.get(stat.S_IFMT(mode))
    if kind is not None:
        raise InputError(f"cannot write there: it is {kind}", where=os.fspath(path), remedy="name a file")
    return True


def _open_stream(path: AnyPath) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb")
