"""How far scores and people agree: correlations and shares, with intervals, paired tests and clusters.

Whatever is resampled is the *unit*, an image with all its captions, never a single row: captions of one image are not
independent. A resample is a vector of how often each unit was drawn, so nothing is ever copied or scored again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from caplens.core.types import Floats
from caplens.evaluation import resampling
from caplens.evaluation.resampling import Ints, Masks
from caplens.native import _kernels

Correlation = Literal["tau-b", "tau-c", "spearman", "pearson"]


def draw_weights(units: int, samples: int, seed: int) -> Ints:
    """Bootstrap: how often each unit is drawn in each sample, (samples, units).

    >>> draw_weights(3, 2, seed=1).sum(axis=1)
    array([3, 3])
    """
    return resampling.draw_weights(np.random.default_rng([seed, units]), units, samples)


def draw_swaps(units: int, permutations: int, seed: int) -> Masks:
    """Paired permutation: for each unit, whether the two metrics change places, (permutations, units)."""
    return resampling.draw_swaps(np.random.default_rng([seed, units, 1]), units, permutations)


def dense_ranks(values: Floats) -> Ints:
    """Class numbers from 0, equal values sharing one.

    >>> dense_ranks(np.array([2.0, 5.0, 2.0]))
    array([0, 1, 0], dtype=int32)
    """
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def correlate(kind: Correlation, x: Floats, y: Floats, units: Ints, weights: Ints) -> Floats:
    """One correlation per resample (per row of `weights`); NaN where one side is constant.

    >>> everything = np.ones((1, 3), dtype=np.int32)
    >>> correlate("tau-b", np.array([1.0, 2, 3]), np.array([1.0, 3, 2]), np.arange(3, dtype=np.int32), everything)
    array([0.33333333])
    """
    if kind == "pearson":
        return _pearson(_sums(units, weights.shape[1], x, y), weights)
    x_ranks, y_ranks = dense_ranks(x), dense_ranks(y)
    if kind == "spearman":
        return np.array([_spearman(x_ranks, y_ranks, draw[units]) for draw in weights])
    return _tau(kind, _kernels.kendall_resampled(x_ranks, y_ranks, units, np.ascontiguousarray(weights)))


def correlate_swapped(kind: Correlation, a: Floats, b: Floats, y: Floats, units: Ints, masks: Masks) -> Floats:
    """Correlation of a mixture of two metrics minus that of the other half, once per mask.

    Scores of two metrics live on two scales, so they change places as ranks (for rank correlations) or as z-scores
    (Pearson): the PERM-BOTH test of Deutsch et al., TACL 2021, with images as units.
    """
    if kind == "pearson":
        first, second = _standardised(a), _standardised(b)
        sums_a, sums_b = (_sums(units, masks.shape[1], x, y) for x in (first, second))
        change = masks.astype(np.float64) @ (sums_b - sums_a)
        mixed, rest = sums_a.sum(axis=0) + change, sums_b.sum(axis=0) - change
        return _pearson_of(mixed) - _pearson_of(rest)
    joint = dense_ranks(np.concatenate([_midranks(a), _midranks(b)]))
    first_ranks, second_ranks = joint[: len(a)].copy(), joint[len(a) :].copy()
    y_ranks = dense_ranks(y)
    if kind == "spearman":
        once = np.ones(len(a), dtype=np.int32)
        picks = (masks[:, units] > 0) if len(masks) else np.zeros((0, len(a)), dtype=bool)
        return np.array(
            [
                _spearman(np.where(pick, second_ranks, first_ranks), y_ranks, once)
                - _spearman(np.where(pick, first_ranks, second_ranks), y_ranks, once)
                for pick in picks
            ]
        )
    masks = np.ascontiguousarray(masks)
    return _tau(kind, _kernels.kendall_swapped(first_ranks, second_ranks, y_ranks, units, masks)) - _tau(
        kind, _kernels.kendall_swapped(second_ranks, first_ranks, y_ranks, units, masks)
    )


def share(values: Floats, units: Ints, weights: Ints) -> Floats:
    """Mean of the items' values per resample; items without a value (NaN) are left out."""
    known = ~np.isnan(values)
    count = weights.shape[1]
    top = np.bincount(units[known], weights=values[known], minlength=count)
    bottom = np.bincount(units[known], minlength=count)
    with np.errstate(invalid="ignore"):
        return np.asarray((weights @ top) / (weights @ bottom), dtype=np.float64)


def share_swapped(a: Floats, b: Floats, units: Ints, masks: Masks) -> Floats:
    """Share of a mixture of two metrics' item values minus that of the other half, once per mask."""
    known = ~(np.isnan(a) | np.isnan(b))
    gain = np.bincount(units[known], weights=(a - b)[known], minlength=masks.shape[1]) / max(1, int(known.sum()))
    return np.asarray((1.0 - 2.0 * masks) @ gain, dtype=np.float64)


