"""The page of a run over shards: scores, histograms, the worst and the best captions, and the shards."""

from __future__ import annotations

import heapq
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.core.tables import show_interval, show_number
from caplens.report.histogram import HEIGHT, WIDTH, Bar, draw_bars
from caplens.report.html import fill
from caplens.report.sample import shorten
from caplens.storage.atomic import write_atomically

if TYPE_CHECKING:
    from caplens.scale.results import ShardReport

BINS = 26
EXTREMES = 5
MOST_SHARDS = 1000


def write_page(
    report: ShardReport, path: str | os.PathLike[str], title: str, facts: Sequence[tuple[str, str, str]] = ()
) -> None:
    """Write one self-contained page; `facts` are counts that stand before the scores, with remarks."""
    views = [_view(report, name) for name in report.totals]
    page = fill(
        "shards.html",
        styles=("page.css", "shards.css"),
        title=title,
        total=len(report),
        facts=facts,
        metrics=views,
        errors=report.errors,
        notes=report.notes(),
        shards=[shard.summary for shard in report.shards[:MOST_SHARDS]],
        shard_count=len(report.shards),
        histogram_width=WIDTH,
        histogram_height=HEIGHT,
        several=None,
        show=show_number,
    )
    write_atomically(path, page)


def _view(report: ShardReport, name: str) -> dict[str, Any]:
    total = report[name]
    percent = total.metric.shown_as_percent
    bars, low, high = _bars(report, name)
    bounds = report.intervals.get(name)
    return {
        "name": name,
        "summary": total.metric.summary,
        "score": show_number(total.score, percent),
        "scale": "×100" if percent else "",
        "interval": "" if bounds is None else show_interval(bounds, percent),
        "captions": total.shown_count,
        "signature": total.signature,
        "notes": total.notes,
        "bars": bars,
        "percent": percent,
        "low": show_number(low, percent) if bars else "",
        "high": show_number(high, percent) if bars else "",
        "extremes": _extremes(report, name),
    }


def _bars(report: ShardReport, name: str) -> tuple[list[Bar], float, float]:
    """The histogram, counted shard by shard, with the lowest and the highest score."""
    low, high = np.inf, -np.inf
    for scores in report.scores(name):
        finite = scores[np.isfinite(scores)]
        low, high = min(low, finite.min(initial=np.inf)), max(high, finite.max(initial=-np.inf))
    if low > high:
        return [], low, high
    edges = np.linspace(low, high, BINS + 1) if low < high else np.array([low, high])
    counts = np.zeros(len(edges) - 1, np.int64)
    for scores in report.scores(name):
        finite = scores[np.isfinite(scores)]
        counts += np.histogram(finite, edges)[0] if low < high else len(finite)
    return draw_bars(counts, edges), float(low), float(high)


def _extremes(report: ShardReport, name: str) -> list[tuple[str, list[dict[str, str]]]]:
    """The worst and the best captions, each with its score, its id and its shard."""
    worst: list[tuple[float, int, int]] = []
    best: list[tuple[float, int, int]] = []
    sign = 1 if report[name].metric.higher_is_better else -1
    for place, scores in enumerate(report.scores(name)):
        rows = np.flatnonzero(np.isfinite(scores))
        order = rows[np.argsort(sign * scores[rows], kind="stable")].tolist()
        worst = heapq.nsmallest(EXTREMES, worst + [(sign * scores[row], place, row) for row in order[:EXTREMES]])
        best = heapq.nlargest(EXTREMES, best + [(sign * scores[row], place, row) for row in order[-EXTREMES:]])
    shown = []
    for title, chosen in (("Worst", worst), ("Best", best)):
        entries = []
        for score, place, row in chosen:
            shard = report.shards[place]
            entries.append(
                {
                    "score": show_number(sign * score, report[name].metric.shown_as_percent),
                    "id": str(shard.texts("id")[row]),
                    "caption": shorten(shard.texts("caption")[row] or ""),
                    "shard": shard.summary.shard,
                }
            )
        shown.append((title, entries))
    return shown
