"""Engines: whatever goes through many tasks, on this machine or on many, and loses none when a worker dies.

An engine has one method: `map(work, tasks)` yields `work(task)` for every task, in any order. `work` and the tasks
travel by pickle; `work` is called many times in one worker, so what it loads stays there. Large files that every worker
reads whole can be named in `work.shared_files`: workers on one machine share a copy.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol, TypeVar

from caplens.core.errors import CaplensError, InputError
from caplens.core.threads import VARIABLE, threads_here
from caplens.storage.sealed import close_copies, make_copies

T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS = 3
"""So often a task is begun whose worker dies: one that kills its worker each time must not go on for ever."""
CHOICES = ("local", "ray")
FRUGAL = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 20),
}
"""Workers give back what they have freed: glibc and Arrow would keep it for later, in every one of them."""


class Engine(Protocol):
    """Goes through tasks."""

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]: ...


class WorkerDied(CaplensError):
    """A task whose worker died again and again; most often the memory was not enough."""


def make_engine(engine: str | Engine, workers: int | None = None, gpus_per_worker: float = 0) -> Engine:
    """Return an engine by name: ``local`` or ``ray``."""
    if not isinstance(engine, str):
        return engine
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers", remedy="give at least one")
    if engine == "local":
        return LocalEngine(workers or threads_here())
    if engine == "ray":
        from caplens.scale.ray_engine import RayEngine

        return RayEngine(workers, gpus_per_worker)
    raise InputError(f"no engine is called {engine!r}", remedy=f"take {' or '.join(CHOICES)}")


@dataclass(frozen=True)
class LocalEngine:
    """Processes on this machine, each with its share of the processors; with one worker, this process itself."""

    workers: int

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Yield what becomes of every task, the first to end first."""
        if self.workers == 1:
            yield from map(work, tasks)
            return
        workers = min(self.workers, len(tasks))
        waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        ended: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        copies = make_copies(getattr(work, "shared_files", ()))
        start = pickle.dumps((copies, work))
        pool = [_Worker(start, max(1, threads_here() // workers), copies.values()) for _ in range(workers)]
        for worker in pool:
            threading.Thread(target=worker.serve, args=(waiting, ended), daemon=True).start()
        try:
            for _ in tasks:
                succeeded, value = ended.get()
                if not succeeded:
                    raise value
                yield value
        finally:
            for worker in pool:
                worker.stop()
            close_copies(copies)


class _Worker:
    """One process, started anew when it dies, and the thread that talks to it."""

    def __init__(self, start: bytes, threads: int, descriptors: Collection[int]) -> None:
        self._start, self._threads, self._descriptors = start, threads, descriptors
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def serve(self, waiting: queue.SimpleQueue[Any], ended: queue.SimpleQueue[tuple[bool, Any]]) -> None:
        """Work through the tasks that wait until none does."""
        while not self._stopped:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                return
            ended.put(self._run(task))

    def _run(self, task: Any) -> tuple[bool, Any]:
        for _ in range(ATTEMPTS):
            try:
                process = self._started()
                assert process.stdin is not None
                assert process.stdout is not None
                send(process.stdin, pickle.dumps(task))
                succeeded, value = pickle.loads(receive(process.stdout))
                return succeeded, value
            except (EOFError, OSError):  # it is gone, and another takes over
                self._end()
        return False, WorkerDied(
            f"a worker died {ATTEMPTS} times over {task}: most often there is too little memory; "
            "take fewer workers or smaller shards"
        )

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise EOFError
            if self._process is None:
                path = os.pathsep.join(filter(None, sys.path))
                # A script that calls us need not be importable, as it would for multiprocessing.
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "caplens.scale.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    pass_fds=self._descriptors,
                    env={**os.environ, **FRUGAL, VARIABLE: str(self._threads), "PYTHONPATH": path},
                )
                assert self._process.stdin is not None
                send(self._process.stdin, self._start)
            return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def stop(self) -> None:
        """End the process, in the middle of a task if it has one."""
        self._stopped = True
        self._end()


def send(stream: IO[bytes], message: bytes) -> None:
    """Write one message."""
    stream.write(len(message).to_bytes(8, "little") + message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """Read one message; EOFError if the other side is gone."""
    size = stream.read(8)
    message = stream.read(int.from_bytes(size, "little")) if len(size) == 8 else b""
    if not size or len(message) < int.from_bytes(size, "little"):
        raise EOFError
    return message
