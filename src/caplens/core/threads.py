"""One answer for the whole process to "how many threads?".

BLAS, torch, onnxruntime and decoding use the processors that are there, and a worker among several only its share.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import ThreadpoolController

S = TypeVar("S")
T = TypeVar("T")

VARIABLE = "OMP_NUM_THREADS"
"""What BLAS, torch and onnxruntime all heed, if it is set before they are loaded."""


def threads_here() -> int:
    """Return how many threads may compute: what OMP_NUM_THREADS says, else the processors this process may use."""
    asked = os.environ.get(VARIABLE, "")
    if asked.isdigit() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """Return what is made of each item, in order: as many at once as there are threads, each with BLAS for itself.

    Threads of BLAS would share every single product instead, and spin from one to the next.
    """
    if len(items) < 2 or threads_here() < 2:
        return list(map(work, items))
    with _one_thread_per_product, ThreadPoolExecutor(threads_here()) as pool:
        return list(pool.map(work, items))


class _OneThreadPerProduct:
    """Keeps BLAS from using threads of its own until the last who asked for that has left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limit = _libraries().limit(limits=1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limit.restore_original_limits()


_one_thread_per_product = _OneThreadPerProduct()


@functools.cache
def _libraries() -> ThreadpoolController:
    """The libraries that are loaded when products are first made in threads."""
    return ThreadpoolController()
