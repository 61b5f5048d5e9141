"""Work in threads comes back in order, and BLAS has its own threads again when the last work is done."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from caplens.core.threads import VARIABLE, in_threads


@pytest.fixture(autouse=True)
def _three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")


def blas_threads(_: object = None) -> list[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_results_are_in_order_and_blas_is_left_as_it_was() -> None:
    before = blas_threads()
    assert in_threads(lambda number: number * number, range(50)) == [number * number for number in range(50)]
    assert all(set(during) <= {1} for during in in_threads(blas_threads, range(4)))
    assert blas_threads() == before


def test_who_leaves_first_does_not_unleash_blas_for_the_others() -> None:
    before = blas_threads()
    started, first_is_done = threading.Event(), threading.Event()
    seen: list[int] = []

    def long(number: int) -> None:
        started.set()
        assert first_is_done.wait(30)
        seen.extend(blas_threads())

    other = threading.Thread(target=in_threads, args=(long, range(2)))
    other.start()
    assert started.wait(30)
    in_threads(blas_threads, range(2))
    first_is_done.set()
    other.join()
    assert set(seen) <= {1}
    assert blas_threads() == before


def test_a_failure_is_raised_and_blas_is_left_as_it_was() -> None:
    before = blas_threads()
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda number: 1 / number, range(2))
    assert blas_threads() == before
