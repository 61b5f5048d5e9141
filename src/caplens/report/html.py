"""A report as one self-contained page: no network, no other files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from caplens.core.details import AnyDetails, Details, read_details
from caplens.core.errors import as_caplens_error
from caplens.core.plain_json import json_text
from caplens.core.tables import show_interval, show_number
from caplens.evaluation.details import apply_verdict_rules
from caplens.evaluation.reference_support import ReferenceSupport
from caplens.evaluation.results import Report, show_count
from caplens.report.histogram import HEIGHT, WIDTH, bars
from caplens.report.sample import EXTREMES, choose_rows, extremes, shorten, shown_references
from caplens.report.thumbnails import thumbnails

TEMPLATES = Path(__file__).parent / "templates"
DETAILS_BUDGET = 4_000_000
"""Characters of details on one page."""
ENTRY_BUDGET = 100_000
"""Characters of the details of one caption."""
ALIGNING = frozenset({"meteor", "spice", "spider"})
"""Metrics that compare words with references; a page that has one of them shows what the references support."""


def render(report: Report, title: str) -> str:
    """The page as text."""
    rows = choose_rows(report)
    data = _data(report, rows)
    return fill(
        "page.html",
        styles=("page.css", "details.css"),
        scripts=("details.js", "page.js"),
        data=data,
        title=title,
        total=len(report.captions),
        shown=len(rows),
        pictures=len(data["pictures"]),
        views=data["views"],
        metrics=_metric_views(report),
        errors=report.errors,
        several=None if report.captions.groups is None else report.several(),
        show=show_number,
        histogram_width=WIDTH,
        histogram_height=HEIGHT,
    )


def fill(
    template: str, styles: Sequence[str], scripts: Sequence[str] = (), data: dict[str, Any] | None = None, **values: Any
) -> str:
    """A template with its styles, its scripts and what they work on, as one text that needs nothing else."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _joined("elements.js", *scripts) if scripts else ""
    page = environment.get_template(template).render(
        version=version("caplens"),
        policy=_policy(script),
        style=_joined("theme.css", *styles),
        script=script,
        data=_for_script(data or {}),
        **values,
    )
    # Half a character (a lone surrogate) cannot be written as UTF-8; the page shows a question mark.
    return page.encode("utf-8", "replace").decode("utf-8")


def _joined(*names: str) -> str:
    return "".join((TEMPLATES / name).read_text("utf-8") for name in names)


def _policy(script: str) -> str:
    """What a browser may do with the page: run this very script, show what is in it, and ask nobody for anything."""
    allowed = f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" if script else "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _metric_views(report: Report) -> list[dict[str, Any]]:
    intervals = report.intervals()
    views = []
    for result in report:
        metric = result.metric
        finite = result.scores[np.isfinite(result.scores)]
        views.append(
            {
                "name": metric.label,
                "summary": metric.summary,
                "paper": metric.paper,
                "score": show_number(result.score, metric.shown_as_percent),
                "scale": "×100" if metric.shown_as_percent else "",
                "interval": show_interval(intervals[result.name], metric.shown_as_percent)
                if result.name in intervals
                else "",
                "captions": show_count(result),
                "signature": result.signature,
                "notes": result.notes,
                "bars": bars(result.scores),
                "low": show_number(finite.min(), metric.shown_as_percent) if len(finite) else "",
                "high": show_number(finite.max(), metric.shown_as_percent) if len(finite) else "",
                "percent": metric.shown_as_percent,
                "higher_is_better": metric.higher_is_better,
            }
        )
    return views


def _data(report: Report, rows: list[int]) -> dict[str, Any]:
    """What the page's script works on: columns of the rows that are kept."""
    captions = report.captions
    position = {row: number for number, row in enumerate(rows)}
    important = [row for row in extremes(report, EXTREMES) if row in position]
    order = [*important, *rows]
    pictures = thumbnails(captions, rows, order, report.pictures)
    return {
        "ids": [captions.ids[row] for row in rows],
        "captions": [shorten(captions.candidates[row]) for row in rows],
        "references": [shown_references(report, row) for row in rows],
        "pictures": {str(position[row]): address for row, address in pictures.items()},
        "metrics": [
            {
                "name": result.metric.label,
                "percent": result.metric.shown_as_percent,
                "higherIsBetter": result.metric.higher_is_better,
                "scores": [_rounded(score) for score in result.scores[rows].tolist()],
                "failures": {str(position[row]): reason for row, reason in result.failures.items() if row in position},
            }
            for result in report
        ],
        "views": _views(report, order, position),
    }


def _views(report: Report, order: list[int], position: dict[int, int]) -> list[dict[str, Any]]:
    """What explains the captions: the references, where a metric aligned with them, and every metric that explains."""
    sources: dict[str, Sequence[AnyDetails]] = {}
    if report.captions.references is not None and not ALIGNING.isdisjoint(report.results):
        sources["the references"] = ReferenceSupport(report.captions, order, _graphs(report))
    sources |= {result.metric.label: result.details for result in report if result.details is not None}
    return [{"name": name, **_details(details, order, position, len(sources))} for name, details in sources.items()]


def _graphs(report: Report) -> Sequence[AnyDetails] | None:
    return report["spice"].details if "spice" in report.results else None


def _details(details: Sequence[AnyDetails], order: list[int], position: dict[int, int], sources: int) -> dict[str, Any]:
    """Position on the page to details, the extremes first, until this source's part of the budget is spent."""
    kept: dict[str, Any] = {}
    left = DETAILS_BUDGET // sources
    for row in dict.fromkeys(order):
        entry = readable_details(details, row)
        if entry:
            size = len(json_text(entry))
            if size > ENTRY_BUDGET:
                entry, size = {"note": "these details are too long for a page; the json file has them"}, 100
            left -= size
            if left < 0:
                return {"details": kept, "cut": True}
            kept[str(position[row])] = entry
    return {"details": kept, "cut": False}


def readable_details(details: Sequence[AnyDetails], row: int) -> Details:
    """What a metric says about one caption, for readers; a note where it cannot be drawn."""
    try:
        entry = apply_verdict_rules(read_details(details[row]))
        json_text(entry)  # may fail for what a plug-in put there
    except Exception as error:  # a plug-in's mistake must not cost the page
        return {"note": f"cannot be drawn: {as_caplens_error(error)}"}
    return entry


def _rounded(score: float) -> float | None:
    return float(f"{score:.6g}") if np.isfinite(score) else None


def _for_script(data: dict[str, Any]) -> str:
    """Json that may stand inside a script element: nothing in it can end the element."""
    return json_text(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