def preferred(better: Floats, worse: Floats, ties: Literal["half", "wrong"]) -> Floats:
    """1 where the metric prefers the caption that people prefer; a tie between the two scores counts as the rule says.

    >>> preferred(np.array([2.0, 1.0, 1.0]), np.array([1.0, 1.0, 3.0]), "half")
    array([1. , 0.5, 0. ])
    """
    tie = 0.5 if ties == "half" else 0.0
    right = np.where(better > worse, 1.0, np.where(better == worse, tie, 0.0))
    right[np.isnan(better) | np.isnan(worse)] = np.nan
    return right


def average_precision(scores: Floats, positive: Masks, units: Ints, weights: Ints) -> Floats:
    """Area under the curve of precision over recall, per resample, when rows are called positive from the lowest score.

    Rows of equal score are called positive together, as scikit-learn does.

    >>> everything = np.ones((1, 3), dtype=np.int32)
    >>> average_precision(np.array([0.1, 0.5, 0.9]), np.array([1, 0, 1]), np.arange(3, dtype=np.int32), everything)
    array([0.83333333])
    """
    order = np.argsort(scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    drawn = weights[:, units[order]].astype(np.float64)
    called = np.cumsum(drawn, axis=1)[:, ends]
    right = np.cumsum(drawn * positive[order], axis=1)[:, ends]
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(called > 0, right / called, 0.0)
        return np.asarray((np.diff(right, axis=1, prepend=0) * precision).sum(axis=1) / right[:, -1], dtype=np.float64)


def average_precision_swapped(a: Floats, b: Floats, positive: Masks, units: Ints, masks: Masks) -> Floats:
    """Average precision of a mixture of two metrics, which change places as ranks, minus that of the other half."""
    first, second = _midranks(a), _midranks(b)
    rows, once = np.arange(len(a), dtype=np.int32), np.ones((1, len(a)), dtype=np.int32)

    def precision(scores: Floats) -> float:
        return float(average_precision(scores, positive, rows, once)[0])

    picks = masks[:, units] > 0
    return np.array(
        [precision(np.where(pick, second, first)) - precision(np.where(pick, first, second)) for pick in picks]
    )


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % bootstrap interval (percentiles over images)."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, resamples: Floats) -> Estimate:
        return cls(value, *resampling.interval(resamples))


def _tau(kind: Correlation, counts: Floats) -> Floats:
    score, tied_x, tied_y, pairs, distinct_x, distinct_y = counts.T
    with np.errstate(invalid="ignore", divide="ignore"):
        if kind == "tau-b":
            return np.asarray(score / np.sqrt((pairs - tied_x) * (pairs - tied_y)), dtype=np.float64)
        classes = np.minimum(distinct_x, distinct_y)
        rows = (1.0 + np.sqrt(1.0 + 8.0 * pairs)) / 2.0  # pairs = rows (rows - 1) / 2
        tau = 2.0 * score / (rows**2 * (classes - 1) / classes)
    return np.where(classes < 2, np.nan, tau)


def _midranks(values: Floats) -> Floats:
    ranks = dense_ranks(values)
    counts = np.bincount(ranks)
    return np.asarray((np.cumsum(counts) - counts + (counts + 1) / 2.0)[ranks], dtype=np.float64)


def _spearman(x_ranks: Ints, y_ranks: Ints, weight: Ints) -> float:
    x, y = (_weighted_midranks(ranks, weight) for ranks in (x_ranks, y_ranks))
    # Sums of products, not dot products: threaded BLAS is slower than that on a busy machine.
    total = weight.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y = x - (weight * x).sum() / total, y - (weight * y).sum() / total
        weighted = weight * x
        return float((weighted * y).sum() / np.sqrt((weighted * x).sum() * (weight * y * y).sum()))


def _weighted_midranks(ranks: Ints, weight: Ints) -> Floats:
    counts = np.bincount(ranks, weights=weight)
    return np.asarray((np.cumsum(counts) - counts + (counts + 1) / 2.0)[ranks], dtype=np.float64)


def _standardised(values: Floats) -> Floats:
    spread = values.std()
    return np.asarray((values - values.mean()) / (spread if spread > 0 else 1.0), dtype=np.float64)


def _sums(units: Ints, count: int, x: Floats, y: Floats) -> Floats:
    """Per unit what Pearson's r needs: n, Σx, Σy, Σxx, Σyy, Σxy, after centring for accuracy."""
    x, y = x - x.mean(), y - y.mean()
    columns = (np.ones_like(x), x, y, x * x, y * y, x * y)
    return np.stack([np.bincount(units, weights=column, minlength=count) for column in columns], axis=1)


def _pearson(sums: Floats, weights: Ints) -> Floats:
    return _pearson_of(weights @ sums)


def _pearson_of(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = sums.T
    spread_x, spread_y = n * xx - x * x, n * yy - y * y
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (n * xy - x * y) / np.sqrt(spread_x * spread_y)
    # What is left of a constant column after cancellation is noise, not spread.
    constant = (spread_x <= 1e-12 * n * xx) | (spread_y <= 1e-12 * n * yy)
    return np.where(constant, np.nan, r)
