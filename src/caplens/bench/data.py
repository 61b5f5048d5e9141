"""Finding a rating set's files below the folders that the user names, whatever the layout above them is."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TextIO

from caplens.core.errors import InputError, MissingData

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
            for place, _, names in sorted(os.walk(folder, followlinks=True)):
                for name in sorted(names):
                    if os.path.splitext(name)[1].lower() in PICTURES:
                        self._pictures.setdefault(name, Path(place, name))
                    else:
                        self._files.setdefault(name, []).append(Path(place, name))

    def find(self, *names: str) -> Path | None:
        """The first of the names that exists, plain or gzipped; among several files the one least deep."""
        for name in names:
            parts = PurePosixPath(name).parts
            for suffix in ("", ".gz"):
                hits = [
                    path
                    for path in self._files.get(parts[-1] + suffix, [])
                    if path.parts[-len(parts) : -1] == parts[:-1]
                ]
                if hits:
                    return min(hits, key=lambda path: (len(path.parts), str(path)))
        return None

    def require(self, title: str, home: str, *names: str) -> Path:
        """Like `find`; what is missing is said with where to get it."""
        found = self.find(*names)
        if found is None:
            looked = ", ".join(str(folder) for folder in self.folders) or "no folder (give --data DIR)"
            raise MissingData(f"{title} needs {' or '.join(names)}; looked below {looked}. Get it: {home}")
        return found

    def picture(self, name: str) -> Path | None:
        """A picture by its file name, in any folder below."""
        return self._pictures.get(PurePosixPath(name).name)

    def pictures(self, names: Sequence[str]) -> list[Any] | None:
        """One entry per name; None altogether when not a single one is here."""
        found = [self.picture(name) for name in names]
        return found if any(path is not None for path in found) else None


def open_text(path: Path) -> TextIO:
    """A text file, gunzipped by its name."""
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8")
    return path.open(encoding="utf-8")


def read_json(path: Path) -> Any:
    """A whole json file."""
    with open_text(path) as handle:
        try:
            return json.load(handle)
        except json.JSONDecodeError as error:
            raise InputError(f"not json: {error}", where=str(path)) from None


def read_json_lines(path: Path) -> Iterator[Any]:
    """The rows of a json-lines file."""
    with open_text(path) as handle:
        for number, line in enumerate(handle, start=1):
            if line.strip():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    raise InputError(f"not json: {error}", where=f"{path}, row {number}") from None


def read_columns(path: Path, count: int) -> Iterator[list[str]]:
    """The rows of a tab-separated file with this many columns."""
    with open_text(path) as handle:
        for number, line in enumerate(handle, start=1):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != count:
                raise InputError(f"{len(cells)} columns, not {count}", where=f"{path}, row {number}")
            yield cells
