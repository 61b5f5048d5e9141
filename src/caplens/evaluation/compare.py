"""Compare systems on the same captions: is the difference more than chance? The work behind `caplens compare`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from caplens.core.captions import CaptionSet, Media
from caplens.core.errors import InputError
from caplens.core.plain_json import json_text
from caplens.core.progress import Progress, silent
from caplens.core.types import Floats
from caplens.evaluation.evaluate import evaluate
from caplens.evaluation.resampling import bootstrap_sums, interval, share_at_least, swap_sums
from caplens.metrics.base import Metric, Result
from caplens.storage.atomic import write_atomically

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Difference:
    """A system against the baseline on one metric, caption by caption."""

    value: float
    """Score of the system minus score of the baseline."""
    interval: tuple[float, float]
    """95 % of the bootstrap's differences."""
    p_bootstrap: float
    p_permutation: float
    verdict: str
    """'better' or 'worse' if the randomization test calls the difference significant, else 'same'."""


@dataclass(frozen=True)
class SystemScore:
    """One system on one metric."""

    system: str
    score: float
    interval: tuple[float, float]
    difference: Difference | None
    """None for the baseline itself."""
    failures: dict[str, str] = field(default_factory=dict)
    """Id to reason, for captions that could not be scored; no system is compared on them."""


@dataclass(frozen=True)
class MetricComparison:
    """All systems on one metric, the baseline first."""

    name: str
    signature: str
    shown_as_percent: bool
    higher_is_better: bool
    captions: int
    """How many captions count: those that every system could be scored on."""
    systems: tuple[SystemScore, ...]


