"""Plots of a bench run as inline SVG: no library, no script; colours come from the page's style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from caplens.core.types import Floats

HUES = 8
"""Colours of lines (classes hue-0 … in the style sheet); further lines are dashed."""
FEW = 4
"""Up to so many lines get their interval drawn as a band."""


@dataclass(frozen=True)
class Bar:
    """One metric in a forest plot."""

    name: str
    value: float
    low: float
    high: float
    cluster: int | None
    published: float | None
    status: str


@dataclass(frozen=True)
class Line:
    """One metric over the number of references or over categories."""

    name: str
    values: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]


def forest(bars: Sequence[Bar], digits: int) -> str:
    """Points with their intervals, best first; a hollow diamond is the figure in print, a rule starts a new cluster."""
    left, right, width, step, top = 132, 190, 760, 22, 6
    bounds = [x for bar in bars for x in (bar.low, bar.high, bar.value, bar.published) if x is not None]
    ticks = nice_ticks(min(bounds), max(bounds), 6)
    low, high = ticks[0], ticks[-1]
    bottom = top + len(bars) * step

    def across(x: float) -> float:
        return left + (x - low) / (high - low) * (width - left - right)

    parts = []
    for tick in ticks:
        parts.append(_stroke("grid", across(tick), top, across(tick), bottom))
        parts.append(_text("tick", across(tick), bottom + 16, f"{tick:g}", "middle"))
    previous: int | None = None
    for place, bar in enumerate(bars):
        middle = top + place * step + step / 2
        if place and bar.cluster != previous:
            parts.append(_stroke("rule", 0, middle - step / 2, width, middle - step / 2))
        previous = bar.cluster
        parts.append(_text("name", left - 10, middle + 4, bar.name, "end"))
        parts.append(_stroke("interval", across(bar.low), middle, across(bar.high), middle))
        parts.append(_dot("point", across(bar.value), middle, 4))
        if bar.published is not None:
            kind = bar.status.replace(" ", "-")
            parts.append(
                f'<path class="print {kind}" d="M{across(bar.published):.1f} {middle - 7:.1f}l5 7l-5 7l-5 -7z"/>'
            )
        text = f"{bar.value:.{digits}f}  [{bar.low:.{digits}f}, {bar.high:.{digits}f}]"
        parts.append(_text("number", width - right + 16, middle + 4, text))
        if bar.cluster is not None:
            parts.append(_text("cluster", width - 2, middle + 4, str(bar.cluster), "end"))
    return _svg(width, bottom + 28, parts, "value and 95 % interval of each metric")


def lines(series: Sequence[Line], places: Sequence[float], labels: Sequence[str], axis: str) -> str:
    """A line per metric with its interval as a band (few metrics) and its name at the right end."""
    left, right, width, top, height = 44, 130, 760, 10, 330
    bottom = height - 40
    ticks = nice_ticks(min(min(line.values) for line in series), max(max(line.values) for line in series), 6)
    low, high = ticks[0], ticks[-1]

    def across(x: float) -> float:
        return left + (x - places[0]) / ((places[-1] - places[0]) or 1.0) * (width - left - right)

    def down(y: float) -> float:
        return bottom - (min(max(y, low), high) - low) / (high - low) * (bottom - top)

    def points(ys: Sequence[float]) -> list[str]:
        return [f"{across(x):.1f},{down(y):.1f}" for x, y in zip(places, ys, strict=True)]

    parts = []
    for tick in ticks:
        parts.append(_stroke("grid", left, down(tick), width - right, down(tick)))
        parts.append(_text("tick", left - 6, down(tick) + 4, f"{tick:g}", "end"))
    every = max(1, len(labels) // 12)
    for number, (place, label) in enumerate(zip(places, labels, strict=True)):
        if number % every == 0:
            parts.append(_text("tick", across(place), bottom + 16, label, "middle"))
    parts.append(_text("tick", (left + width - right) / 2, height - 6, axis, "middle"))
    ends = _apart([down(line.values[-1]) for line in series], 13, top, bottom)
    for number, (line, end) in enumerate(zip(series, ends, strict=True)):
        style = f"hue-{number % HUES}" + (" dashed" if number >= HUES else "")
        if len(series) <= FEW:
            around = " ".join([*points(line.highs), *reversed(points(line.lows))])
            parts.append(f'<polygon class="band {style}" points="{around}"/>')
        parts.append(f'<polyline class="line {style}" points="{" ".join(points(line.values))}"/>')
        if len(places) <= 2 * FEW:
            parts += [_dot(f"dot {style}", across(x), down(y), 3) for x, y in zip(places, line.values, strict=True)]
        x = width - right
        parts.append(_stroke("leader", x + 2, down(line.values[-1]), x + 12, end))
        parts.append(_text(f"label {style}", x + 15, end + 4, line.name))
    return _svg(width, height, parts, f"each metric by {axis}")


def against_ratings(name: str, scores: Floats, ratings: Floats) -> str:
    """Score (as its rank among all, 0 to 100) against the rating: median and middle half for each rating level."""
    width, height, left, bottom, top = 184, 132, 26, 104, 18
    known = ~np.isnan(scores)
    scores, ratings = scores[known], ratings[known]
    # Equal scores share a rank, so that a metric with many zeros is not drawn as if it told them apart.
    _, classes, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (100.0 * (np.cumsum(counts) - counts / 2) / len(scores))[classes]
    levels, groups = _levels(ratings)

    def down(rank: float) -> float:
        return bottom - rank / 100 * (bottom - top)

    parts = [_text("name", left, 11, name)]
    for tick in (0, 50, 100):
        parts.append(_stroke("grid", left, down(tick), width, down(tick)))
        parts.append(_text("tick", left - 4, down(tick) + 4, str(tick), "end"))
    slot = (width - left) / len(levels)
    half = min(9.0, slot * 0.32)
    for place, label in enumerate(levels):
        low, middle, high = (down(quartile) for quartile in np.percentile(ranks[groups == place], [25, 50, 75]))
        x = left + (place + 0.5) * slot
        size = f'width="{2 * half:.1f}" height="{max(1.0, low - high):.1f}"'
        parts.append(f'<rect class="box" x="{x - half:.1f}" y="{high:.1f}" {size}/>')
        parts.append(_stroke("median", x - half, middle, x + half, middle))
        parts.append(_text("tick", x, bottom + 14, label, "middle"))
    parts.append(_text("tick", (left + width) / 2, height - 2, "rating", "middle"))
    return _svg(width, height, parts, f"{name} against the rating")


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers that span a range.

    >>> nice_ticks(31.2, 44.0, 6)
    [30.0, 35.0, 40.0, 45.0]
    """
    if not high > low:
        return [low, low + 1.0]
    rough = (high - low) / (most - 1)
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9)))
    first, last = np.floor(low / step), np.ceil(high / step)
    return [round(float(number * step), 10) for number in np.arange(first, last + 1)]


