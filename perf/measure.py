"""Measuring for the scripts of this folder: CPU seconds, children such as Java included, and printed ratios."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def cpu_seconds() -> float:
    """CPU seconds of this process and of its finished children, all threads."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(call: Callable[[], T], runs: int = 1) -> tuple[float, T]:
    """The least CPU seconds of some runs, and what the last one returned; printing is silenced."""
    best = float("inf")
    for _ in range(runs):
        start = cpu_seconds()
        with contextlib.redirect_stdout(io.StringIO()):
            made = call()
        best = min(best, cpu_seconds() - start)
    return best, made


def show(what: str, peer: float, mine: float, bar: float) -> None:
    """One line: both times, the ratio, and what it should be."""
    verdict = "ok" if peer / mine >= bar else "BELOW THE BAR"
    print(f"{what:44} peer {peer:8.3f} s   caplens {mine:8.4f} s   {peer / mine:7.2f}x   (bar {bar:g}x: {verdict})")


def run_alone(code: str) -> dict[str, float]:
    """Run Python code in a process of its own: wall seconds, CPU seconds and peak memory in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    # The kernel's own mark: ru_maxrss starts at what the parent held when it started the child.
    report = "\nprint(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
    done = subprocess.run(
        [sys.executable, "-c", code + report], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "memory": int(done.stdout.split()[-1]) / 1024}
