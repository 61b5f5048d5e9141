"""Draws, intervals and p values, which evaluation and bench share."""

from __future__ import annotations

import numpy as np
import pytest

from caplens.bench.agreement import Estimate
from caplens.evaluation import resampling


def test_weights_and_swaps_come_from_the_generator_in_order() -> None:
    whole = np.random.default_rng(3)
    parts = np.random.default_rng(3)
    assert np.array_equal(
        resampling.draw_weights(whole, 7, 8),
        np.concatenate([resampling.draw_weights(parts, 7, number) for number in (3, 5)]),
    )
    whole, parts = np.random.default_rng(3), np.random.default_rng(3)
    assert np.array_equal(
        resampling.draw_swaps(whole, 7, 12),
        np.concatenate([resampling.draw_swaps(parts, 7, number) for number in (4, 8)]),
    )


def test_swaps_are_halves() -> None:
    masks = resampling.draw_swaps(np.random.default_rng(1), 100, 2000)
    assert set(np.unique(masks)) == {0, 1}
    assert masks.mean() == pytest.approx(0.5, abs=0.01)


def test_the_interval_is_the_middle_95_percent_of_what_could_be_computed() -> None:
    values = np.concatenate([np.arange(1001.0), [np.nan] * 50])
    assert resampling.interval(np.random.default_rng(0).permutation(values)) == (25.0, 975.0)
    assert np.isnan(resampling.interval(np.full(3, np.nan))).all()
    assert np.isnan(resampling.interval(np.empty(0))).all()


def test_an_estimate_has_that_interval() -> None:
    values = np.random.default_rng(2).normal(size=500)
    assert (Estimate.of(0.0, values).low, Estimate.of(0.0, values).high) == resampling.interval(values)


def test_a_p_value_counts_both_sides_and_ties_whatever_rounding_says() -> None:
    assert resampling.p_value(np.array([0.3, -0.3, 0.1, 0.0]), 0.1 + 0.2) == 3 / 5
    assert resampling.p_value(np.array([0.3, -0.3, 0.1, 0.0]), -0.3) == 3 / 5
    assert resampling.p_value(np.empty(0), 1.0) == 1.0
    assert resampling.p_value(np.zeros(999), 1.0) == 1 / 1000


def test_clusters_open_only_when_worse_than_every_member() -> None:
    undecided = {("a", "b"), ("b", "c")}

    def test(better: str, worse: str) -> float:
        return 0.5 if (better, worse) in undecided else 0.001

    assert resampling.rank_clusters(["a", "b", "c", "d"], test, 0.05) == {"a": 1, "b": 1, "c": 1, "d": 2}
