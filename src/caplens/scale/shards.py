"""Which files a run goes through: globs, braces, folders and addresses become shards, each with a name of its own."""

from __future__ import annotations

import glob
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.readers.layouts import READERS
from caplens.readers.source import Source
from caplens.storage.digests import content_digest

MOST_SHARDS = 10_000_000
_BRACES = re.compile(r"\{(?:(?P<first>\d+)\.\.(?P<last>\d+)|(?P<words>[^{}]*,[^{}]*))\}")


@dataclass(frozen=True)
class Shard:
    """One file of captions."""

    location: str
    """A path, or an address that fsspec opens."""
    name: str
    """What its results are called; no other shard of the run is called so."""

    @property
    def is_remote(self) -> bool:
        return is_address(self.location)

    def digest(self) -> str:
        """Return what tells whether the shard has changed: the sum of its bytes, or what its server says of it."""
        if self.is_remote:
            system, path = _remote(self.location)
            return f"{type(system).__name__} {system.ukey(path)}"
        Source(self.location).check_file()
        return content_digest(self.location)

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """Yield a path to read it from; one from elsewhere is fetched, and removed when it was read."""
        if not self.is_remote:
            yield Path(self.location)
            return
        system, path = _remote(self.location)
        with tempfile.TemporaryDirectory(prefix="caplens-shard-") as folder:
            copy = Path(folder) / PurePosixPath(path).name
            try:
                with system.open(path, "rb") as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
            except OSError as error:
                raise InputError(f"cannot be fetched ({error})", where=self.location) from None
            try:
                yield copy
            except InputError as error:  # people know the shard by its address
                problem, where = (text.replace(str(copy), self.location) for text in (error.problem, error.where))
                raise InputError(problem, where=where, remedy=error.remedy) from None


def is_address(location: str) -> bool:
    """Say whether a location is for fsspec: ``s3://bucket/part.tar``."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*(::|://)", location) is not None


def find_shards(
    patterns: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, allow_urls: bool = False
) -> list[Shard]:
    """Return the shards behind paths, globs, ``{0000..0099}`` braces, folders and addresses, in their order.

    The files of one glob or folder come in the order of their names; a file that is named twice is taken once.
    """
    given = [patterns] if isinstance(patterns, str | os.PathLike) else patterns
    found: dict[str, None] = {}
    for entry in given:
        pattern = os.fspath(entry)
        if is_address(pattern) and not allow_urls:
            raise InputError(
                "is an address, and nothing is fetched from the network unless asked",
                where=pattern,
                remedy="pass allow_urls=True (--allow-urls), or download it first",
            )
        words = [pattern] if not is_address(pattern) and os.path.exists(pattern) else expand_braces(pattern)
        for word in words:
            found.update(dict.fromkeys(_remote_files(word) if is_address(word) else _local_files(word)))
    if not found:
        raise InputError("no shards were named", remedy="name files, globs or folders")
    locations = list(found)
    return [Shard(location, name) for location, name in zip(locations, _names(locations), strict=True)]


def expand_braces(pattern: str) -> list[str]:
    """Return the texts that a pattern with braces stands for, as in a shell.

    >>> expand_braces("{train,val}-{08..10}.tar")
    ['train-08.tar', 'train-09.tar', 'train-10.tar', 'val-08.tar', 'val-09.tar', 'val-10.tar']
    """
    choices: list[list[str]] = []
    end, count = 0, 1
    for braces in _BRACES.finditer(pattern):
        if braces["words"] is not None:
            options = braces["words"].split(",")
        else:
            first, last = int(braces["first"]), int(braces["last"])
            count *= abs(last - first) + 1
            if count > MOST_SHARDS:
                raise InputError(f"stands for more than {MOST_SHARDS:,} shards", where=pattern)
            step = 1 if first <= last else -1
            options = [str(number).zfill(len(braces["first"])) for number in range(first, last + step, step)]
        choices += [[pattern[end : braces.start()]], options]
        end = braces.end()
    return ["".join(parts) for parts in itertools.product(*choices, [pattern[end:]])]


def choose_part(shards: Sequence[Shard], part: str) -> list[Shard]:
    """Return the shards of one of several runs that share them: "3/64" is the third of sixty-four.

    >>> [shard.name for shard in choose_part([Shard(name, name) for name in "abcde"], "2/3")]
    ['b', 'e']
    """
    numbers = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", part)
    if numbers is None or not 1 <= int(numbers[1]) <= int(numbers[2]):
        raise InputError(f"--shard {part!r} is no part", remedy="write 3/64 for the third of 64 parts, counted from 1")
    return list(shards[int(numbers[1]) - 1 :: int(numbers[2])])


def refuse_folder_of(shards: Sequence[Shard], folder: Path) -> None:
    """Raise an `InputError` if results would go where shards are: they might replace them, or be taken for shards."""
    for parent in {os.path.dirname(shard.location) or "." for shard in shards if not shard.is_remote}:
        if folder.is_dir() and os.path.samefile(parent, folder):
            raise InputError("shards are read from this folder", where=str(folder), remedy="write to another one")


def _local_files(word: str) -> list[str]:
    if os.path.isdir(word):
        files = [os.path.join(word, name) for name in sorted(os.listdir(word)) if not name.startswith(".")]
        files = [file for file in files if Source(file).suffix in READERS and os.path.isfile(file)]
        if not files:
            raise InputError("there is no shard in this folder", where=word, remedy=f"it takes {', '.join(READERS)}")
        return files
    if os.path.exists(word):
        return [word]
    files = sorted(glob.glob(word, recursive=True))
    if not files:
        magic = glob.has_magic(word)
        raise InputError(
            "no file is called so" if magic else "there is no such file", where=word, remedy="check the path"
        )
    return files


def _remote_files(word: str) -> list[str]:
    if not glob.has_magic(word):
        return [word]
    system, path = _remote(word)
    found = sorted(system.unstrip_protocol(file) for file in system.glob(path))
    if not found:
        raise InputError("nothing there is called so", where=word, remedy="check the address")
    return found


def _remote(location: str) -> tuple[Any, str]:
    """The file system of an address, and the path on it."""
    url_to_fs = require("fsspec.core:url_to_fs", purpose="shards at an address")
    try:
        system, path = url_to_fs(location)
    except (ImportError, ValueError) as error:  # the protocol's own package is missing, or nobody knows it
        raise InputError(f"cannot be opened ({error})", where=location) from None
    return system, path


def _names(locations: Sequence[str]) -> list[str]:
    """Names for results: the files' own, with as much of their paths as it takes to tell them apart.

    >>> _names(["a/x.jsonl.gz", "a/y.tar"]), _names(["a/x.tar", "a/x.csv"]), _names(["a/x.tar", "b/x.tar"])
    (['x', 'y'], ['x.tar', 'x.csv'], ['a--x.tar', 'b--x.tar'])
    """
    paths = [PurePosixPath(location.replace(os.sep, "/")) for location in locations]
    whole = [str(path).replace("://", "--").replace("/", "--").lstrip("-.") for path in paths]
    for names in ([_stem(path.name) for path in paths], [path.name for path in paths], whole):
        if len(set(names)) == len(names):
            return names
    return [f"{number:06d}--{name}" for number, name in enumerate(whole)]


def _stem(name: str) -> str:
    stem = name.removesuffix(".gz")
    return os.path.splitext(stem)[0] or name
