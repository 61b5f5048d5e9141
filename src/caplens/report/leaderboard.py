"""A comparison as one self-contained page: the ranking on every metric, the hardest pictures, where systems differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from caplens.core.tables import show_interval, show_number
from caplens.evaluation.compare import SIGNIFICANT, Comparison, MetricComparison, SystemScore
from caplens.report.html import fill
from caplens.report.sample import TEXT_BUDGET, shorten
from caplens.report.thumbnails import thumbnails

HARDEST, DIFFERENT = 40, 120
"""Pictures kept for every metric: those that all systems get wrong, and those that systems differ on most."""


def render(comparison: Comparison, title: str) -> str:
    """Return the page as text."""
    data = _data(comparison)
    return fill(
        "leaderboard.html",
        styles=("page.css", "leaderboard.css"),
        scripts=("leaderboard.js",),
        data=data,
        title=title,
        comparison=comparison,
        columns=list(comparison.metrics.values()),
        rows=[_row(comparison, name) for name in comparison.systems],
        significant=SIGNIFICANT,
        kept=len(data["ids"]),
    )


def _row(comparison: Comparison, name: str) -> dict[str, Any]:
    """One system's cells, a cell per metric."""
    cells = []
    for metric in comparison.metrics.values():
        system = next(entry for entry in metric.systems if entry.system == name)
        cells.append(_cell(comparison, metric, system))
    return {"name": name, "cells": cells}


def _cell(comparison: Comparison, metric: MetricComparison, system: SystemScore) -> dict[str, Any]:
    difference = system.difference
    against = "baseline"
    if difference is not None:
        value = difference.value * (100 if metric.shown_as_percent else 1)
        p = comparison.show_p(difference)
        against = f"{value:+.2f}, p {p if p[0] in '<≤' else '= ' + p}"
    return {
        "value": system.score if metric.higher_is_better else -system.score,
        "score": show_number(system.score, metric.shown_as_percent),
        "interval": show_interval(system.interval, metric.shown_as_percent),
        "cluster": system.cluster,
        "against": against,
        "verdict": "same" if difference is None else difference.verdict,
    }


def _data(comparison: Comparison) -> dict[str, Any]:
    """What the page's script works on: the captions and scores of the pictures that are kept."""
    reports = list(comparison.reports.values())
    scores = {
        name: np.stack([report[name].scores for report in reports])  # (systems, captions)
        for name in comparison.metrics
    }
    rows = _kept_rows(comparison, scores)
    captions = reports[0].captions
    pictures = thumbnails(captions, rows, rows, reports[-1].pictures)  # the last to look has them still at hand
    position = {row: number for number, row in enumerate(rows)}
    return {
        "systems": list(comparison.systems),
        "ids": [captions.ids[row] for row in rows],
        "captions": [[shorten(report.captions.candidates[row]) for row in rows] for report in reports],
        "references": [
            [shorten(text) for text in captions.references[row][:5]] if captions.references else [] for row in rows
        ],
        "pictures": {str(position[row]): address for row, address in pictures.items()},
        "metrics": [
            {
                "name": metric.label,
                "percent": metric.shown_as_percent,
                "higherIsBetter": metric.higher_is_better,
                "scores": [[_rounded(value) for value in system[rows].tolist()] for system in scores[name]],
            }
            for name, metric in comparison.metrics.items()
        ],
    }


def _kept_rows(comparison: Comparison, scores: dict[str, np.ndarray[Any, Any]]) -> list[int]:
    """Return the rows of the hardest pictures and of those that systems differ on, as far as the page has room."""
    worth_showing: dict[int, None] = {}
    for name, metric in comparison.metrics.items():
        table = scores[name] if metric.higher_is_better else -scores[name]
        usable = np.flatnonzero(~np.isnan(table).any(axis=0))
        best, spread = table[:, usable].max(axis=0), np.ptp(table[:, usable], axis=0)
        worth_showing |= dict.fromkeys(usable[np.argsort(best, kind="stable")[:HARDEST]].tolist())
        worth_showing |= dict.fromkeys(usable[np.argsort(-spread, kind="stable")[:DIFFERENT]].tolist())
    kept, left = [], TEXT_BUDGET
    for row in worth_showing:
        left -= sum(len(shorten(report.captions.candidates[row])) for report in comparison.reports.values())
        if left < 0:
            break
        kept.append(row)
    return sorted(kept)


def _rounded(score: float) -> float | None:
    return float(f"{score:.6g}") if np.isfinite(score) else None
