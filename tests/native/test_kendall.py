"""The pair-count kernel against counting every pair."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caplens.native import _kernels

RatedRows = tuple[list[int], list[int], list[int], list[list[int]]]


def naive_counts(x: list[int], y: list[int]) -> list[float]:
    score = tied_x = tied_y = 0
    for i, j in combinations(range(len(x)), 2):
        score += int(np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]))
        tied_x += x[i] == x[j]
        tied_y += y[i] == y[j]
    return [score, tied_x, tied_y, len(x) * (len(x) - 1) / 2, len(set(x)), len(set(y))]


@st.composite
def rated_rows(draw: st.DrawFn) -> RatedRows:
    rows = draw(st.integers(1, 14))
    units = draw(st.integers(1, 5))

    def column(most: int) -> list[int]:
        return draw(st.lists(st.integers(0, most), min_size=rows, max_size=rows))

    weights = draw(st.lists(st.lists(st.integers(0, 3), min_size=units, max_size=units), min_size=1, max_size=4))
    most = st.integers(0, 2 * rows - 1)
    return column(draw(most)), column(draw(most)), column(units - 1), weights


def ints(values: object) -> np.ndarray:
    return np.array(values, dtype=np.int32)


@settings(max_examples=150, deadline=None)
@given(rated_rows())
def test_resampled_counts_are_those_of_the_repeated_rows(data: RatedRows) -> None:
    x, y, units, weights = data
    got = _kernels.kendall_resampled(ints(x), ints(y), ints(units), ints(weights))
    for row, drawn in zip(got, weights, strict=True):
        repeated = [i for i, unit in enumerate(units) for _ in range(drawn[unit])]
        assert row.tolist() == naive_counts([x[i] for i in repeated], [y[i] for i in repeated])


@settings(max_examples=150, deadline=None)
@given(rated_rows(), st.randoms(use_true_random=False))
def test_swapped_counts_are_those_of_the_mixture(data: RatedRows, random: Random) -> None:
    a, y, units, weights = data
    b = [random.randint(0, 2 * len(a) - 1) for _ in a]
    masks = [[weight % 2 for weight in drawn] for drawn in weights]
    got = _kernels.kendall_swapped(ints(a), ints(b), ints(y), ints(units), np.array(masks, dtype=np.uint8))
    for row, mask in zip(got, masks, strict=True):
        mixture = [b[i] if mask[unit] else a[i] for i, unit in enumerate(units)]
        assert row.tolist() == naive_counts(mixture, y)


def test_a_unit_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="unit"):
        _kernels.kendall_resampled(ints([0, 1]), ints([0, 1]), ints([0, 2]), ints([[1, 1]]))


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        _kernels.kendall_resampled(ints([0, 1]), ints([0]), ints([0, 0]), ints([[1]]))
