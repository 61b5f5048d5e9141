"""One answer for the whole process to "how many threads?".

BLAS, torch, onnxruntime and decoding use the processors that are there, and a worker among several only its share.
"""

from __future__ import annotations

import os

VARIABLE = "OMP_NUM_THREADS"
"""What BLAS, torch and onnxruntime all heed, if it is set before they are loaded."""


def threads_here() -> int:
    """Return how many threads may compute: what OMP_NUM_THREADS says, else the processors this process may use."""
    asked = os.environ.get(VARIABLE, "")
    if asked.isdigit() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
