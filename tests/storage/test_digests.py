"""Digests change with the bytes of a file and with nothing else, and are read once."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from caplens.core.errors import InputError
from caplens.storage import digests
from caplens.storage.digests import content_digest
from caplens.storage.weights import model_digest


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled however new they are."""
    monkeypatch.setattr(digests, "SETTLED_NS", -(10**18))


def test_a_file_has_the_sha256_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"some bytes")
    assert content_digest(path) == hashlib.sha256(b"some bytes").hexdigest()


@pytest.mark.usefixtures("settled")
def test_a_settled_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"old")
    first = content_digest(path)

    def refuse(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("hashlib.file_digest", refuse)
    assert content_digest(path) == first
    path.write_bytes(b"new")
    with pytest.raises(AssertionError, match="read again"):
        content_digest(path)


def test_new_content_of_the_same_size_is_noticed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    seen = set()
    for number in range(50):  # quicker than the clock of the file system ticks
        path.write_bytes(b"%02d" % number)
        seen.add(content_digest(path))
    assert len(seen) == 50


@pytest.mark.usefixtures("settled")
def test_new_content_with_the_old_time_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"old")
    first, status = content_digest(path), path.stat()
    path.write_bytes(b"new")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert content_digest(path) != first


@pytest.mark.usefixtures("settled")
def test_a_file_put_in_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    path, other = tmp_path / "weights", tmp_path / "other"
    path.write_bytes(b"old")
    first, status = content_digest(path), path.stat()
    other.write_bytes(b"new")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    assert content_digest(path) != first


def test_a_folder_is_its_names_and_contents(tmp_path: Path) -> None:
    def folder(name: str, files: dict[str, str]) -> str:
        for relative, text in files.items():
            path = tmp_path / name / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return content_digest(tmp_path / name)

    one = folder("one", {"config.json": "{}", "parser/model": "m"})
    assert folder("same", {"parser/model": "m", "config.json": "{}"}) == one
    assert folder("renamed", {"parser/weights": "m", "config.json": "{}"}) != one
    assert folder("changed", {"parser/model": "n", "config.json": "{}"}) != one
    assert folder("more", {"parser/model": "m", "config.json": "{}", "extra": ""}) != one


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        content_digest(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        content_digest(tmp_path / "pipe")


def test_a_model_of_the_table_is_its_sums_and_any_other_its_bytes(tmp_path: Path) -> None:
    assert model_digest("all-MiniLM-L6-v2") == model_digest("all-MiniLM-L6-v2") != model_digest("all-mpnet-base-v2")
    path = tmp_path / "vectors.txt"
    path.write_text("a 1 2")
    assert model_digest(path) == content_digest(path)
    assert model_digest(tmp_path / "nothing") == "absent"
