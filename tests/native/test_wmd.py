"""The transport kernel against a linear programme, on random bags of words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from caplens.native._kernels import wmd_nearest

WORDS = 9
texts = st.dictionaries(st.integers(0, WORDS - 1), st.integers(1, 4), max_size=7)


def by_linear_programme(vectors: np.ndarray, one: dict[int, int], other: dict[int, int]) -> float:
    """The definition: least cost over all plans whose rows and columns sum to the words' shares."""
    if not one or not other:
        return np.inf
    a, b = np.array(list(one.values())) / sum(one.values()), np.array(list(other.values())) / sum(other.values())
    cost = np.linalg.norm(vectors[list(one)][:, None].astype(float) - vectors[list(other)][None].astype(float), axis=2)
    rows, columns = cost.shape
    margins = np.zeros((rows + columns, rows * columns))
    for r in range(rows):
        margins[r, r * columns : (r + 1) * columns] = 1
    for c in range(columns):
        margins[rows + c, c::columns] = 1
    least = linprog(cost.ravel(), A_eq=margins, b_eq=np.concatenate([a, b]), method="highs").fun
    assert least is not None
    return float(least)


def nearest(vectors: np.ndarray, candidate: dict[int, int], references: list[dict[int, int]]) -> float:
    bags = [sorted(bag.items()) for bag in [candidate, *references]]
    return float(
        wmd_nearest(
            vectors=vectors,
            starts=np.concatenate([[0], np.cumsum([len(bag) for bag in bags])]).astype(np.int64),
            words=np.array([word for bag in bags for word, _ in bag], dtype=np.int64),
            counts=np.array([count for bag in bags for _, count in bag], dtype=np.int64),
            candidates=np.array([0]),
            pair_starts=np.array([0, len(references)]),
            references=np.arange(1, len(references) + 1),
        )[0]
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), candidate=texts, references=st.lists(texts, min_size=1, max_size=3))
def test_equals_the_linear_programme(seed: int, candidate: dict[int, int], references: list[dict[int, int]]) -> None:
    vectors = np.random.default_rng(seed).normal(size=(WORDS, 3)).astype(np.float32)
    expected = min(by_linear_programme(vectors, candidate, reference) for reference in references)
    assert nearest(vectors, candidate, references) == pytest.approx(expected, abs=1e-9)


def test_words_of_equal_vectors_cost_nothing() -> None:
    assert nearest(np.ones((2, 3), np.float32), {0: 2}, [{1: 1}]) == 0


def test_vectors_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        nearest(np.array([[0.0], [np.nan]], np.float32), {0: 1}, [{1: 1}])


def test_equals_pot_on_long_texts() -> None:
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(160, 20)).astype(np.float32)
    one = {int(word): int(count) for word, count in zip(range(90), rng.integers(1, 5, 90), strict=True)}
    other = {int(word): int(count) for word, count in zip(range(60, 160), rng.integers(1, 5, 100), strict=True)}
    a, b = np.array(list(one.values())) / sum(one.values()), np.array(list(other.values())) / sum(other.values())
    cost = np.linalg.norm(vectors[list(one)][:, None].astype(float) - vectors[list(other)][None].astype(float), axis=2)
    assert nearest(vectors, one, [other]) == pytest.approx(ot.emd2(a, b, cost), abs=1e-9)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="bad word"):
        nearest(np.ones((1, 2), np.float32), {3: 1}, [{0: 1}])
