"""Embeddings on disk: what was encoded once is read the next time, whoever asks.

One SQLite file. Its journal makes every write whole or absent, also under two processes or a kill at any moment; when
the file itself is damaged or cannot be used, a run goes on without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from caplens.core.types import Vectors
from caplens.storage.paths import cache_folder

T = TypeVar("T")

MOST_BYTES = 2 * 1024**3
"""Oldest entries go when the file grows beyond; `CAPLENS_CACHE_MB` sets another size, 0 turns the cache off."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS embeddings "
    "(key BLOB PRIMARY KEY, columns INTEGER NOT NULL, vectors BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID"
)
_KEYS_PER_QUERY = 500
_ATTEMPTS = 20


def key_of(encoder: str, kind: str, content: str | bytes) -> bytes:
    """The key of some content under an encoder: a hash of both."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(f"{encoder}\0{kind}\0".encode() + hashlib.sha256(data).digest()).digest()


class EmbeddingCache:
    """Key to float32 matrix, on disk."""

    def __init__(self, path: Path | None = None, most_bytes: int | None = None) -> None:
        self.path = path or cache_folder() / "embeddings.sqlite"
        self.most_bytes = most_bytes if most_bytes is not None else _configured_size()
        self.usable = self.most_bytes > 0

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

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Vectors]:
        """The matrices known for these keys."""
        wanted = list(dict.fromkeys(keys))
        found: dict[bytes, Vectors] = {}
        now = int(time.time())

        def read(connection: sqlite3.Connection) -> None:
            stale: list[tuple[int, bytes]] = []
            for start in range(0, len(wanted), _KEYS_PER_QUERY):
                part = wanted[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(part))
                for key, columns, data, used in connection.execute(
                    f"SELECT key, columns, vectors, used FROM embeddings WHERE key IN ({marks})", part
                ):
                    found[key] = np.frombuffer(data, np.float32).reshape(-1, columns).copy()  # writable
                    if now - used > 3600:  # written at most once an hour, so that reading stays reading
                        stale.append((now, key))
            if stale:
                connection.executemany("UPDATE embeddings SET used=? WHERE key=?", stale)

        self._with(read, None)
        return found

    def put(self, entries: Mapping[bytes, Vectors]) -> None:
        """Keep matrices; all of them or, if killed in between, none."""
        now = int(time.time())
        rows = [
            (key, matrix.shape[-1], np.ascontiguousarray(matrix, np.float32).tobytes(), now)
            for key, matrix in entries.items()
        ]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?, ?)", rows)
            self._shrink(connection)

        if rows:
            self._with(write, None)

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
        for key, size in connection.execute("SELECT key, length(vectors) FROM embeddings ORDER BY used"):
            doomed.append((key,))
            excess -= size
            if excess <= 0:
                break
        connection.executemany("DELETE FROM embeddings WHERE key=?", doomed)

    def __len__(self) -> int:
        return self._with(
            lambda connection: int(connection.execute("SELECT count(*) FROM embeddings").fetchone()[0]), 0
        )


def _connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that has the table; where several make a new file at once, SQLite fails, not waits."""
    for attempt in range(1, _ATTEMPTS + 1):
        connection = sqlite3.connect(path, timeout=30)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(_TABLE)
        except sqlite3.Error as error:
            connection.close()
            if "locked" not in str(error) or attempt == _ATTEMPTS:
                raise
            time.sleep(0.01 * attempt)
        else:
            break
    return connection


def _configured_size() -> int:
    text = os.environ.get("CAPLENS_CACHE_MB", "")
    return int(text) * 2**20 if text.isdigit() else MOST_BYTES


def _remove(path: Path) -> None:
    for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        with contextlib.suppress(OSError):
            name.unlink()
