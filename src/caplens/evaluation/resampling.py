"""Bootstrap and approximate randomization on stored statistics: sums of re-drawn rows, never text again.

The rows of all systems stand side by side and are drawn together, so that every comparison is paired; the same seed
draws the same captions for every metric. The weights of many draws are one matrix, and their sums one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from caplens.core.types import Floats

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


def _portions(samples: int, count: int) -> Iterator[int]:
    size = max(1, CELLS // max(1, count))
    for start in range(0, samples, size):
        yield min(size, samples - start)
