"""Several captions per picture (beams, samples): from scores of captions to scores of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.core.signature import Signature
from caplens.core.tables import Table, show_interval, show_number
from caplens.core.types import Floats
from caplens.evaluation.tabular import Tabular
from caplens.metrics.base import Result

Which = Literal["mean", "first", "best", "oracle"]
"""Which of a picture's captions count: all alike (what a caption picked at random gets), the first, the one that a
metric without references likes best, or for every metric the one that it likes best itself (an upper bound)."""
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Pictures:
    """Which captions belong to which picture."""

    names: list[str]
    number: Rows
    """The picture of every caption."""

    @classmethod
    def of(cls, captions: CaptionSet) -> Pictures:
        """Return the pictures of captions that come with groups, in their order."""
        if captions.groups is None:
            raise InputError(
                "every picture has one caption here",
                where=captions.source,
                remedy="read several per picture with several=True (--several), or give groups= to evaluate",
            )
        place: dict[str, int] = {}
        number = np.array([place.setdefault(group, len(place)) for group in captions.groups], np.int64)
        return cls(list(place), number)

    def first(self) -> Rows:
        """Return the row of every picture's first caption."""
        return np.unique(self.number, return_index=True)[1]

    def best(self, scores: Floats) -> Rows:
        """Return the row of every picture's caption with the highest score; the earlier one where two are alike.

        >>> Pictures(["cat", "dog"], np.array([0, 1, 0])).best(np.array([0.1, np.nan, 0.3]))
        array([2, 1])
        """
        order = np.lexsort((np.arange(len(scores)), -np.where(np.isnan(scores), -np.inf, scores), self.number))
        return order[np.unique(self.number[order], return_index=True)[1]]

    def mean(self, rows: Floats) -> Floats:
        """Return the mean over every picture's captions that could be scored; NaN where none could."""
        usable = ~np.isnan(rows).any(axis=1)
        sums = np.zeros((len(self.names), rows.shape[1]))
        np.add.at(sums, self.number[usable], rows[usable])
        counts = np.bincount(self.number[usable], minlength=len(self.names))[:, None]
        return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def reduce_result(result: Result, pictures: Pictures, which: Which, chooser: Result | None) -> Result:
    """Return a metric's result with one row per picture."""
    metric = result.metric
    if which == "mean":
        rows, scores = pictures.mean(result.statistics), pictures.mean(result.scores[:, None])[:, 0]
        chosen = pictures.first()
    else:
        chosen = chosen_rows(result, pictures, which, chooser)
        rows, scores = result.statistics[chosen], result.scores[chosen]
    usable = ~np.isnan(rows).any(axis=1)
    failures = {
        picture: result.failures.get(int(chosen[picture]), "none of its captions could be scored")
        for picture in np.flatnonzero(~usable).tolist()
    }
    count = int(usable.sum())
    signature = Signature.parse(result.signature)
    way = f"best-by-{chooser.name}" if which == "best" and chooser is not None else which
    return replace(
        result,
        score=float(metric.corpus(rows[usable].sum(axis=0), count)) if count else float("nan"),
        scores=scores,
        statistics=rows,
        signature=str(replace(signature, parts=(*signature.parts, ("captions", way)))),
        details=None,  # they are about captions, and stay with these
        failures=failures,
    )


def chosen_rows(result: Result, pictures: Pictures, which: Which, chooser: Result | None) -> Rows:
    """Return the row of the caption that counts for every picture."""
    if which == "first":
        return pictures.first()
    by = chooser if which == "best" and chooser is not None else result
    return pictures.best(by.scores if by.metric.higher_is_better else -by.scores)


@dataclass(frozen=True)
class SeveralSummary(Tabular):
    """Every metric over pictures with several captions each: mean, first, best and oracle side by side."""

    pictures: int
    captions: int
    chosen_by: str | None
    """The metric that chose the best caption; None where no metric does without references."""
    results: Mapping[Which, Mapping[str, Result]]
    intervals: Mapping[str, tuple[float, float]]
    """Of the mean, over pictures."""

    def table(self) -> Table:
        """Return one row per metric."""
        best = "best of k" if self.chosen_by is None else f"best by {self.chosen_by}"
        columns = ("metric", "scale", "mean", "95 % interval", "first", best, "oracle")
        rows = []
        for name, result in self.results["mean"].items():
            percent, bounds = result.metric.shown_as_percent, self.intervals.get(name)
            scores = {which: show_number(found[name].score, percent) for which, found in self.results.items()}
            rows.append(
                [
                    result.metric.label,
                    "×100" if percent else "",
                    scores["mean"],
                    "" if bounds is None else show_interval(bounds, percent),
                    scores["first"],
                    scores.get("best", ""),
                    scores["oracle"],
                ]
            )
        return Table(columns, rows, columns[2:])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return {
            "pictures": self.pictures,
            "chosen_by": self.chosen_by,
            "metrics": {
                name: {
                    which: None if np.isnan(found[name].score) else found[name].score
                    for which, found in self.results.items()
                }
                for name in self.results["mean"]
            },
        }
