"""Draws results: pages, tables, plots. Importing it gives results their `to_html`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caplens.evaluation.pages import register_page

if TYPE_CHECKING:  # a page is drawn for few runs: nothing of it is loaded before
    from caplens.evaluation.check import CheckReport
    from caplens.evaluation.compare import Comparison
    from caplens.evaluation.explain import Explanation
    from caplens.evaluation.results import Report


def _report_page(report: Report, title: str) -> str:
    from caplens.report.html import render

    return render(report, title)


def _explanation_page(explanation: Explanation) -> str:
    from caplens.report.explained import render

    return render(explanation)


def _leaderboard_page(comparison: Comparison, title: str) -> str:
    from caplens.report.leaderboard import render

    return render(comparison, title)


def _check_page(report: CheckReport, title: str) -> str:
    from caplens.report.checked import render

    return render(report, title)


register_page("CheckReport", _check_page)
register_page("Comparison", _leaderboard_page)
register_page("Report", _report_page)
register_page("Explanation", _explanation_page)

__all__: list[str] = []