@dataclass(frozen=True)
class Comparison:
    """Several systems on the same captions; the first one is the baseline."""

    systems: tuple[str, ...]
    captions: int
    resamples: int
    seed: int
    metrics: dict[str, MetricComparison]
    errors: dict[str, str] = field(default_factory=dict)
    """Metric name to reason, for metrics that could not run."""

    def __getitem__(self, name: str) -> MetricComparison:
        return self.metrics[name]

    def worse(self) -> list[tuple[str, str]]:
        """(system, metric) pairs that are significantly worse than the baseline."""
        return [
            (score.system, metric.name)
            for metric in self.metrics.values()
            for score in metric.systems
            if score.difference is not None and score.difference.verdict == "worse"
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values."""
        return {"baseline": self.systems[0], "significant_below": SIGNIFICANT, **asdict(self)}

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` as a json file."""
        write_atomically(path, json_text(self.to_dict()) + "\n")


def compare(
    systems: Mapping[str, CaptionSet | Sequence[str] | Mapping[Any, str]],
    references: Sequence[Sequence[str]] | Mapping[Any, Sequence[str]] | None = None,
    images: Sequence[Media | None] | Mapping[Any, Media | None] | None = None,
    videos: Sequence[Media | None] | Mapping[Any, Media | None] | None = None,
    metrics: str | Sequence[str | Metric] = ("cider-r",),
    *,
    resamples: int = 1000,
    seed: int = 12345,
    progress: Progress = silent,
    **options: Any,
) -> Comparison:
    """Score several systems on the same pictures and test each against the first.

    Args:
        systems: name to captions; every system has the same ids (or, as lists, the same order).
        references: as for `evaluate`, and so are ``images``, ``videos``, ``metrics`` and the options.
        resamples: draws of the paired bootstrap and of the approximate randomization.
        seed: makes the draws, and so the p values, repeatable; it is part of the result.

    Re-sampling adds up each metric's stored statistics; what a metric learned from the whole set (the idf of the
    references) stays as it was.

    >>> old, new = ["a cat"] * 20, ["a black cat"] * 20
    >>> found = compare({"old": old, "new": new}, references=[["the black cat"]] * 20, metrics=["rouge-l"])
    >>> found["rouge-l"].systems[1].difference.verdict
    'better'
    """
    if len(systems) < 2:
        raise InputError(f"{len(systems)} system to compare", remedy="give at least two; the first is the baseline")
    if resamples < 1:
        raise InputError(f"resamples={resamples}", remedy="give at least 1; 1000 is usual")
    aligned = _same_rows(systems, references, images, videos)
    reports = {
        name: evaluate(captions, metrics=metrics, progress=progress, **options) for name, captions in aligned.items()
    }
    errors = {name: reason for report in reports.values() for name, reason in report.errors.items()}
    ids = next(iter(aligned.values())).ids
    compared = {}
    for name in next(iter(reports.values())).results:
        if name not in errors:
            results = {system: report[name] for system, report in reports.items()}
            compared[name] = _compare_one(results, ids, resamples, seed)
    return Comparison(tuple(systems), len(ids), resamples, seed, compared, errors)


def _same_rows(
    systems: Mapping[str, CaptionSet | Sequence[str] | Mapping[Any, str]],
    references: Any,
    images: Any,
    videos: Any,
) -> dict[str, CaptionSet]:
    """Every system as a CaptionSet with the rows of the first, in its order."""
    sets: dict[str, CaptionSet] = {}
    for name, captions in systems.items():
        if isinstance(captions, CaptionSet):
            if any(column is not None for column in (references, images, videos)):
                raise InputError("a CaptionSet came with extra columns", remedy="put them into the CaptionSet")
            sets[name] = captions
        else:
            sets[name] = CaptionSet.of(captions, references, images, videos, source=name)
    baseline_name, baseline = next(iter(sets.items()))
    if not len(baseline):
        raise InputError("no captions to compare", where=baseline.source or baseline_name)
    for name, captions in sets.items():
        if captions.ids != baseline.ids:
            captions = sets[name] = _in_order(captions, name, baseline.ids, baseline_name)
        if captions.references != baseline.references:
            raise InputError(
                f"systems {baseline_name!r} and {name!r} come with different references",
                where=captions.source,
                remedy="judge all systems against the same ones (--references FILE)",
            )
    return sets


def _in_order(captions: CaptionSet, name: str, ids: Sequence[str], baseline_name: str) -> CaptionSet:
    """The rows of a system in the order of the baseline's ids, which must be the same ids."""
    place = {key: row for row, key in enumerate(captions.ids)}
    missing = [key for key in ids if key not in place]
    extra = sorted(set(place) - set(ids))
    if missing or extra:
        one, other, key = (name, baseline_name, missing[0]) if missing else (baseline_name, name, extra[0])
        raise InputError(
            f"system {one!r} has no caption for id {key!r}, which {other!r} has",
            where=captions.source,
            remedy=f"compare systems on the same pictures ({len(missing) + len(extra)} ids differ)",
        )
    return captions.take([place[key] for key in ids])


def _compare_one(results: Mapping[str, Result], ids: Sequence[str], resamples: int, seed: int) -> MetricComparison:
    """Test every system against the first on one metric."""
    stacked = np.stack([result.statistics for result in results.values()])  # (systems, captions, columns)
    usable = ~np.isnan(stacked).any(axis=(0, 2))
    stacked = stacked[:, usable]
    count = int(usable.sum())
    first = next(iter(results.values()))
    if not count:
        raise InputError(f"no caption could be scored with {first.name} for every system")
    sums = stacked.sum(axis=1)
    scores = _corpus(first.metric, sums, count)
    side_by_side = np.concatenate(list(stacked), axis=1)
    drawn = bootstrap_sums(side_by_side, resamples, seed).reshape(resamples, len(results), -1)
    drawn_scores = _corpus(first.metric, drawn, count)  # (resamples, systems)

    others = np.concatenate([system - stacked[0] for system in stacked[1:]], axis=1)
    moved = swap_sums(others, resamples, seed).reshape(resamples, len(results) - 1, -1)
    swapped = _corpus(first.metric, sums[1:] - moved, count) - _corpus(first.metric, sums[0] + moved, count)

    rows = []
    for place, (name, result) in enumerate(results.items()):
        difference = None
        if place:
            value = float(scores[place] - scores[0])
            drawn_differences = drawn_scores[:, place] - drawn_scores[:, 0]
            p_permutation = share_at_least(swapped[:, place - 1], value)
            improved = (value > 0) == first.metric.higher_is_better
            difference = Difference(
                value=value,
                interval=interval(drawn_differences),
                # Under the null hypothesis the differences scatter around 0 as they now do around the observed one.
                p_bootstrap=share_at_least(drawn_differences - value, value),
                p_permutation=p_permutation,
                verdict="same" if p_permutation >= SIGNIFICANT else "better" if improved else "worse",
            )
        failures = {ids[row]: reason for row, reason in result.failures.items()}
        rows.append(SystemScore(name, float(scores[place]), interval(drawn_scores[:, place]), difference, failures))
    metric = first.metric
    return MetricComparison(
        first.name, first.signature, metric.shown_as_percent, metric.higher_is_better, count, tuple(rows)
    )


def _corpus(metric: Metric, sums: Floats, count: int) -> Floats:
    return np.asarray(metric.corpus(sums, count), dtype=np.float64)
