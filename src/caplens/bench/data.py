"""Finding a rating set's files below the folders that the user names, whatever the layout above them is."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, TextIO

from caplens.core.errors import InputError, MissingData
from caplens.readers.source import Source
from caplens.readers.strict_json import parse

PICTURES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp"})


class DataFolders:
    """All files below some folders, found by name; a name may carry parent folders to be told apart."""

    def __init__(self, folders: Sequence[str | os.PathLike[str]]) -> None:
        self.folders = [Path(folder) for folder in folders]
        self._files: dict[str, list[Path]] = {}
        self._pictures: dict[str, Path] = {}
        for folder in self.folders:
            if not folder.is_dir():
                raise InputError(
                    "this is not a folder", where=str(folder), remedy="--data names a folder with rating sets"
                )
            for parent, _, names in sorted(os.walk(folder, followlinks=True)):
                for name in sorted(names):
                    if os.path.splitext(name)[1].lower() in PICTURES:
                        self._pictures.setdefault(name, Path(parent, name))
                    else:
                        self._files.setdefault(name, []).append(Path(parent, name))

    def find(self, *names: str) -> Path | None:
        """The first of the names that exists, plain or gzipped; among several files the one least deep."""
        for name in names:
            parts = PurePosixPath(name).parts
            for suffix in ("", ".gz"):
                hits = [path for path in self._called(parts[-1] + suffix) if _fits(path.parent, parts[:-1])]
                if hits:
                    return min(hits, key=lambda path: (len(path.parts), str(path)))
        return None

    def find_shards(self, *names: str) -> list[Path]:
        """All parts of a set that comes in several files, by names with stars; they lie beside each other."""
        for name in names:
            first = self.find(name)
            if first is not None:
                return sorted(path for path in self._called(PurePosixPath(name).name) if path.parent == first.parent)
        return []

    def _called(self, pattern: str) -> list[Path]:
        if "*" not in pattern:
            return self._files.get(pattern, [])
        return [path for name, paths in self._files.items() if fnmatchcase(name, pattern) for path in paths]

    def require(self, title: str, home: str, *names: str) -> Path:
        """Like `find`; what is missing is said with where to get it."""
        path = self.find(*names)
        if path is None:
            looked = ", ".join(str(folder) for folder in self.folders) or "no folder (give --data DIR)"
            raise MissingData(f"{title} needs {' or '.join(names)}; looked below {looked}. Get it: {home}")
        return path

    def picture(self, name: str) -> Path | None:
        """A picture by its file name, in any folder below."""
        return self._pictures.get(PurePosixPath(name).name)

    def pictures(self, names: Sequence[str]) -> list[Any] | None:
        """One entry per name; None altogether when not a single one is here."""
        paths = [self.picture(name) for name in names]
        return paths if any(path is not None for path in paths) else None


def _fits(folder: Path, names: Sequence[str]) -> bool:
    """Whether the last folders of a path are called like this; a star stands for any letters."""
    last = folder.parts[-len(names) :] if names else ()
    return len(last) == len(names) and all(map(fnmatchcase, last, names))


def open_text(path: Path) -> TextIO:
    """A text file, gunzipped by its name; read whole, so that bytes that are no text are refused by their line."""
    with Source(path) as source:
        return io.StringIO(source.text(), newline=None)


def read_json(path: Path) -> Any:
    """A whole json file."""
    with Source(path) as source:
        return parse(source.text(), source.name, source.limits)


def read_json_lines(path: Path) -> Iterator[Any]:
    """The rows of a json-lines file."""
    with Source(path) as source:
        for number, line in source.lines():
            if line.strip():
                yield parse(line, f"{path}, row {number}", source.limits)


def read_columns(path: Path, count: int) -> Iterator[list[str]]:
    """The rows of a tab-separated file with this many columns."""
    with Source(path) as source:
        for number, line in source.lines():
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != count:
                raise InputError(f"{len(cells)} columns, not {count}", where=f"{path}, row {number}")
            yield cells
