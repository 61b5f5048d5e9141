"""Which captions a page keeps when there are too many: the extremes of every metric, failures, and an even spread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from caplens.evaluation.results import Report

MOST_ROWS = 5_000
TEXT_BUDGET = 3_000_000
"""Characters of captions and references on one page."""
EXTREMES = 50
"""How many of the worst and of the best captions of each metric are always kept."""
LONGEST = 2_000
"""Characters of one caption or reference that are shown."""
REFERENCES_BUDGET = 20_000
"""Characters of the references of one caption: one row with very many must not push the others off the page."""


def extremes(report: Report, count: int) -> Iterator[int]:
    """Rows of the worst and best captions of every metric, the very worst and best first; rows may repeat."""
    orders = []
    for result in report:
        order = np.argsort(result.scores, kind="stable")  # NaN goes to the end
        orders.append(order[: int(np.isfinite(result.scores).sum())])
    for number in range(count):
        for order in orders:
            if number < len(order):
                yield int(order[number])
                yield int(order[-1 - number])


def choose_rows(report: Report) -> list[int]:
    """The rows a page keeps, in the order of the set."""
    total = len(report.captions)
    kept: dict[int, None] = {}
    left = TEXT_BUDGET
    for row in _by_importance(report, total):
        if row in kept:
            continue
        left -= _size(report, row)
        if kept and (left < 0 or len(kept) >= MOST_ROWS):
            break
        kept[row] = None
    return sorted(kept)


def _by_importance(report: Report, total: int) -> Iterator[int]:
    yield from extremes(report, EXTREMES)
    for result in report:
        yield from list(result.failures)[:EXTREMES]
    step = max(1, -(-total // MOST_ROWS))
    for start in range(step):
        yield from range(start, total, step)


def _size(report: Report, row: int) -> int:
    return min(LONGEST, len(report.captions.candidates[row])) + sum(map(len, shown_references(report, row)))


def shown_references(report: Report, row: int) -> list[str]:
    """The references of a caption that a page shows; of very many, the first and how many more there are."""
    references = [] if report.captions.references is None else report.captions.references[row]
    shown: list[str] = []
    left = REFERENCES_BUDGET
    for text in references:
        left -= min(LONGEST, len(text))
        if left < 0:
            return [*shown, f"… and {len(references) - len(shown):,} more"]
        shown.append(shorten(text))
    return shown


def shorten(text: str) -> str:
    """
    >>> shorten("a cat"), len(shorten("a" * 9999))
    ('a cat', 2001)
    """
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
