"""Where results can be logged: the compat room registers what it can write to, so that results need not know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caplens.core.errors import InputError

_destinations: dict[str, Callable[..., Any]] = {}


def register_destination(name: str, log: Callable[..., Any]) -> None:
    """Make `log(report, prefix, step, **options)` what `report.log_to(name)` does."""
    _destinations[name] = log


def log_report(name: str, report: Any, prefix: str, step: int | None, **options: Any) -> Any:
    """Log a report where the name says."""
    if name not in _destinations:
        raise InputError(f"nothing can be logged to {name!r}", remedy=f"choose one of {', '.join(_destinations)}")
    return _destinations[name](report, prefix, step, **options)
