"""A report as rows of text: what the terminal shows."""

from __future__ import annotations

import math

from caplens.evaluation.results import Report
from caplens.metrics.base import Result

SCORE_COLUMNS = ("metric", "score", "scale", "95 % interval", "captions")
SCORE_NUMBERS = ("score", "95 % interval", "captions")


def score_rows(report: Report) -> list[list[str]]:
    """One row per metric, under SCORE_COLUMNS."""
    intervals = report.intervals()
    rows = []
    for result in report:
        percent = result.metric.shown_as_percent
        bounds = intervals.get(result.name)
        rows.append(
            [
                result.name,
                show_number(result.score, percent),
                "×100" if percent else "",
                "" if bounds is None else show_interval(bounds, percent),
                show_count(result),
            ]
        )
    return rows


def show_number(value: float, percent: bool) -> str:
    """A score for people: two decimals times 100, or three.

    >>> show_number(0.3125, True), show_number(0.3125, False), show_number(float("nan"), True)
    ('31.25', '0.312', 'none')
    """
    if math.isnan(value):
        return "none"
    return f"{value * 100:.2f}" if percent else f"{value:.3f}"


def show_interval(bounds: tuple[float, float], percent: bool) -> str:
    """
    >>> show_interval((0.1, 0.25), True)
    '10.00 – 25.00'
    """
    return f"{show_number(bounds[0], percent)} – {show_number(bounds[1], percent)}"


def show_count(result: Result) -> str:
    """How many captions the score stands on, and out of how many if some could not be scored."""
    total, failed = len(result.scores), len(result.failures)
    return f"{total:,}" if not failed else f"{total - failed:,} of {total:,}"
