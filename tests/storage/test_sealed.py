"""Copies in memory that several processes share: nobody can change them, and METEOR maps them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.attack import index_files

from caplens.storage.sealed import close_copies, make_copies, shared_copy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux seals memory")

CHILD = """
import pickle, sys
from pathlib import Path
from tests.attack.index_files import score
from caplens.storage.sealed import adopt_copies, shared_copy
copies = {Path(path): int(descriptor) for path, descriptor in zip(sys.argv[1::2], sys.argv[2::2])}
adopt_copies(copies)
paths = [shared_copy(path) for path in copies]
print(score(*paths).hex())
print(sum("memfd:" in line for line in open("/proc/self/maps")))
"""


def test_a_worker_maps_the_copies_of_files_that_are_gone(tmp_path: Path) -> None:
    paths = index_files.build(tmp_path)
    right = index_files.score(*paths)
    copies = make_copies(paths)
    for path in paths:
        os.truncate(path, 10)
    try:
        words = [word for path, descriptor in copies.items() for word in (str(path), str(descriptor))]
        done = subprocess.run(
            [sys.executable, "-c", CHILD, *words], capture_output=True, text=True, cwd=Path(__file__).parents[2]
        )
    finally:
        close_copies(copies)
    assert done.stdout.splitlines() == [right.hex(), "2"], done.stderr


@pytest.mark.parametrize(
    "change",
    [lambda file: os.ftruncate(file, 1), lambda file: os.write(file, b"x"), lambda file: os.ftruncate(file, 10_000)],
)
def test_a_copy_cannot_be_changed(change: Callable[[int], object], tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    copies = make_copies([tmp_path / "a"])
    try:
        with pytest.raises(PermissionError):
            change(copies[tmp_path / "a"])
    finally:
        close_copies(copies)


def test_without_copies_the_file_itself_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"content")
    assert shared_copy(tmp_path / "a") == tmp_path / "a"
    assert make_copies([tmp_path / "a", tmp_path / "absent"]) == {}
    monkeypatch.delattr(os, "memfd_create")
    assert make_copies([tmp_path / "a"]) == {}
