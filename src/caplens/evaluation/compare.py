"""Compare systems on the same captions: is the difference more than chance? The work behind `caplens compare`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.core.captions import CaptionSet, Media, rows_by_picture
from caplens.core.errors import CaplensError, InputError, as_caplens_error
from caplens.core.optional import require
from caplens.core.plain_json import json_text
from caplens.core.progress import Progress, silent
from caplens.core.tables import Table, show_interval, show_number, show_p
from caplens.core.types import Floats
from caplens.evaluation.evaluate import evaluate, language_option
from caplens.evaluation.pages import render_page
from caplens.evaluation.plots import Panel, Point
from caplens.evaluation.resampling import bootstrap_sums, check_draws, holm, interval, p_value, rank_clusters, swap_sums
from caplens.evaluation.results import Report
from caplens.evaluation.tabular import Plottable
from caplens.metrics import canonical_name, default_metrics, find_metric
from caplens.metrics.base import Metric, Result
from caplens.storage.atomic import write_atomically

if TYPE_CHECKING:
    import pandas

SIGNIFICANT = 0.05
DRAWS = 1000
RANKING = ("rank", "system", "score", "95 % interval", "vs. first", "p (Holm)", "verdict")
DRAWS_PER_PAIR = 40
"""Holm's correction multiplies the smallest p value by the number of pairs, so more pairs need more permutations."""


@dataclass(frozen=True)
class Difference:
    """A system against the baseline on one metric, caption by caption."""

    value: float
    """Score of the system minus score of the baseline."""
    interval: tuple[float, float]
    """95 % of the bootstrap's differences."""
    p_bootstrap: float
    p_permutation: float
    p_holm: float
    """The permutation test's p value, corrected for the number of pairs of systems."""
    verdict: str
    """'better' or 'worse' if the corrected test calls the difference significant, else 'same'."""


@dataclass(frozen=True)
class SystemScore:
    """One system on one metric."""

    system: str
    score: float
    interval: tuple[float, float]
    cluster: int
    """1 for the best systems; a new one begins where a system is significantly worse than all of the one above."""
    difference: Difference | None
    """None for the baseline itself."""
    failures: dict[str, str] = field(default_factory=dict)
    """Id to reason, for captions that could not be scored; no system is compared on them."""


@dataclass(frozen=True)
class PairTest:
    """Two systems on one metric, the better one first."""

    better: str
    worse: str
    difference: float
    """How much better, on the metric's own scale; never negative."""
    p_permutation: float
    p_holm: float


@dataclass(frozen=True)
class MetricComparison:
    """All systems on one metric, the baseline first, and every pair of them tested."""

    name: str
    label: str
    """What tables call it: the name, and the encoder where it is not the paper's."""
    signature: str
    shown_as_percent: bool
    higher_is_better: bool
    captions: int
    """How many captions count: those that every system could be scored on."""
    systems: tuple[SystemScore, ...]
    pairs: tuple[PairTest, ...]

    def ranking(self) -> list[SystemScore]:
        """Return the systems, the best first."""
        return sorted(self.systems, key=lambda system: -system.score if self.higher_is_better else system.score)


