"""Engines: whatever goes through many tasks, on this machine or on many, and loses none when a worker dies.

An engine starts workers, and workers have one method: `map(work, tasks)` yields `work(task)` for every task, in any
order. `work` and the tasks travel by pickle; `work` is called many times in one worker, so what it loads stays there,
and workers stay from one map to the next. Large files that every worker reads whole can be named in
`work.shared_files`: workers on one machine share a copy.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
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


class Workers(Protocol):
    """Go through tasks, as often as they are given some."""

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]: ...


class Engine(Protocol):
    """Starts workers."""

    def start(self, most: int) -> AbstractContextManager[Workers]:
        """Return workers for at most so many tasks at a time; they end with the context."""


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

    @contextmanager
    def start(self, most: int) -> Iterator[Workers]:
        """Yield workers; a process starts when there is something for it to do."""
        if self.workers == 1:
            yield ThisProcess()
            return
        workers = max(1, min(self.workers, most))
        processes = Processes([_Worker(max(1, threads_here() // workers)) for _ in range(workers)])
        try:
            yield processes
        finally:
            processes.end()


class ThisProcess:
    """Goes through tasks itself."""

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Yield what becomes of every task."""
        return map(work, tasks)


class Processes:
    """Goes through tasks in processes of their own."""

    def __init__(self, pool: Sequence[_Worker]) -> None:
        self._pool = pool

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Yield what becomes of every task, the first to end first."""
        waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        ended: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        copies = make_copies(getattr(work, "shared_files", ()))
        run = _Run(pickle.dumps((copies, work)), waiting, ended)
        threads = [threading.Thread(target=worker.serve, args=(run,), daemon=True) for worker in self._pool]
        for thread in threads[: len(tasks)]:
            thread.start()
        left = len(tasks)
        try:
            while left:
                succeeded, value = ended.get()
                if not succeeded:
                    raise value
                left -= 1
                yield value
        finally:
            run.stopped.set()
            if left:  # whoever asked has left, and nobody wants what is begun
                self.end()
            close_copies(copies)

    def end(self) -> None:
        """End the processes, in the middle of a task if they have one; the next map starts others."""
        for worker in self._pool:
            worker.end()


@dataclass(frozen=True)
class _Run:
    """One map: its work, what waits, and what has ended."""

    work: bytes
    waiting: queue.SimpleQueue[Any]
    ended: queue.SimpleQueue[tuple[bool, Any]]
    stopped: threading.Event = field(default_factory=threading.Event)


class _Worker:
    """One process, started anew when it dies, and what a thread needs to talk to it."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._work = b""
        """What the process was told to do last."""
        self._lock = threading.Lock()

    def serve(self, run: _Run) -> None:
        """Work through the tasks that wait until none does."""
        while not run.stopped.is_set():
            try:
                task = run.waiting.get_nowait()
            except queue.Empty:
                return
            run.ended.put(self._attempt(run, task))

    def _attempt(self, run: _Run, task: Any) -> tuple[bool, Any]:
        for _ in range(ATTEMPTS):
            try:
                process = self._started(run)
                assert process.stdin is not None
                assert process.stdout is not None
                send(process.stdin, b"" if self._work is run.work else run.work)
                self._work = run.work
                send(process.stdin, pickle.dumps(task))
                succeeded, value = pickle.loads(receive(process.stdout))
                return succeeded, value
            except (EOFError, OSError):  # it is gone, and another takes over
                self.end()
        return False, WorkerDied(
            f"a worker died {ATTEMPTS} times over {task}: most often there is too little memory; "
            "take fewer workers or smaller shards"
        )

    def _started(self, run: _Run) -> subprocess.Popen[bytes]:
        with self._lock:
            if run.stopped.is_set():
                raise EOFError
            if self._process is None:
                path = os.pathsep.join(filter(None, sys.path))
                self._work = b""
                # A script that calls us need not be importable, as it would for multiprocessing.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "caplens.scale.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, **FRUGAL, VARIABLE: str(self._threads), "PYTHONPATH": path},
                )
            return self._process

    def end(self) -> None:
        """End the process."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


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
