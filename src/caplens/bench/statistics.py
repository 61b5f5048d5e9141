"""Figures: what is computed from a metric's scores on a rating set. Each can be resampled and tested."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caplens.bench import agreement
from caplens.bench.agreement import Correlation
from caplens.core.details import AnyDetails
from caplens.core.types import Floats
from caplens.evaluation.resampling import Ints, Masks
from caplens.metrics.base import Metric

Rows = NDArray[np.intp]
SYMBOLS = {"tau-c": "Kendall τc", "tau-b": "Kendall τb", "pearson": "Pearson r", "spearman": "Spearman ρ"}


@dataclass(frozen=True)
class Scored:
    """What one metric said about every trial of a set."""

    metric: Metric
    trials: Sequence[Trial]

    def scores(self, trial: int) -> Floats:
        """One number per caption, higher meaning better whatever the metric."""
        values = self.trials[trial].scores
        return values if self.metric.higher_is_better else -values

    @property
    def signature(self) -> str:
        return self.trials[0].signature


@dataclass(frozen=True)
class Trial:
    """The stored outcome of one metric on one set of captions."""

    scores: Floats
    statistics: Floats
    signature: str
    notes: tuple[str, ...] = ()
    failures: Mapping[int, str] | None = None
    details: list[AnyDetails] | None = None


@dataclass(frozen=True, kw_only=True)
class AgreementStatistic(ABC):
    """One number per metric on a set, such as τc over all rows or the accuracy on one category."""

    key: str
    headline: bool = False
    """Whether paired tests and clusters are computed for it."""
    at: float | None = None
    """Its place on a curve, such as the number of references."""
    scale: float = 100.0
    """What the printed figure is multiplied by."""

    @property
    def label(self) -> str:
        """The key as people read it."""
        words = self.key
        for plain, symbol in SYMBOLS.items():
            words = words.replace(plain, symbol)
        return words

    @property
    def digits(self) -> int:
        """So many after the point are shown."""
        return 3 if self.scale == 1 else 2

    @property
    def formula(self) -> str:
        """How the figure is computed from its material: two equal formulas on equal material give equal figures."""
        return type(self).__name__

    @property
    @abstractmethod
    def count(self) -> int:
        """Rows, pairs or items behind the figure."""

    @abstractmethod
    def usable(self, scored: Scored) -> int:
        """How many of them could be scored."""

    @abstractmethod
    def material(self, scored: Scored) -> list[NDArray[Any]]:
        """Every array that the figure is computed from: two equal materials give equal figures."""

    @abstractmethod
    def resampled(self, scored: Scored, weights: Ints) -> Floats:
        """One value per row of `weights` (how often each unit was drawn)."""

    @abstractmethod
    def swapped(self, first: Scored, second: Scored, masks: Masks) -> Floats:
        """Value of a mixture of two metrics minus that of the other half, per row of `masks`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingStatistic(AgreementStatistic):
    """Correlation of scores with ratings, over some rows of one trial."""

    kind: Correlation
    rows: Rows
    ratings: Floats
    units: Ints
    trial: int = 0

    @property
    def formula(self) -> str:
        return f"{super().formula} {self.kind}"

    @property
    def count(self) -> int:
        return len(self.rows)

    def usable(self, scored: Scored) -> int:
        return len(self._known(scored)[1])

    def material(self, scored: Scored) -> list[NDArray[Any]]:
        return [scored.scores(self.trial)[self.rows], self.ratings, self.units]

    def _known(self, *scored: Scored) -> tuple[list[Floats], Floats, Ints]:
        columns = [one.scores(self.trial)[self.rows] for one in scored]
        known = ~np.isnan(np.stack([*columns, self.ratings])).any(axis=0)
        return [column[known] for column in columns], self.ratings[known], self.units[known]

    def resampled(self, scored: Scored, weights: Ints) -> Floats:
        (x,), y, units = self._known(scored)
        return agreement.correlate(self.kind, x, y, units, weights)

    def swapped(self, first: Scored, second: Scored, masks: Masks) -> Floats:
        (a, b), y, units = self._known(first, second)
        return agreement.correlate_swapped(self.kind, a, b, y, units, masks)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrecisionStatistic(AgreementStatistic):
    """Average precision of calling the captions with the lowest scores wrong."""

    wrong: Masks
    """1 for captions that are."""
    units: Ints

    @property
    def count(self) -> int:
        return len(self.wrong)

    def usable(self, scored: Scored) -> int:
        return int((~np.isnan(scored.scores(0))).sum())

    def material(self, scored: Scored) -> list[NDArray[Any]]:
        return [scored.scores(0), self.wrong, self.units]

    def resampled(self, scored: Scored, weights: Ints) -> Floats:
        scores = scored.scores(0)
        known = ~np.isnan(scores)
        return agreement.average_precision(scores[known], self.wrong[known], self.units[known], weights)

    def swapped(self, first: Scored, second: Scored, masks: Masks) -> Floats:
        a, b = first.scores(0), second.scores(0)
        known = ~(np.isnan(a) | np.isnan(b))
        wrong, units = self.wrong[known], self.units[known]
        return agreement.average_precision_swapped(a[known], b[known], wrong, units, masks)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShareStatistic(AgreementStatistic):
    """Mean of a value in 0..1 over items; subclasses say what the items are worth."""

    units: Ints

    @property
    def count(self) -> int:
        return len(self.units)

    def usable(self, scored: Scored) -> int:
        return int((~np.isnan(self.items(scored))).sum())

    def material(self, scored: Scored) -> list[NDArray[Any]]:
        return [self.items(scored), self.units]

    @abstractmethod
    def items(self, scored: Scored) -> Floats:
        """The value of each item, NaN where it could not be judged."""

    def resampled(self, scored: Scored, weights: Ints) -> Floats:
        return agreement.share(self.items(scored), self.units, weights)

    def swapped(self, first: Scored, second: Scored, masks: Masks) -> Floats:
        return agreement.share_swapped(self.items(first), self.items(second), self.units, masks)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairStatistic(ShareStatistic):
    """Accuracy: how often the caption that people prefer scores higher; averaged over the trials (reference draws)."""

    better: Rows
    worse: Rows
    ties: Literal["half", "wrong"] = "half"
    trials: tuple[int, ...] = (0,)

    def items(self, scored: Scored) -> Floats:
        per_trial = [
            agreement.preferred(scores[self.better], scores[self.worse], self.ties)
            for scores in map(scored.scores, self.trials)
        ]
        return np.asarray(np.mean(per_trial, axis=0), dtype=np.float64)

    def per_trial(self, scored: Scored) -> list[float]:
        """The accuracy of each draw on its own: their spread is the noise of the draw."""
        return [
            float(np.nanmean(agreement.preferred(scores[self.better], scores[self.worse], self.ties)))
            for scores in map(scored.scores, self.trials)
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemStatistic(ShareStatistic):
    """A share whose items are worked out by a function: retrieval hits, words judged right."""

    judge: Callable[[Scored], Floats]

    def items(self, scored: Scored) -> Floats:
        return self.judge(scored)


@dataclass(frozen=True, kw_only=True, eq=False)
class CorpusStatistic(AgreementStatistic):
    """The metric's own corpus score of one trial: what a leaderboard prints for a system."""

    trial: int
    rows: int

    @property
    def count(self) -> int:
        return self.rows

    def usable(self, scored: Scored) -> int:
        return int((~np.isnan(scored.trials[self.trial].statistics).any(axis=1)).sum())

    def material(self, scored: Scored) -> list[NDArray[Any]]:
        return [scored.trials[self.trial].statistics]

    def resampled(self, scored: Scored, weights: Ints) -> Floats:
        rows = scored.trials[self.trial].statistics
        known = ~np.isnan(rows).any(axis=1)
        counts = weights[:, known].sum(axis=1)
        sums = weights[:, known].astype(np.float64) @ rows[known]
        return np.array(
            [float(scored.metric.corpus(total, int(count))) for total, count in zip(sums, counts, strict=True)]
        )

    def swapped(self, first: Scored, second: Scored, masks: Masks) -> Floats:
        raise NotImplementedError("corpus scores of two metrics are on two scales; they are not compared")


def rating_statistics(
    kinds: Sequence[Correlation], rows: Rows, ratings: Floats, units: Ints
) -> list[AgreementStatistic]:
    """Return one correlation of each kind with the same ratings; τc is the headline."""
    return [
        RatingStatistic(key=kind, kind=kind, headline=kind == "tau-c", rows=rows, ratings=ratings, units=units)
        for kind in kinds
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanStatistic(AgreementStatistic):
    """Plain mean of other figures, such as the four categories of Pascal-50S or three annotators."""

    parts: tuple[AgreementStatistic, ...]

    @property
    def formula(self) -> str:
        return f"{super().formula} ({', '.join(part.formula for part in self.parts)})"

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    def usable(self, scored: Scored) -> int:
        return sum(part.usable(scored) for part in self.parts)

    def material(self, scored: Scored) -> list[NDArray[Any]]:
        return [array for part in self.parts for array in part.material(scored)]

    def resampled(self, scored: Scored, weights: Ints) -> Floats:
        return np.asarray(np.mean([part.resampled(scored, weights) for part in self.parts], axis=0), dtype=np.float64)

    def swapped(self, first: Scored, second: Scored, masks: Masks) -> Floats:
        parts = [part.swapped(first, second, masks) for part in self.parts]
        return np.asarray(np.mean(parts, axis=0), dtype=np.float64)
