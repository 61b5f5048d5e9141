"""Krippendorff's α: how far several raters agree, beyond chance, whoever rated what.

Krippendorff (2011), Computing Krippendorff's alpha-reliability.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from caplens.core.types import Floats

Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(units: Iterable[Sequence[float]], level: Level) -> float | None:
    """Return α of the values that each unit was given: 1 is perfect agreement, 0 what chance gives.

    Units with fewer than two values say nothing. None where there is nothing to agree on: no such unit, or only one
    value in all.

    >>> krippendorff_alpha([[1, 1], [2, 2], [3, 3]], "ordinal")
    1.0
    """
    paired = [list(values) for values in units if len(values) > 1]
    kinds = sorted({value for values in paired for value in values})
    if len(kinds) < 2:
        return None
    place = {value: number for number, value in enumerate(kinds)}
    coincidences = np.zeros((len(kinds), len(kinds)))  # o_ck: pairs of values within units
    for values in paired:
        counts = np.bincount([place[value] for value in values], minlength=len(kinds)).astype(np.float64)
        coincidences += (np.outer(counts, counts) - np.diag(counts)) / (len(values) - 1)
    margins = coincidences.sum(axis=0)  # n_c
    distances = _distances(np.array(kinds), margins, level)
    observed = float((coincidences * distances).sum())
    expected = float((np.outer(margins, margins) * distances).sum()) / (float(margins.sum()) - 1)
    return 1.0 - observed / expected


def _distances(kinds: Floats, margins: Floats, level: Level) -> Floats:
    """The squared distance δ² of every two values."""
    if level == "nominal":
        return 1.0 - np.eye(len(kinds))
    if level == "interval":
        return np.asarray((kinds[:, None] - kinds[None, :]) ** 2)
    # Ordinal: the values between two, with half of each end.
    middles = np.cumsum(margins) - margins / 2
    return np.asarray((middles[:, None] - middles[None, :]) ** 2)