@dataclass(frozen=True)
class Comparison(Plottable):
    """Several systems on the same captions; the first one is the baseline."""

    systems: tuple[str, ...]
    captions: int
    resamples: int
    """Draws of the bootstrap."""
    permutations: int
    """Draws of the permutation test."""
    seed: int
    metrics: dict[str, MetricComparison]
    errors: dict[str, str] = field(default_factory=dict)
    """Metric name to reason, for metrics that could not run."""
    reports: Mapping[str, Report] = field(default_factory=dict, repr=False, compare=False)
    """The report of every system: what a page draws captions from."""

    def __getitem__(self, name: str) -> MetricComparison:
        return self.metrics[canonical_name(name)]

    def worse(self) -> list[tuple[str, str]]:
        """Return (system, metric) pairs that are significantly worse than the baseline."""
        return [
            (score.system, metric.name)
            for metric in self.metrics.values()
            for score in metric.systems
            if score.difference is not None and score.difference.verdict == "worse"
        ]

    def table(self) -> Table:
        """Return one row per metric and system, the best system first."""
        parts = self.tables()
        first = next(iter(parts.values()), Table(RANKING, ()))
        rows = [[title, *row] for title, part in parts.items() for row in part.rows]
        return Table(("metric", *first.columns), rows, first.numbers)

    def tables(self) -> dict[str, Table]:
        """Return a table for every metric, the best system first, by what the metric is called."""
        tables = {}
        for metric in self.metrics.values():
            percent = metric.shown_as_percent
            rows = [
                [
                    str(system.cluster),
                    system.system,
                    show_number(system.score, percent),
                    show_interval(system.interval, percent),
                    *self._difference_cells(system.difference, percent),
                ]
                for system in metric.ranking()
            ]
            tables[metric.label + (" ×100" if percent else "")] = Table(RANKING, rows, RANKING[:1] + RANKING[2:-1])
        return tables

    def show_p(self, difference: Difference) -> str:
        """Return the corrected p value for people; one that no draw reached is only known not to be greater."""
        least = 1 / (self.permutations + 1)
        return show_p(difference.p_holm, bound=difference.p_permutation <= least * (1 + 1e-9))

    def _difference_cells(self, difference: Difference | None, percent: bool) -> Sequence[str]:
        if difference is None:
            return "baseline", "", ""
        stars = "" if difference.verdict == "same" else "**" if difference.p_holm < 0.01 else "*"
        value = difference.value * (100 if percent else 1)
        return f"{value:+.2f}", self.show_p(difference), f"{stars} {difference.verdict}".strip()

    def panels(self) -> list[Panel]:
        """Return one panel per metric, the best system on top, with a line between rank clusters."""
        panels = []
        for metric in self.metrics.values():
            scale, title = (100, f"{metric.name} ×100") if metric.shown_as_percent else (1, metric.name)
            points = (Point(each.system, each.score, each.interval, each.cluster) for each in metric.ranking())
            panels.append(Panel(title, [point.times(scale) for point in points]))
        return panels

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return {
            "baseline": self.systems[0],
            "significant_below": SIGNIFICANT,
            "systems": list(self.systems),
            "captions": self.captions,
            "resamples": self.resamples,
            "permutations": self.permutations,
            "seed": self.seed,
            "metrics": {name: asdict(metric) for name, metric in self.metrics.items()},
            "errors": dict(self.errors),
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` as a json file."""
        write_atomically(path, json_text(self.to_dict()) + "\n")

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row per metric and system: score, interval, rank cluster and the test against the baseline."""
        pandas = require("pandas", purpose="to_pandas")
        rows = []
        for metric in self.metrics.values():
            for system in metric.ranking():
                difference = system.difference
                rows.append(
                    {
                        "metric": metric.name,
                        "system": system.system,
                        "score": system.score,
                        "low": system.interval[0],
                        "high": system.interval[1],
                        "rank": system.cluster,
                        "difference": None if difference is None else difference.value,
                        "p_holm": None if difference is None else difference.p_holm,
                    }
                )
        return pandas.DataFrame(rows)

    def to_html(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write a self-contained leaderboard page."""
        write_atomically(path, render_page(self, title or Path(path).stem))


def compare(
    systems: Mapping[str, CaptionSet | Sequence[str] | Mapping[Any, str]],
    references: Sequence[Sequence[str]] | Mapping[Any, Sequence[str]] | None = None,
    images: Sequence[Media | None] | Mapping[Any, Media | None] | None = None,
    videos: Sequence[Media | None] | Mapping[Any, Media | None] | None = None,
    metrics: str | Sequence[str | Metric] | None = None,
    *,
    resamples: int | None = None,
    seed: int = 12345,
    progress: Progress = silent,
    **options: Any,
) -> Comparison:
    """Score several systems on the same pictures, rank them, and test every pair.

    Args:
        systems: name to captions; every system has the same ids (or, as lists, the same order). Where pictures have
            several captions (a `CaptionSet` with groups), every picture counts with their mean.
        references: as for `evaluate`, and so are ``images``, ``videos``, ``metrics`` and the options.
        resamples: draws of the paired bootstrap and of the permutation test; by default 1,000, and more permutations
            where there are so many pairs that Holm's correction needs them.
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
    if resamples is not None:
        check_draws("resamples", resamples, least=1)
    aligned = _same_rows(systems, references, images, videos)
    options |= language_option(options.get("language"), aligned.values())
    if metrics is None:  # what every system comes with
        sets = list(aligned.values())
        metrics = [name for name in default_metrics(sets[0]) if all(find_metric(name).takes(each) for each in sets)]
    reports = {
        name: by_picture(evaluate(captions, metrics=metrics, progress=progress, **options))
        for name, captions in aligned.items()
    }
    return compare_reports(reports, resamples=resamples, seed=seed, progress=progress)


def compare_reports(
    reports: Mapping[str, Report],
    *,
    resamples: int | None = None,
    seed: int = 12345,
    progress: Progress = silent,
) -> Comparison:
    """Rank systems that are scored already, on the same ids in the same order, and test every pair."""
    pairs = len(reports) * (len(reports) - 1) // 2
    draws = _Draws(resamples or DRAWS, resamples or max(DRAWS, DRAWS_PER_PAIR * pairs), seed)
    errors = {name: reason for report in reports.values() for name, reason in report.errors.items()}
    first, *others = reports.values()
    ids = first.captions.ids
    compared: dict[str, MetricComparison] = {}
    failure: CaplensError | None = None
    for number, name in enumerate(first.results):
        progress("comparing", number, len(first.results))
        if name not in errors and all(name in report.results for report in others):
            results = {system: report[name] for system, report in reports.items()}
            try:
                compared[name] = _compare_one(results, ids, draws)
            except Exception as error:
                failure = as_caplens_error(error)
                errors[name] = str(failure)
    if failure is not None and not compared:
        raise failure
    return Comparison(tuple(reports), len(ids), draws.bootstrap, draws.permutations, seed, compared, errors, reports)


@dataclass(frozen=True)
class _Draws:
    """How many times captions are drawn or swapped, and from which seed."""

    bootstrap: int
    permutations: int
    seed: int


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
    baseline_rows = rows_by_picture(baseline)
    for name, captions in sets.items():
        rows = baseline_rows if captions is baseline else rows_by_picture(captions)
        _refuse_other_pictures(captions.source, name, rows, baseline_name, baseline_rows)
        if list(rows) != list(baseline_rows):
            captions = sets[name] = captions.take([row for key in baseline_rows for row in rows[key]])
        if _references_by_picture(captions) != _references_by_picture(baseline):
            raise InputError(
                f"systems {baseline_name!r} and {name!r} come with different references",
                where=captions.source,
                remedy="judge all systems against the same ones (--references FILE)",
            )
    return sets


def by_picture(report: Report) -> Report:
    """Return a report with one row per picture, which has the mean of its captions; as it is where it has one each."""
    return report if report.captions.groups is None else report.per_picture("mean")


def _references_by_picture(captions: CaptionSet) -> list[list[str]] | None:
    if captions.groups is None or captions.references is None:
        return captions.references
    return [captions.references[rows[0]] for rows in rows_by_picture(captions).values()]


def _refuse_other_pictures(
    where: str, name: str, rows: Mapping[str, object], baseline_name: str, baseline_rows: Mapping[str, object]
) -> None:
    """Say so where a system does not have the same pictures as the baseline."""
    missing = [key for key in baseline_rows if key not in rows]
    extra = sorted(set(rows) - set(baseline_rows))
    if missing or extra:
        system, other, key = (name, baseline_name, missing[0]) if missing else (baseline_name, name, extra[0])
        raise InputError(
            f"system {system!r} has no caption for id {key!r}, which {other!r} has",
            where=where,
            remedy=f"compare systems on the same pictures ({len(missing) + len(extra)} ids differ)",
        )


def _compare_one(results: Mapping[str, Result], ids: Sequence[str], draws: _Draws) -> MetricComparison:
    """Rank the systems on one metric and test every pair."""
    stacked = np.stack([result.statistics for result in results.values()])  # (systems, captions, columns)
    usable = ~np.isnan(stacked).any(axis=(0, 2))
    count = int(usable.sum())
    first = next(iter(results.values()))
    metric = first.metric
    if not count:
        raise InputError(f"no caption could be scored with {first.name} for every system")
    rows = np.concatenate(list(stacked[:, usable]), axis=1)  # every system's columns side by side, drawn together
    sums = rows.sum(axis=0).reshape(len(results), -1)
    scores = _corpus(metric, sums, count)
    drawn = bootstrap_sums(rows, draws.bootstrap, draws.seed).reshape(draws.bootstrap, len(results), -1)
    drawn_scores = _corpus(metric, drawn, count)  # (draws, systems)

    p_values = _permutation_tests(metric, rows, sums, scores, count, draws)
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    order = np.argsort(-scores if metric.higher_is_better else scores, kind="stable").tolist()
    clusters = rank_clusters(order, lambda one, other: corrected[min(one, other), max(one, other)], SIGNIFICANT)

    names = list(results)
    systems = []
    for number, (name, result) in enumerate(results.items()):
        difference = None
        if number:
            value = float(scores[number] - scores[0])
            drawn_differences = drawn_scores[:, number] - drawn_scores[:, 0]
            improved = (value > 0) == metric.higher_is_better
            difference = Difference(
                value=value,
                interval=interval(drawn_differences),
                # Under the null hypothesis the differences scatter around 0 as they now do around the observed one.
                p_bootstrap=p_value(drawn_differences - value, value),
                p_permutation=p_values[0, number],
                p_holm=corrected[0, number],
                verdict="same" if corrected[0, number] >= SIGNIFICANT else "better" if improved else "worse",
            )
        failures = {ids[row]: reason for row, reason in result.failures.items()}
        bounds = interval(drawn_scores[:, number])
        systems.append(SystemScore(name, float(scores[number]), bounds, clusters[number], difference, failures))
    tests = []
    for better, worse in itertools.combinations(order, 2):
        key = min(better, worse), max(better, worse)
        gap = abs(float(scores[better] - scores[worse]))
        tests.append(PairTest(names[better], names[worse], gap, p_values[key], corrected[key]))
    return MetricComparison(
        name=first.name,
        label=metric.label,
        signature=first.signature,
        shown_as_percent=metric.shown_as_percent,
        higher_is_better=metric.higher_is_better,
        captions=count,
        systems=tuple(systems),
        pairs=tuple(tests),
    )


def _permutation_tests(
    metric: Metric, rows: Floats, sums: Floats, scores: Floats, count: int, draws: _Draws
) -> dict[tuple[int, int], float]:
    """Return the p value of every pair of systems: how often swapping their captions at random differs as much."""
    taken = swap_sums(rows, draws.permutations, draws.seed).reshape(draws.permutations, len(sums), -1)
    p_values = {}
    for one, other in itertools.combinations(range(len(sums)), 2):
        moved = taken[:, other] - taken[:, one]  # what the swapped captions carry from one system to the other
        swapped = _corpus(metric, sums[other] - moved, count) - _corpus(metric, sums[one] + moved, count)
        p_values[one, other] = p_value(swapped, float(scores[other] - scores[one]))
    return p_values


def _corpus(metric: Metric, sums: Floats, count: int) -> Floats:
    return np.asarray(metric.corpus(sums, count), dtype=np.float64)
