"""A report as one self-contained page: no network, no other files."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from caplens.files import json_text
from caplens.metrics.base import Result
from caplens.report.histogram import HEIGHT, WIDTH, bars
from caplens.report.report import Report
from caplens.report.sample import EXTREMES, choose_rows, extremes, shorten
from caplens.report.table import show_count, show_interval, show_number
from caplens.report.thumbnails import thumbnails

TEMPLATES = Path(__file__).parent / "templates"
DETAILS_BUDGET = 2_000_000
"""Characters of details on one page."""


def render(report: Report, title: str) -> str:
    """The page as text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows = choose_rows(report)
    data = _data(report, rows)
    page = environment.get_template("page.html").render(
        title=title,
        total=len(report.captions),
        shown=len(rows),
        pictures=len(data["pictures"]),
        metrics=_metric_views(report),
        errors=report.errors,
        version=version("caplens"),
        histogram_width=WIDTH,
        histogram_height=HEIGHT,
        style=(TEMPLATES / "page.css").read_text("utf-8"),
        script=(TEMPLATES / "page.js").read_text("utf-8"),
        data=_for_script(data),
    )
    # Half a character (a lone surrogate) cannot be written as UTF-8; the page shows a question mark.
    return page.encode("utf-8", "replace").decode("utf-8")


def _metric_views(report: Report) -> list[dict[str, Any]]:
    intervals = report.intervals()
    views = []
    for result in report:
        metric = result.metric
        finite = result.scores[np.isfinite(result.scores)]
        views.append(
            {
                "name": result.name,
                "summary": metric.summary,
                "paper": metric.paper,
                "score": show_number(result.score, metric.percent),
                "scale": "×100" if metric.percent else "",
                "interval": show_interval(intervals[result.name], metric.percent) if result.name in intervals else "",
                "captions": show_count(result),
                "signature": result.signature,
                "notes": result.notes,
                "bars": bars(result.scores),
                "low": show_number(finite.min(), metric.percent) if len(finite) else "",
                "high": show_number(finite.max(), metric.percent) if len(finite) else "",
                "percent": metric.percent,
                "higher_is_better": metric.higher_is_better,
            }
        )
    return views


def _data(report: Report, rows: list[int]) -> dict[str, Any]:
    """What the page's script works on: columns of the rows that are kept."""
    captions = report.captions
    place = {row: number for number, row in enumerate(rows)}
    important = [row for row in extremes(report, EXTREMES) if row in place]
    order = [*important, *rows]
    pictures = thumbnails(captions, rows, order)
    return {
        "ids": [captions.ids[row] for row in rows],
        "captions": [shorten(captions.candidates[row]) for row in rows],
        "references": [
            [] if captions.references is None else [shorten(text) for text in captions.references[row]] for row in rows
        ],
        "pictures": {str(place[row]): address for row, address in pictures.items()},
        "metrics": [
            {
                "name": result.name,
                "percent": result.metric.percent,
                "higherIsBetter": result.metric.higher_is_better,
                "scores": [_rounded(score) for score in result.scores[rows].tolist()],
                "failures": {str(place[row]): reason for row, reason in result.failures.items() if row in place},
                "details": _details(result, order, place),
            }
            for result in report
        ],
    }


def _details(result: Result, order: list[int], place: dict[int, int]) -> dict[str, Any]:
    """Position on the page to details, the extremes first, until the budget is spent."""
    kept: dict[str, Any] = {}
    if result.details is None:
        return kept
    left = DETAILS_BUDGET
    for row in dict.fromkeys(order):
        entry = result.details[row]
        if entry:
            left -= len(json_text(entry))
            if left < 0:
                break
            kept[str(place[row])] = entry
    return kept


def _rounded(score: float) -> float | None:
    return float(f"{score:.6g}") if np.isfinite(score) else None


def _for_script(data: dict[str, Any]) -> str:
    """Json that may stand inside a script element: nothing in it can end the element."""
    return json_text(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
