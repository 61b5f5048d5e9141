"""The cache survives kills, rivals, damage and its own limit."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from caplens.storage.cache import EmbeddingCache, key_of


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
