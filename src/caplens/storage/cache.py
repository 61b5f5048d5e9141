"""What was made once is read the next time, whoever asks: many small entries in one SQLite file, or one file per key.

A cache only saves time. Every entry and every file carries a sum: what fails it is dropped and made anew, with a note.
Where the cache cannot be used at all, a run goes on without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import tempfile
import threading
import time
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from caplens.core.errors import CaplensError, CaplensWarning
from caplens.core.types import Floats, Vectors
from caplens.storage.atomic import atomic_path
from caplens.storage.digests import digest
from caplens.storage.fingerprints import changed_files, recorded_sum, remember
from caplens.storage.locks import locked
from caplens.storage.paths import cache_folder

T = TypeVar("T")
V = TypeVar("V")

MOST_BYTES = 2 * 1024**3
"""Oldest entries go when the file grows beyond; `CAPLENS_CACHE_MB` sets another size, 0 turns the cache off."""
LAYOUT = 2
"""Of the table below; a file of another layout is emptied."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS entries "
    "(key BLOB PRIMARY KEY, value BLOB NOT NULL, sum BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID"
)
_KEYS_PER_QUERY = 500
_ATTEMPTS = 20


def key_of(encoder: str, kind: str, content: str | bytes) -> bytes:
    """Return the key of some content under an encoder: a hash of both."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return key_of_digest(encoder, kind, hashlib.sha256(data).digest())


def key_of_digest(encoder: str, kind: str, digest: bytes) -> bytes:
    """The key of some content whose sha256 is known."""
    return hashlib.sha256(f"{encoder}\0{kind}\0".encode() + digest).digest()


class EntryCache(ABC, Generic[V]):
    """Key to value, in one SQLite file.

    SQLite's journal makes every write whole or absent, also under two processes or a kill at any moment. A value's sum
    covers its key too, so that a value under a wrong key is noticed.
    """

    def __init__(self, path: Path, most_bytes: int | None = None) -> None:
        self.path = path
        self.most_bytes = most_bytes if most_bytes is not None else _configured_size()
        self.usable = self.most_bytes > 0

    @abstractmethod
    def encode(self, value: V) -> bytes:
        """Return a value as bytes."""

    @abstractmethod
    def decode(self, data: bytes) -> V:
        """Return the value of some bytes."""

    def get_or_make(
        self, keys: Iterable[bytes], make_missing: Callable[[list[bytes]], Iterable[Mapping[bytes, V]]]
    ) -> dict[bytes, V]:
        """Return the value of every key, in one look-up.

        `make_missing` is called with the keys that are not here, if any, and yields their values in batches, each of
        which is kept as soon as it comes. Keys for which it yields nothing are not in the result.
        """
        distinct = list(dict.fromkeys(keys))
        values = self.get(distinct)
        missing = [key for key in distinct if key not in values]
        if missing:
            for batch in make_missing(missing):
                self.put(batch)
                values.update(batch)
        return values

    def get(self, keys: Iterable[bytes]) -> dict[bytes, V]:
        """Return the values known for these keys."""
        distinct = list(dict.fromkeys(keys))
        values: dict[bytes, V] = {}
        damaged: list[tuple[bytes]] = []
        now = int(time.time())

        def read(connection: sqlite3.Connection) -> None:
            stale: list[tuple[int, bytes]] = []
            for start in range(0, len(distinct), _KEYS_PER_QUERY):
                part = distinct[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(part))
                for key, data, sum_, used in connection.execute(
                    f"SELECT key, value, sum, used FROM entries WHERE key IN ({marks})", part
                ):
                    if not isinstance(data, bytes) or sum_ != _sum(key, data):
                        damaged.append((key,))
                        continue
                    values[key] = self.decode(data)
                    if not isinstance(used, int) or now - used > 3600:  # at most once an hour: reading stays reading
                        stale.append((now, key))
            if stale:
                connection.executemany("UPDATE entries SET used=? WHERE key=?", stale)
            if damaged:
                connection.executemany("DELETE FROM entries WHERE key=?", damaged)

        if distinct:
            self._with(read, None)
        if damaged:
            warnings.warn(
                f"the cache {self.path} is damaged: {len(damaged):,} of {len(distinct):,} entries are made anew",
                CaplensWarning,
                stacklevel=2,
            )
        return values

    def put(self, entries: Mapping[bytes, V]) -> None:
        """Keep values; all of them or, if killed in between, none."""
        now = int(time.time())
        encoded = {key: self.encode(value) for key, value in entries.items()}
        rows = [(key, data, _sum(key, data), now) for key, data in encoded.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", rows)
            self._shrink(connection)

        if rows:
            self._with(write, None)

    def __len__(self) -> int:
        return self._with(lambda connection: int(connection.execute("SELECT count(*) FROM entries").fetchone()[0]), 0)

    def _with(self, action: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Run an action in one transaction; where the file cannot be used, go on without it.

        A connection per action: safe across forks and threads.
        """
        if not self.usable:
            return otherwise
        connection = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = _connect(self.path)
            with connection:
                return action(connection)
        except (sqlite3.OperationalError, OSError):  # locked for long, disk full, read-only
            self.usable = False
        except sqlite3.DatabaseError:  # damaged: it only held what can be made again
            self.usable = False
            _remove(self.path)
        finally:
            if connection is not None:
                connection.close()
        return otherwise

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Drop what was not used for longest until the rest fits; freed pages are used again."""
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        excess = (pages - free) * page - self.most_bytes
        if excess <= 0:
            return
        excess += self.most_bytes // 10  # some room, so that not every write has to shrink
        doomed = []
        for key, size in connection.execute("SELECT key, length(value) FROM entries ORDER BY used"):
            doomed.append((key,))
            excess -= size
            if excess <= 0:
                break
        connection.executemany("DELETE FROM entries WHERE key=?", doomed)


class EmbeddingCache(EntryCache[Vectors]):
    """Key to float32 matrix."""

    def __init__(self, path: Path | None = None, most_bytes: int | None = None) -> None:
        super().__init__(path or cache_folder() / "embeddings.sqlite", most_bytes)

    def encode(self, value: Vectors) -> bytes:
        return int(value.shape[-1]).to_bytes(4, "little") + np.ascontiguousarray(value, np.float32).tobytes()

    def decode(self, data: bytes) -> Vectors:
        columns = int.from_bytes(data[:4], "little")
        return np.frombuffer(data, np.float32, offset=4).reshape(-1, columns).copy()  # writable


class FileCache:
    """One file per name, in a folder of the cache. Of several processes one makes a file and the others wait."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find(self, name: str) -> Path | None:
        """Return the path of a file that is here and whole."""
        path, record = self._paths(name)
        try:
            sum_ = recorded_sum(path, record)
            if sum_ is None or not path.is_file():
                return None
            changed = changed_files({path: sum_}, record)
        except OSError:
            return None
        if changed:
            warnings.warn(f"{path} was damaged; it is made anew", CaplensWarning, stacklevel=2)
            return None
        return path

    def get_or_build(self, name: str, build: Callable[[Path], None]) -> Path:
        """Return the path of a file, written by `build` if it is not here; nobody sees half a file.

        Where the cache cannot be written, the file is built in a temporary folder that lasts as long as the process.
        """
        path, record = self._paths(name)
        ready = _elsewhere.get(path) or self.find(name)
        if ready is not None:
            return ready
        with locked(path):
            ready = self.find(name)  # another process may have been first
            if ready is not None:
                return ready
            try:
                _write(path, record, build)
            except OSError as error:
                return _build_elsewhere(path, build, error)
        return path

    def get_or_make(
        self, name: str, make: Callable[[], T], read: Callable[[Path], T], write: Callable[[T, Path], None]
    ) -> T:
        """Return what `read` reads from a file; without one, what `make` makes, which `write` writes for the next time.

        Where the cache cannot be written, what was made is returned all the same.
        """
        path, record = self._paths(name)
        ready = self.find(name)
        with contextlib.nullcontext() if ready else locked(path):
            ready = ready or self.find(name)  # another process may have been first
            if ready is not None:
                # What is as it was written and cannot be read is the work of another version.
                with contextlib.suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, CaplensError):
                    return read(ready)
            value = make()
            try:
                _write(path, record, lambda temporary: write(value, temporary))
            except OSError as error:
                _note(path, error)
            return value

    def get_or_compute(self, name: str, compute: Callable[[], Floats]) -> Floats:
        """Return the array in a file; without one, what `compute` computes, which is kept for the next time."""
        return self.get_or_make(name, compute, _read_array, _write_array)

    def _paths(self, name: str) -> tuple[Path, Path]:
        path = cache_folder() / self._folder / name
        return path, path.with_name(f"{name}.verified")


