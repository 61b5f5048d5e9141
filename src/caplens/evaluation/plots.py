"""Plots of results: points with their intervals, in panels one above the other."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from caplens.core.errors import InputError
from caplens.core.optional import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, POINT, RULE = "#222222", "#2a6f97", "#d5d5d5"
INCHES_PER_POINT, INCHES_PER_PANEL, WIDTH = 0.28, 0.75, 7.0


@dataclass(frozen=True)
class Point:
    """One number with its interval, if it has one."""

    label: str
    value: float
    interval: tuple[float, float] | None = None
    rank: int | None = None
    """Its cluster; a line is drawn where a new one begins."""

    def times(self, scale: float) -> Point:
        """Return the same on another scale."""
        bounds = None if self.interval is None else (scale * self.interval[0], scale * self.interval[1])
        return Point(self.label, scale * self.value, bounds, self.rank)


@dataclass(frozen=True)
class Panel:
    """Numbers on one scale, the first on top."""

    title: str
    points: Sequence[Point]


def draw(panels: Sequence[Panel]) -> Figure:
    """Return a figure of matplotlib, which notebooks show and `savefig` writes."""
    figure_class = _figure_class()
    shown = [[point for point in panel.points if math.isfinite(point.value)] for panel in panels]
    kept = [(panel, points) for panel, points in zip(panels, shown, strict=True) if points]
    if not kept:
        raise InputError("there is no number to plot")
    heights = [INCHES_PER_PANEL + INCHES_PER_POINT * len(points) for _, points in kept]
    figure = figure_class(figsize=(WIDTH, sum(heights)), layout="constrained")
    axes = figure.subplots(len(kept), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, (panel, points) in zip(axes, kept, strict=True):
        for row, point in enumerate(points):
            if point.interval is not None and all(map(math.isfinite, point.interval)):
                axis.plot(point.interval, (row, row), color=POINT, linewidth=1.5, solid_capstyle="butt")
            if row and point.rank != points[row - 1].rank:
                axis.axhline(row - 0.5, color=INK, linewidth=0.6)
        axis.plot([point.value for point in points], range(len(points)), "o", color=POINT, markersize=5)
        axis.set_yticks(range(len(points)), [point.label for point in points])
        axis.set_ylim(len(points) - 0.5, -0.5)
        axis.set_title(panel.title, loc="left", fontsize="medium", color=INK)
        axis.grid(axis="x", color=RULE, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(length=0, colors=INK)
        axis.spines[["top", "right", "left"]].set_visible(False)
    return figure


@cache
def _figure_class() -> type[Figure]:
    """A figure that notebooks show by itself; those of pyplot would be shown twice and never freed."""
    base: Any = require("matplotlib.figure:Figure", purpose="plots")

    class ShownFigure(base):  # type: ignore[misc]
        def _repr_png_(self) -> bytes:
            stored = io.BytesIO()
            self.savefig(stored, format="png")
            return stored.getvalue()

    return ShownFigure
