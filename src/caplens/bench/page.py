"""A bench run as one self-contained page: what each metric is worth, set by set."""

from __future__ import annotations

from typing import Any

import numpy as np

from caplens.bench.plots import Bar, Line, against_ratings, forest, lines
from caplens.bench.results import LEVEL, BenchReport, Measurement, SetReport
from caplens.bench.statistics import AgreementStatistic, CorpusStatistic, MeanStatistic, RatingStatistic
from caplens.report.html import fill

MOST_LINES = 14


def render(report: BenchReport) -> str:
    """The page as text."""
    return fill(
        "bench.html",
        styles=("bench.css",),
        title="Agreement with people",
        report=report,
        summary=_summary(report),
        sets=[_set_view(part) for part in report.sets if part.measured],
        empty=[part for part in report.sets if not part.measured],
        level=LEVEL,
    )


def headlines(report: BenchReport) -> list[tuple[SetReport, AgreementStatistic]]:
    """The figure that stands for each set in an overview: the first one with clusters."""
    chosen = []
    for part in report.sets:
        figure = next((figure for figure in part.task.figures if figure.headline), None)
        if figure is not None and part.measured:
            chosen.append((part, figure))
    return chosen


def _summary(report: BenchReport) -> dict[str, Any]:
    """Metrics by sets, coloured by their place between the worst and the best of the column."""
    columns = headlines(report)
    cells: dict[str, dict[str, dict[str, Any]]] = {}
    for part, figure in columns:
        rows = [row for row in part.of(figure.key) if np.isfinite(row.estimate.value)]
        values = [row.estimate.value for row in rows]
        for row in rows:
            spread = max(values) - min(values)
            cells.setdefault(row.label, {})[part.rating_set.name] = {
                **_row_view(row),
                "shade": round(100 * (row.estimate.value - min(values)) / spread) if spread else 50,
            }
    places: dict[str, list[float]] = {name: [cell["shade"] for cell in row.values()] for name, row in cells.items()}
    order = sorted(cells, key=lambda name: (-len(places[name]), -float(np.mean(places[name]))))
    return {
        "columns": [
            {"name": part.rating_set.name, "title": part.rating_set.title, "figure": figure.label}
            for part, figure in columns
        ],
        "rows": [{"metric": name, "cells": cells[name]} for name in order],
    }


def _set_view(part: SetReport) -> dict[str, Any]:
    figures = [
        figure
        for figure in part.task.figures
        if (figure.at is None or figure.headline) and not isinstance(figure, CorpusStatistic)
    ]
    return {
        "name": part.rating_set.name,
        "set": part.rating_set,
        "task": part.task,
        "figures": [_figure_view(part, figure, opened=place == 0) for place, figure in enumerate(figures)],
        "systems": _systems(part),
        "curve": _curve(part),
        "categories": _categories(part),
        "ratings": _rating_plots(part),
        "skipped": part.skipped,
        "differences": part.differences(),
        "signatures": {scored.metric.label: scored.signature for scored in part.scored.values()},
    }


def _figure_view(part: SetReport, figure: AgreementStatistic, opened: bool) -> dict[str, Any]:
    rows = [row for row in part.of(figure.key) if np.isfinite(row.estimate.value)]
    views = [_row_view(row) for row in rows]
    bars = [
        Bar(row.label, view["value"], view["low"], view["high"], row.cluster, view["published"], row.status)
        for row, view in zip(rows, views, strict=True)
        if np.isfinite(row.estimate.low)
    ]
    return {
        "label": figure.label,
        "scale": figure.scale,
        "count": figure.count,
        "headline": figure.headline,
        "open": opened or figure.headline,
        "plot": forest(bars, figure.digits) if bars else "",
        "rows": views,
    }


def _row_view(row: Measurement) -> dict[str, Any]:
    scale = row.figure.scale
    nearest = row.nearest
    # What is printed may be scaled otherwise than our column.
    published = None if nearest is None else nearest.published.value / nearest.published.scale * scale
    return {
        "metric": row.label,
        "value": row.estimate.value * scale,
        "low": row.estimate.low * scale,
        "high": row.estimate.high * scale,
        "shown": row.shown(row.estimate.value),
        "interval": row.interval,
        "cluster": row.cluster,
        "used": row.used,
        "partial": row.used < row.figure.count,
        "published": published,
        "status": row.status,
        "sources": [
            f"{comparison.published.value:g} ({comparison.published.source}; difference {comparison.difference:+.3g}, "
            f"tolerance {comparison.published.tolerance:g})"
            for comparison in row.comparisons
        ],
    }


def _systems(part: SetReport) -> list[dict[str, Any]]:
    """Corpus scores, one row per captioning system; metrics are on their own scales, so they stand side by side."""
    systems = [figure for figure in part.task.figures if isinstance(figure, CorpusStatistic)]
    views = {(row.figure.key, row.metric): _row_view(row) for row in part.measured}
    return [{"name": figure.key, "cells": [views[figure.key, name] for name in part.scored]} for figure in systems]


def _curve(part: SetReport) -> str:
    """Accuracy over the number of references, where the set is a curve."""
    points = [figure for figure in part.task.figures if figure.at is not None and figure.key.startswith("all,")]
    if not points:
        return ""
    places = [float(figure.at or 0) for figure in points]
    return lines(_lines(part, points), places, [f"{place:g}" for place in places], "number of references (accuracy, %)")


def _categories(part: SetReport) -> str:
    """Accuracy by category, where a mean stands over categories."""
    mean = next((figure for figure in part.task.figures if isinstance(figure, MeanStatistic)), None)
    parts = [] if mean is None else [figure for figure in part.task.figures if figure in mean.parts]
    if len(parts) < 2:
        return ""
    labels = [figure.key for figure in parts]
    return lines(_lines(part, parts), list(range(len(parts))), labels, "category (accuracy, %)")


def _lines(part: SetReport, figures: list[AgreementStatistic]) -> list[Line]:
    """One line per metric, best at the last point first, as many as can be told apart."""
    measured = {(row.figure.key, row.metric): row for row in part.measured}
    order = [row.metric for row in part.of(figures[-1].key) if np.isfinite(row.estimate.value)][:MOST_LINES]
    return [
        Line(
            part.scored[name].metric.label,
            [measured[figure.key, name].estimate.value * figure.scale for figure in figures],
            [measured[figure.key, name].estimate.low * figure.scale for figure in figures],
            [measured[figure.key, name].estimate.high * figure.scale for figure in figures],
        )
        for name in order
    ]


def _rating_plots(part: SetReport) -> list[str]:
    """Score against rating for each metric, on the set's first figure with ratings."""
    figure = next(
        (figure for figure in part.task.figures if isinstance(figure, RatingStatistic) and figure.headline), None
    )
    if figure is None:
        return []
    return [
        against_ratings(row.label, part.scored[row.metric].scores(figure.trial)[figure.rows], figure.ratings)
        for row in part.of(figure.key)
        if np.isfinite(row.estimate.value)
    ]