_elsewhere: dict[Path, Path] = {}
"""Files that were built outside the cache, by where they should be."""
_elsewhere_lock = threading.Lock()


def _build_elsewhere(path: Path, build: Callable[[Path], None], error: OSError) -> Path:
    with _elsewhere_lock:
        if path not in _elsewhere:
            folder = tempfile.TemporaryDirectory(prefix="caplens-")
            target = Path(folder.name) / path.name
            build(target)
            _elsewhere[path] = target
            _elsewhere_folders.append(folder)
            _note(path, error)
        return _elsewhere[path]


_elsewhere_folders: list[tempfile.TemporaryDirectory[str]] = []
"""Removed when the process ends."""


def _write(path: Path, record: Path, build: Callable[[Path], None]) -> None:
    with atomic_path(path) as temporary:
        build(temporary)
        sum_ = digest(temporary)
    remember({path: sum_}, record)


_noted: set[Path] = set()
"""Folders about which a note was given, once per process."""


def _note(path: Path, error: OSError) -> None:
    if path.parent not in _noted:
        _noted.add(path.parent)
        reason = error.strerror or str(error)
        warnings.warn(
            f"nothing can be kept in {path.parent} ({reason}), so {path.name} is made again in every run",
            CaplensWarning,
            stacklevel=4,
        )


def _read_array(path: Path) -> Floats:
    array: Floats = np.load(path, allow_pickle=False)
    return array


def _write_array(array: Floats, path: Path) -> None:
    with path.open("wb") as file:  # given a path, numpy would add a suffix
        np.save(file, array)


def _sum(key: bytes, data: bytes) -> bytes:
    sum_ = hashlib.blake2b(key, digest_size=16)
    sum_.update(data)
    return sum_.digest()


def _connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that has the table; where several make a new file at once, SQLite fails, not waits."""
    for attempt in range(1, _ATTEMPTS + 1):
        connection = sqlite3.connect(path, timeout=30)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            if connection.execute("PRAGMA user_version").fetchone()[0] != LAYOUT:
                _set_up(connection)
        except sqlite3.Error as error:
            connection.close()
            if "locked" not in str(error) or attempt == _ATTEMPTS:
                raise
            time.sleep(0.01 * attempt)
        else:
            break
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    """Make the table, in place of those of another layout."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] != LAYOUT:  # nobody else was first
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall():
            connection.execute(f'DROP TABLE "{name}"')
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA user_version={LAYOUT}")
    connection.commit()


def _configured_size() -> int:
    text = os.environ.get("CAPLENS_CACHE_MB", "")
    return int(text) * 2**20 if text.isdigit() else MOST_BYTES


def _remove(path: Path) -> None:
    for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        with contextlib.suppress(OSError):
            name.unlink()
