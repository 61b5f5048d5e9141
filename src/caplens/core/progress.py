"""How long work reports how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told how far a long piece of work is; the command line draws a bar, the default is silent."""

    def __call__(self, task: str, done: int, total: int) -> None: ...


def silent(task: str, done: int, total: int) -> None:
    """Show no progress."""
