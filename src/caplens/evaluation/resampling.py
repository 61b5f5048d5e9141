"""Bootstrap and approximate randomization on stored statistics: sums of re-drawn rows, never text again.

The rows of all systems stand side by side and are drawn together, so that every comparison is paired; the same seed
draws the same captions for every metric. The weights of many draws are one matrix, and their sums one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from caplens.core.types import Floats

Name = TypeVar("Name", bound=Hashable)

CELLS = 1_000_000
"""Weights held at a time (8 MB), or those of one draw if it is larger."""


def bootstrap_sums(rows: Floats, samples: int, seed: int) -> Floats:
    """Sums of the rows of `samples` sets of the same size, drawn with replacement: (samples, columns)."""
    count = len(rows)
    random = np.random.default_rng(seed)

    def draw(number: int) -> Floats:
        weights = np.empty((number, count))
        for place in range(number):
            weights[place] = np.bincount(random.integers(0, count, count), minlength=count)
        return weights

    return np.concatenate([draw(number) @ rows for number in _portions(samples, count)])


def swap_sums(differences: Floats, samples: int, seed: int) -> Floats:
    """Sums of the rows of `differences` over random halves of the captions: what swapping those captions moves."""
    count = len(differences)
    random = np.random.default_rng(seed)

    def draw(number: int) -> Floats:
        width = (count + 63) // 64 * 8  # whole words per draw: the draws do not depend on the portions
        packed = np.frombuffer(random.bytes(number * width), dtype=np.uint8).reshape(number, width)
        return np.unpackbits(packed, axis=1, count=count).astype(np.float64)

    return np.concatenate([draw(number) @ differences for number in _portions(samples, count)])


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """The middle `level` of re-sampled scores (percentile interval)."""
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def share_at_least(values: Floats, threshold: float) -> float:
    """Two-sided p value: the share of |values| that reach |threshold|, the observed draw counted among them."""
    reached = np.abs(values) >= abs(threshold) - 1e-12 * max(1.0, abs(threshold))
    return float((reached.sum() + 1) / (len(values) + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Holm 1979), in the order given.

    >>> [round(value, 3) for value in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    corrected = np.empty(len(p_values))
    factors = np.arange(len(p_values), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(np.asarray(p_values)[order] * factors), 1.0)
    return [float(value) for value in corrected]


def rank_clusters(order: Sequence[Name], test: Callable[[Name, Name], float], level: float) -> dict[Name, int]:
    """Return groups that the data cannot tell apart, 1 for the best.

    Going down the ranking, an entry opens a new cluster when it is significantly worse than every entry of the current
    one; so within a cluster some pair is always undecided, between clusters every step is significant.
    """
    cluster_of: dict[Name, int] = {}
    current: list[Name] = []
    number = 1
    for name in order:
        if current and all(test(other, name) < level for other in reversed(current)):
            number += 1
            current = []
        current.append(name)
        cluster_of[name] = number
    return cluster_of


def _portions(samples: int, count: int) -> Iterator[int]:
    size = max(1, CELLS // max(1, count))
    for start in range(0, samples, size):
        yield min(size, samples - start)
