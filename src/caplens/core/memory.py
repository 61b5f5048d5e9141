"""How a process that runs for long keeps its memory: what was freed goes back to the system."""

from __future__ import annotations

import contextlib
import ctypes

# mallopt's names for them, from glibc's malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
LARGE = 1 << 20
"""Bytes: a piece of this size is the system's again as soon as it is freed."""


def give_back_freed() -> None:
    """Have glibc keep little of what is freed, for all threads together; other systems do as they do."""
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        # Every thread would have an arena of its own, each as large as it ever was.
        for setting, value in ((_ARENA_MAX, 2), (_MMAP_THRESHOLD, LARGE), (_TRIM_THRESHOLD, LARGE)):
            mallopt(setting, value)
