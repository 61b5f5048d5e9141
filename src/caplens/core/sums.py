"""Exact sums of statistics: the same to the last bit, in whatever order and portions the rows come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from caplens.core.types import Floats

_EXACT = 2.0**53
"""Whole numbers up to here add up without rounding."""


def exact_sums(rows: Floats) -> Floats:
    """Return the sum of every column, rounded once.

    >>> exact_sums(np.array([[1e16], [1.0], [-1e16]])).tolist()
    [1.0]
    """
    return np.array([math.fsum(_numbers(column)) for column in rows.T], np.float64)


def exact_parts(rows: Floats) -> list[list[float]]:
    """Return for every column a few numbers whose sum is exactly the column's: those of several sets add up."""
    return [_parts(_numbers(column)) for column in rows.T]


def add_parts(parts: Iterable[Sequence[Sequence[float]]]) -> Floats:
    """Return the sum of every column over several sets, rounded once.

    >>> add_parts([exact_parts(np.array([[1e16], [1.0]])), exact_parts(np.array([[-1e16]]))]).tolist()
    [1.0]
    """
    columns = zip(*parts, strict=True)
    return np.array([math.fsum(number for part in column for number in part) for column in columns], np.float64)


def _numbers(column: Floats) -> list[float]:
    """The numbers to add: counts, which most statistics are, are added up by numpy first, many times quicker."""
    if np.abs(column).sum() < _EXACT and (column == np.rint(column)).all():
        return [float(column.sum())]
    numbers: list[float] = column.tolist()
    return numbers


def _parts(numbers: list[float]) -> list[float]:
    """What is left after each rounded sum, until nothing is."""
    found: list[float] = []
    while (rest := math.fsum([*numbers, *(-part for part in found)])) != 0:
        found.append(rest)
    return found
