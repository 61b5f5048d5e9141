"""Caches survive kills, rivals, damage and their own limits, and never return what was changed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from caplens.core.errors import CaplensWarning
from caplens.storage import digests, fingerprints
from caplens.storage.cache import EmbeddingCache, FileCache, key_of


def vector(number: int, columns: int = 64) -> np.ndarray:
    return np.full((1, columns), number, np.float32)


def keys(count: int) -> list[bytes]:
    return [key_of("encoder@1", "text", str(number)) for number in range(count)]


def test_threads_may_make_the_file_at_once(tmp_path: Path) -> None:
    for number in range(40):
        cache, start = EmbeddingCache(tmp_path / f"{number}.sqlite"), threading.Barrier(4)
        threads = [threading.Thread(target=lambda c=cache, s=start: (s.wait(), c.get([b"a"]))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cache.usable


def test_what_is_put_is_got_exactly(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path / "e.sqlite")
    matrix = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    cache.put({b"a": matrix, b"b": vector(2)})
    found = EmbeddingCache(tmp_path / "e.sqlite").get([b"a", b"b", b"c"])
    assert found.keys() == {b"a", b"b"}
    assert np.array_equal(found[b"a"], matrix)


def test_the_key_depends_on_encoder_kind_and_content() -> None:
    assert len({key_of(e, k, c) for e in ("x", "y") for k in ("text", "image") for c in ("1", "2")}) == 8


def _write_for_ever(path: Path) -> None:
    cache = EmbeddingCache(path)
    number = 0
    while True:
        cache.put({key: vector(index) for index, key in list(enumerate(keys(400)))[number % 350 : number % 350 + 50]})
        number += 50


def test_two_writers_one_killed_leave_nothing_torn(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_for_ever, args=(path,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + 30
    while len(EmbeddingCache(path)) < 100 and time.monotonic() < deadline:
        time.sleep(0.02)
    for writer in writers:
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
    cache = EmbeddingCache(path)
    found = cache.get(keys(400))
    assert len(found) >= 100
    for number, key in enumerate(keys(400)):
        if key in found:
            assert np.array_equal(found[key], vector(number))
    cache.put({b"after": vector(1)})
    assert b"after" in cache.get([b"after"])


def test_the_oldest_go_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = EmbeddingCache(tmp_path / "e.sqlite", most_bytes=400_000)
    clock = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: clock)
    for number, key in enumerate(keys(300)):
        clock += 10_000
        cache.put({key: vector(number, 1024)})
        cache.get([keys(1)[0]])  # the first is used all the time
    found = cache.get(keys(300))
    assert 20 < len(found) < 110
    assert keys(300)[-1] in found
    assert keys(300)[0] in found
    assert keys(300)[1] not in found


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    path.write_bytes(b"this was never a database" * 400)
    cache = EmbeddingCache(path)
    cache.put({b"a": vector(1)})
    assert cache.get([b"a"]) == {}
    again = EmbeddingCache(path)
    again.put({b"a": vector(1)})
    assert b"a" in again.get([b"a"])


def test_a_place_that_cannot_be_written_only_turns_it_off(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = EmbeddingCache(tmp_path / "file" / "e.sqlite")
    cache.put({b"a": vector(1)})
    assert cache.get([b"a"]) == {}


def test_size_zero_turns_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE_MB", "0")
    cache = EmbeddingCache(tmp_path / "e.sqlite")
    cache.put({b"a": vector(1)})
    assert not (tmp_path / "e.sqlite").exists()


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET value = zeroblob(length(value))",
        "UPDATE entries SET value = substr(value, 1, length(value) - 4)",
        "UPDATE entries SET value = 'text'",
        "UPDATE entries SET sum = 7",
    ],
)
def test_changed_entries_are_dropped_and_made_anew(tmp_path: Path, statement: str) -> None:
    path, wanted = tmp_path / "e.sqlite", keys(50)
    EmbeddingCache(path).put({key: vector(number) for number, key in enumerate(wanted)})
    change(path, statement)
    cache = EmbeddingCache(path)
    with pytest.warns(CaplensWarning, match="is damaged: 50 of 50 entries are made anew"):
        assert cache.get(wanted) == {}
    assert len(cache) == 0
    cache.put({wanted[0]: vector(7)})
    assert np.array_equal(cache.get(wanted)[wanted[0]], vector(7))


def test_entries_under_each_others_keys_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    EmbeddingCache(path).put({b"a": vector(1), b"b": vector(2)})
    for statement in (
        "UPDATE entries SET key = x'00' WHERE key = x'61'",
        "UPDATE entries SET key = x'61' WHERE key = x'62'",
    ):
        change(path, statement)
    with pytest.warns(CaplensWarning, match="1 entries"):
        assert EmbeddingCache(path).get([b"a"]) == {}


def test_flipped_bytes_of_the_file_are_never_returned(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path, wanted = tmp_path / "e.sqlite", keys(50)
    true = {key: rng.normal(size=(1, 384)).astype(np.float32) for key in wanted}
    EmbeddingCache(path).put(true)
    for name in tmp_path.iterdir():  # whatever of it is in the journal
        data = bytearray(name.read_bytes())
        for place in rng.integers(4096, max(4097, len(data)), 200):
            if place < len(data):
                data[place] ^= 0x10
        name.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = EmbeddingCache(path).get(wanted)
    assert all(np.array_equal(matrix, true[key]) for key, matrix in found.items())


def test_a_file_of_the_old_layout_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(
            "CREATE TABLE embeddings (key BLOB PRIMARY KEY, columns INTEGER NOT NULL, vectors BLOB NOT NULL, "
            "used INTEGER NOT NULL) WITHOUT ROWID"
        )
        base.execute("INSERT INTO embeddings VALUES (?, 1, ?, 0)", (b"a", bytes(4)))
    cache = EmbeddingCache(path)
    assert cache.get([b"a"]) == {}
    cache.put({b"a": vector(1)})
    assert np.array_equal(EmbeddingCache(path).get([b"a"])[b"a"], vector(1))
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("SELECT name FROM sqlite_master").fetchall() == [("entries",)]


def test_get_or_make_looks_up_once_and_keeps_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, wanted = EmbeddingCache(tmp_path / "e.sqlite"), keys(10)
    cache.put({key: vector(number) for number, key in enumerate(wanted[:4])})
    lookups: list[int] = []
    real = EmbeddingCache.get

    def counted(self: EmbeddingCache, some: list[bytes]) -> dict[bytes, np.ndarray]:
        lookups.append(len(some))
        return real(self, some)

    monkeypatch.setattr(EmbeddingCache, "get", counted)
    asked: list[bytes] = []

    def make(missing: list[bytes]) -> Iterator[dict[bytes, np.ndarray]]:
        asked.extend(missing)
        yield {key: vector(wanted.index(key)) for key in missing[:3]}
        assert len(EmbeddingCache(cache.path)) == 7  # the first batch is safe before the second is begun
        yield {key: vector(wanted.index(key)) for key in missing[3:5]}

    values = cache.get_or_make([*wanted, *wanted], make)
    assert lookups == [10]
    assert asked == wanted[4:]
    assert [int(values[key][0, 0]) for key in wanted[:9]] == list(range(9))
    assert wanted[9] not in values  # nothing was made of it
    cache.get_or_make(wanted[:9], lambda missing: pytest.fail("all of it is known"))


def test_get_or_make_works_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = EmbeddingCache(tmp_path / "file" / "e.sqlite")
    assert np.array_equal(cache.get_or_make([b"a"], lambda missing: [{b"a": vector(3)}])[b"a"], vector(3))


class Texts:
    """A file cache of texts that counts what is made."""

    def __init__(self) -> None:
        self.made = 0

    def get(self, content: str = "made") -> str:
        def make() -> str:
            self.made += 1
            return content

        def write(text: str, path: Path) -> None:
            path.write_text(text)

        return FileCache("texts").get_or_make("a.txt", make, Path.read_text, write)

    def build(self, content: str = "made") -> Path:
        def write(path: Path) -> None:
            self.made += 1
            path.write_text(content)

        return FileCache("texts").get_or_build("a.txt", write)


@pytest.fixture
def texts(own_folders: Path) -> Texts:
    return Texts()


def test_a_file_is_made_once(texts: Texts, tmp_path: Path) -> None:
    assert [texts.get(), texts.get(), texts.build().read_text()] == ["made"] * 3
    assert texts.made == 1
    assert FileCache("texts").find("a.txt") == tmp_path / "cache" / "texts" / "a.txt"
    assert FileCache("texts").find("b.txt") is None


def test_a_changed_file_is_made_anew_with_a_note(texts: Texts, tmp_path: Path) -> None:
    path = texts.build()
    for again in ("get", "build"):
        path.write_text("MADE")
        with pytest.warns(CaplensWarning, match="a.txt was damaged; it is made anew"):
            assert (texts.get() if again == "get" else texts.build().read_text()) == "made"
    assert texts.made == 3


def test_a_file_without_its_record_is_not_believed(texts: Texts, tmp_path: Path) -> None:
    (tmp_path / "cache" / "texts").mkdir(parents=True)
    (tmp_path / "cache" / "texts" / "a.txt").write_text("of an older version, or of a process that was killed")
    assert texts.get() == "made"
    (tmp_path / "cache" / "texts" / "a.txt.verified").write_text("{")
    assert texts.get() == "made"
    assert texts.made == 2


def test_a_file_that_cannot_be_read_is_made_anew(texts: Texts) -> None:
    def refuse(path: Path) -> str:
        raise ValueError

    texts.get()
    assert FileCache("texts").get_or_make("a.txt", lambda: "new", refuse, lambda text, path: None) == "new"


def test_an_unchanged_file_is_not_read_again(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "SETTLED_NS", -(10**18))
    texts.build()
    monkeypatch.setattr(fingerprints, "content_digest", lambda path: pytest.fail("read again"))
    assert texts.build().read_text() == "made"


def test_where_the_cache_cannot_be_written_nothing_is_lost(
    texts: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "file"))
    with pytest.warns(CaplensWarning, match="nothing can be kept in .*so a.txt is made again in every run"):
        assert texts.get() == "made"
    path = texts.build()  # one note is enough
    assert path.read_text() == "made"
    assert texts.build() == path  # once in this process
    assert texts.made == 2


def test_arrays_are_computed_once(own_folders: Path, tmp_path: Path) -> None:
    first = FileCache("arrays").get_or_compute("a.npy", lambda: np.arange(3.0))
    again = FileCache("arrays").get_or_compute("a.npy", lambda: pytest.fail("it is known"))
    assert first.tolist() == again.tolist() == [0, 1, 2]
    path = tmp_path / "cache" / "arrays" / "a.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 0x40
    path.write_bytes(data)
    with pytest.warns(CaplensWarning, match="was damaged"):
        assert FileCache("arrays").get_or_compute("a.npy", lambda: np.arange(3.0)).tolist() == [0, 1, 2]


def test_a_failed_build_leaves_nothing(own_folders: Path, tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        FileCache("texts").get_or_build("a.txt", fail)
    assert [path.name for path in (tmp_path / "cache" / "texts").iterdir() if path.suffix != ".lock"] == []


def test_of_many_threads_one_makes_the_file(texts: Texts) -> None:
    threads = [threading.Thread(target=texts.build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts.made == 1
