"""The statistics against scipy on repeated rows, and the tests against what must come out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from caplens.bench import agreement
from caplens.bench.agreement import Correlation
from caplens.core.types import Floats
from caplens.evaluation.resampling import p_value

KINDS: dict[Correlation, Callable[[Floats, Floats], float]] = {
    "tau-b": lambda x, y: scipy.stats.kendalltau(x, y).statistic,
    "tau-c": lambda x, y: scipy.stats.kendalltau(x, y, variant="c").statistic,
    "spearman": lambda x, y: float(scipy.stats.spearmanr(x, y).statistic),
    "pearson": lambda x, y: scipy.stats.pearsonr(x, y).statistic,
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_correlation_of_a_resample_is_scipys_on_the_repeated_rows(kind: Correlation, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, count = int(random.integers(3, 40)), int(random.integers(2, 9))
    x = random.integers(0, random.integers(2, 30), rows) / 7
    y = random.integers(1, random.integers(3, 6), rows).astype(float)
    units = random.integers(0, count, rows).astype(np.int32)
    weights = agreement.draw_weights(count, 4, seed)
    for got, drawn in zip(agreement.correlate(kind, x, y, units, weights), weights, strict=True):
        repeated = np.repeat(np.arange(rows), drawn[units])
        if len(set(x[repeated])) < 2 or len(set(y[repeated])) < 2:
            assert np.isnan(got)
        else:
            assert got == pytest.approx(KINDS[kind](x[repeated], y[repeated]), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_swapping_nothing_gives_the_observed_difference_and_everything_its_negative(kind: Correlation) -> None:
    random = np.random.default_rng(3)
    y = random.integers(1, 5, 50).astype(float)
    a, b = y + random.normal(size=50), y + 3 * random.normal(size=50)
    units = np.repeat(np.arange(10), 5).astype(np.int32)
    masks = np.array([np.zeros(10), np.ones(10)], dtype=np.uint8)
    got = agreement.correlate_swapped(kind, a, b, y, units, masks)
    observed = KINDS[kind](a, y) - KINDS[kind](b, y)
    assert got == pytest.approx([observed, -observed], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_permutation_test_tells_a_good_metric_from_noise_and_not_from_itself(kind: Correlation) -> None:
    random = np.random.default_rng(5)
    y = random.integers(1, 5, 300).astype(float)
    units = np.arange(300, dtype=np.int32) // 3
    good, noise = y + random.normal(size=300), random.normal(size=300)
    masks = agreement.draw_swaps(100, 200, seed=1)
    better = KINDS[kind](good, y) - KINDS[kind](noise, y)
    assert p_value(agreement.correlate_swapped(kind, good, noise, y, units, masks), better) < 0.01
    assert p_value(agreement.correlate_swapped(kind, good, good, y, units, masks), 0.0) == 1.0


def test_a_monotone_change_of_one_metric_changes_no_rank_test() -> None:
    random = np.random.default_rng(8)
    y = random.integers(1, 5, 80).astype(float)
    a, b = y + random.normal(size=80), random.normal(size=80)
    units = np.arange(80, dtype=np.int32)
    masks = agreement.draw_swaps(80, 20, seed=1)
    before = agreement.correlate_swapped("tau-c", a, b, y, units, masks)
    assert agreement.correlate_swapped("tau-c", np.exp(3 * a), b, y, units, masks) == pytest.approx(before)


def test_share_resamples_units_and_skips_items_without_a_value() -> None:
    values = np.array([1.0, 0.0, np.nan, 0.5])
    units = np.array([0, 0, 1, 2], dtype=np.int32)
    weights = np.array([[1, 1, 1], [2, 0, 1], [0, 5, 0]], dtype=np.int32)
    assert agreement.share(values, units, weights) == pytest.approx([0.5, 2.5 / 5, np.nan], nan_ok=True)


def test_share_swapped_is_the_difference_of_the_mixtures() -> None:
    a, b = np.array([1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0])
    units = np.array([0, 1, 1], dtype=np.int32)
    masks = np.array([[0, 0], [1, 0]], dtype=np.uint8)
    assert agreement.share_swapped(a, b, units, masks) == pytest.approx([1 / 3, -1 / 3])


def test_a_tie_counts_as_the_rule_says_and_a_missing_score_not_at_all() -> None:
    better, worse = np.array([1.0, 2.0, np.nan]), np.array([1.0, 1.0, 0.0])
    assert agreement.preferred(better, worse, "half") == pytest.approx([0.5, 1, np.nan], nan_ok=True)
    assert agreement.preferred(better, worse, "wrong") == pytest.approx([0, 1, np.nan], nan_ok=True)


def test_interval_covers_the_true_share_about_95_times_in_100() -> None:
    random = np.random.default_rng(11)
    covered = 0
    for seed in range(200):
        values = (random.random(120) < 0.6).astype(float)
        units = np.arange(120, dtype=np.int32)
        estimate = agreement.Estimate.of(
            values.mean(), agreement.share(values, units, agreement.draw_weights(120, 200, seed))
        )
        covered += estimate.low <= 0.6 <= estimate.high
    assert 178 <= covered <= 199


def test_draws_depend_on_the_seed_and_on_nothing_else() -> None:
    first = agreement.draw_weights(20, 3, seed=4)
    assert (first == agreement.draw_weights(20, 3, seed=4)).all()
    assert (first != agreement.draw_weights(20, 3, seed=5)).any()
    assert (first.sum(axis=1) == 20).all()