def _levels(ratings: Floats) -> tuple[list[str], np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """The rating levels; many levels become five bins of equal width."""
    values, groups = np.unique(ratings, return_inverse=True)
    if len(values) <= 6:
        return [f"{value:g}" for value in values], groups
    edges = np.linspace(values[0], values[-1], 6)
    bins = np.clip(np.searchsorted(edges, ratings, side="right") - 1, 0, 4)
    present, groups = np.unique(bins, return_inverse=True)
    return [f"{edges[place]:.2g}" for place in present], groups


def _apart(heights: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Label heights near the wanted ones, at least `least` apart, from `low` to `high`.

    >>> _apart([10.0, 11.0, 40.0], 12, 0, 50), _apart([10.0, 11.0, 40.0], 12, 8, 40)
    ([4.5, 16.5, 40.0], [8.0, 20.0, 40.0])
    """
    blocks: list[tuple[float, list[int]]] = []
    for label in sorted(range(len(heights)), key=lambda label: heights[label]):
        centre, members = float(heights[label]), [label]
        while blocks and centre - blocks[-1][0] < (len(members) + len(blocks[-1][1])) * least / 2:
            _, others = blocks.pop()
            members = others + members
            reach = (len(members) - 1) / 2 * least
            centre = max(low + reach, min(high - reach, sum(heights[each] for each in members) / len(members)))
        blocks.append((centre, members))
    placed = [0.0] * len(heights)
    for centre, members in blocks:
        for number, label in enumerate(members):
            placed[label] = centre + (number - (len(members) - 1) / 2) * least
    return placed


def _text(kind: str, x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _stroke(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _dot(kind: str, x: float, y: float, radius: float) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def _svg(width: float, height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" style="max-width:{width}px" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )
