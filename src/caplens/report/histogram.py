"""Histograms of scores as inline SVG."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caplens.core.types import Floats

WIDTH, HEIGHT = 260, 54


@dataclass(frozen=True)
class Bar:
    """One bar: its place in the drawing, and the scores it stands for."""

    x: float
    y: float
    width: float
    height: float
    low: float
    high: float
    count: int


def bars(scores: Floats, most: int = 26) -> list[Bar]:
    """Equal bins from the lowest to the highest score; nothing for no scores, one bar for one value.

    >>> [(bar.count, bar.low, bar.high) for bar in bars(np.array([0.0, 0.0, 1.0]), most=2)]
    [(2, 0.0, 0.5), (1, 0.5, 1.0)]
    """
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        return []
    low, high = float(finite.min()), float(finite.max())
    bins = 1 if low == high else max(2, min(most, int(2 * np.sqrt(len(finite)))))
    counts, edges = np.histogram(finite, bins=bins, range=(low, high) if low < high else (low - 0.5, low + 0.5))
    return draw_bars(counts, np.array([low, high]) if low == high else edges)


def draw_bars(counts: NDArray[np.int64], edges: Floats) -> list[Bar]:
    """The bars of counts between edges."""
    step = WIDTH / len(counts)
    tallest = counts.max()
    drawn = []
    for number, count in enumerate(counts.tolist()):
        height = 0.0 if not count else max(2.0, HEIGHT * count / tallest)  # a single caption stays visible
        drawn.append(
            Bar(
                x=round(number * step, 2),
                y=round(HEIGHT - height, 2),
                width=round(min(step - 1.5, 40), 2),
                height=round(height, 2),
                low=float(edges[number]),
                high=float(edges[number + 1]),
                count=count,
            )
        )
    return drawn
