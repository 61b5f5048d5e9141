"""Verdicts on alt texts as one self-contained page, the worst first."""

from __future__ import annotations

from typing import Any

from caplens.core.plain_json import json_text
from caplens.evaluation.check import VERDICTS, Checked, CheckReport
from caplens.report.html import DETAILS_BUDGET, fill
from caplens.report.sample import MOST_ROWS, TEXT_BUDGET, shorten
from caplens.report.thumbnails import thumbnails


def render(report: CheckReport, title: str) -> str:
    """Return the page as text."""
    order = sorted(range(len(report)), key=lambda row: (-VERDICTS.index(report.rows[row].verdict), row))
    rows = _kept(report, order)
    return fill(
        "check.html",
        styles=("page.css", "details.css", "check.css"),
        scripts=("details.js", "check.js"),
        data=_data(report, rows),
        title=title,
        total=len(report),
        shown=len(rows),
        counts={verdict: report.count(verdict) for verdict in reversed(VERDICTS)},
        rates=report.calibration.rates,
        notes=report.notes,
        signature=report.signature,
    )


def _kept(report: CheckReport, order: list[int]) -> list[int]:
    """Return the rows that the page has room for, the worst first."""
    kept: list[int] = []
    left = TEXT_BUDGET
    for row in order[:MOST_ROWS]:
        left -= len(shorten(report.rows[row].text))
        if left < 0:
            break
        kept.append(row)
    return kept


def _data(report: CheckReport, rows: list[int]) -> dict[str, Any]:
    pictures = thumbnails(report.captions, rows, rows, report.pictures)
    left = DETAILS_BUDGET
    entries = []
    for row in rows:
        details = report.details.get(row)
        left -= 0 if details is None else len(json_text(details))
        shown = {"picture": pictures.get(row), "details": details if left > 0 else None}
        entries.append({**_entry(report.rows[row]), **shown})
    return {"rows": entries}


def _entry(checked: Checked) -> dict[str, Any]:
    return {**checked.to_dict(), "text": shorten(checked.text)}
