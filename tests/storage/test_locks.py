"""Locks: one at a time where they can be had, and no failure where they cannot."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from caplens.storage.locks import locked


def test_one_at_a_time(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        with locked(tmp_path / "new" / "file"):
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert list((tmp_path / "new").iterdir()) == []


def test_without_a_place_for_the_lock_the_work_is_done_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = False
    with locked(tmp_path / "file" / "inside"):
        done = True
    assert done
