"""Krippendorff's α against the values of his own worked examples, and against a slow version."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from caplens.bench.krippendorff import Level, krippendorff_alpha

# The reliability data of Krippendorff (2011), section E: four observers, twelve units, missing values left out.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
UNITS = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_the_values_of_the_paper(level: Level, alpha: float) -> None:
    assert krippendorff_alpha(UNITS, level) == pytest.approx(alpha, abs=5e-4)


def slow_alpha(units: list[list[int]]) -> float:
    """Interval α from the definition: the mean squared difference within units over that of all pairs of values."""
    paired = [values for values in units if len(values) > 1]
    everything = [value for values in paired for value in values]
    within = sum(
        sum((one - other) ** 2 for one, other in itertools.permutations(values, 2)) / (len(values) - 1)
        for values in paired
    ) / len(everything)
    overall = sum((one - other) ** 2 for one, other in itertools.permutations(everything, 2))
    return 1 - within / (overall / (len(everything) * (len(everything) - 1)))


def test_random_ratings_are_as_the_definition_says() -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        units = [generator.integers(1, 6, generator.integers(1, 5)).tolist() for _ in range(12)]
        assert krippendorff_alpha(units, "interval") == pytest.approx(slow_alpha(units))


def test_there_may_be_nothing_to_agree_on() -> None:
    assert krippendorff_alpha([[1], [2]], "ordinal") is None
    assert krippendorff_alpha([[3, 3], [3, 3]], "ordinal") is None
    assert krippendorff_alpha([[1, 2], [2, 1]], "nominal") == pytest.approx(-0.5)
