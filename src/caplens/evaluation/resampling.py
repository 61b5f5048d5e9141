"""Bootstrap and approximate randomization on stored statistics: sums of re-drawn rows, never text again.

The rows of all systems stand side by side and are drawn together, so that every comparison is paired; the same seed
draws the same captions for every metric. The weights of many draws are one matrix, and their sums one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.core.types import Floats

Ints = NDArray[np.int32]
Masks = NDArray[np.uint8]
Name = TypeVar("Name", bound=Hashable)

CELLS = 1_000_000
"""Weights held at a time (8 MB), or those of one draw if it is larger."""
MOST_DRAWS = 1_000_000


def check_draws(option: str, draws: int, least: int = 0) -> None:
    """Refuse a number of draws that would take days and more memory than there is."""
    if not least <= draws <= MOST_DRAWS:
        raise InputError(f"{option}={draws}", remedy=f"give {least} to {MOST_DRAWS:,}; 1,000 is usual")


def draw_weights(random: np.random.Generator, units: int, samples: int) -> Ints:
    """Return how often each unit is drawn in each sample of as many, with replacement: (samples, units)."""
    weights = np.empty((samples, units), dtype=np.int32)
    for row in weights:
        row[:] = np.bincount(random.integers(0, units, units), minlength=units)
    return weights


def draw_swaps(random: np.random.Generator, units: int, samples: int) -> Masks:
    """Return for each unit whether two sides change places, once per sample: (samples, units) of 0 and 1."""
    return random.integers(0, 2, (samples, units), dtype=np.uint8)


def bootstrap_sums(rows: Floats, samples: int, seed: int) -> Floats:
    """Sums of the rows of `samples` sets of the same size, drawn with replacement: (samples, columns)."""
    random = np.random.default_rng(seed)
    sums = [_sums(draw_weights(random, len(rows), number), rows) for number in _portions(samples, len(rows))]
    return np.concatenate(sums)


def swap_sums(differences: Floats, samples: int, seed: int) -> Floats:
    """Sums of the rows of `differences` over random halves of the captions: what swapping those captions moves."""
    random, count = np.random.default_rng(seed), len(differences)
    sums = [_sums(draw_swaps(random, count, number), differences) for number in _portions(samples, count)]
    return np.concatenate(sums)


def _sums(weights: NDArray[np.integer], rows: Floats) -> Floats:
    return np.asarray(weights.astype(np.float64) @ rows)  # products of floats are many times quicker


def interval(values: Floats) -> tuple[float, float]:
    """Return the middle 95 % of re-sampled scores (percentile interval); those that could not be computed are left out.

    >>> interval(np.array([*range(41), np.nan]))
    (1.0, 39.0)
    """
    usable = values[~np.isnan(values)]
    low, high = np.quantile(usable, [0.025, 0.975]) if len(usable) else (np.nan, np.nan)
    return float(low), float(high)


def as_extreme(drawn: Floats, observed: float) -> NDArray[np.bool_]:
    """Return which drawn differences are as far from 0 as the observed one; rounding does not decide."""
    return np.asarray(np.abs(drawn) >= abs(observed) - 1e-12 * max(1.0, abs(observed)))


def p_value(drawn: Floats, observed: float) -> float:
    """Return the two-sided p value: the share of draws as extreme, the observed one counted among them, so never 0.

    >>> p_value(np.array([0.1, -0.3, 0.2]), 0.2)
    0.75
    """
    return float((as_extreme(drawn, observed).sum() + 1) / (len(drawn) + 1))


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
    """How many samples are drawn at a time; in fours, which use up whole random words: portions do not matter."""
    size = max(4, CELLS // max(1, count) // 4 * 4)
    for start in range(0, samples, size):
        yield min(size, samples - start)
