"""Run metrics on rating sets: score what is not stored yet, compute every figure, test metrics against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from caplens.bench import agreement, published
from caplens.bench.agreement import Estimate
from caplens.bench.base import RatingSet
from caplens.bench.data import DataFolders
from caplens.bench.outside_scores import OutsideScores
from caplens.bench.results import LEVEL, BenchReport, Measurement, SetReport
from caplens.bench.score_store import stored_array, trial_scores
from caplens.bench.statistics import AgreementStatistic, PairStatistic, Scored, Trial
from caplens.core.errors import CaplensError, InputError, MissingData, as_caplens_error
from caplens.core.progress import Progress, silent
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.evaluation.resampling import Ints, Masks, as_extreme, check_draws, p_value, rank_clusters
from caplens.metrics.base import Metric
from caplens.storage.identity import Identity

RESAMPLES = 1000
PERMUTATIONS = 1000
BATCH = 50
ENOUGH = 20
"""So many swaps as extreme as the observed difference settle that it is not significant."""


def run(
    sets: Sequence[RatingSet],
    metrics: Sequence[Metric],
    data: DataFolders,
    scores: OutsideScores | None = None,
    *,
    resamples: int = RESAMPLES,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
    progress: Progress = silent,
) -> BenchReport:
    """Measure metrics on sets, and the columns of a file of scores that were made elsewhere.

    A set that cannot be read or measured and a metric that cannot run on a set are listed with the reason; nothing else
    is lost. If no set can be run, the first reason other than missing files is raised. Scores are stored as soon as
    they are computed.
    """
    if not metrics and scores is None:
        raise InputError("no metric was asked for", remedy="name some: --metrics cider-d,meteor or --metrics all")
    check_draws("resamples", resamples)
    check_draws("permutations", permutations)
    reports, missing = [], {}
    failure: CaplensError | None = None
    for rating_set in sets:
        try:
            task = rating_set.load(data)
            report = SetReport(rating_set, task)
            _score(report, metrics, progress)
            if scores is not None:
                _join(report, scores)
            _measure(report, resamples, permutations, seed, progress)
        except Exception as error:
            reason = as_caplens_error(error)
            missing[rating_set.name] = str(reason)
            if not isinstance(reason, MissingData):
                failure = failure or reason
            continue
        reports.append(report)
    if failure is not None and not reports:
        raise failure
    return BenchReport(reports, missing, resamples, permutations, seed)


def _score(report: SetReport, metrics: Sequence[Metric], progress: Progress) -> None:
    task, title = report.task, report.rating_set.title
    done: dict[str, list[Trial]] = {metric.name: [] for metric in metrics}
    total = len(task.trials) * len(metrics)
    for trial_number, captions in enumerate(task.trials):
        work = Workspace(captions, progress)
        for number, metric in enumerate(metrics):
            progress(f"{title}: {metric.name}", trial_number * len(metrics) + number, total)
            if metric.name in report.skipped:
                continue
            lost = report.rating_set.files and captions.images is None and captions.videos is None
            if "image" in metric.needs and lost:  # of a user's own ratings, the metric itself says what to give
                report.skipped[metric.name] = (
                    f"it looks at pictures, and of this set's none is in the --data folders ({report.rating_set.home})"
                )
                continue
            try:
                done[metric.name].append(trial_scores(metric, work, task.details))
            except Exception as error:
                report.skipped[metric.name] = str(as_caplens_error(error))
    progress(title, total, total)
    for metric in metrics:
        if metric.name in report.skipped:
            continue
        scored = Scored(metric, done[metric.name])
        if task.details and not any(figure.usable(scored) for figure in task.figures):
            report.skipped[metric.name] = "gives one score per caption and no details, which this set is about"
            continue
        report.scored[metric.name] = scored


def _join(report: SetReport, scores: OutsideScores) -> None:
    """Put the columns of a file beside the metrics."""
    for metric in scores.metrics:
        if metric.name in report.scored or metric.name in report.skipped:
            raise InputError(
                f"the column {metric.name!r} is called like a metric that was asked for",
                where=str(scores.path),
                remedy="rename the column, or leave the metric out",
            )
        try:
            if report.task.details:
                raise MissingData("gives one score per caption and no details, which this set is about")
            report.scored[metric.name] = scores.scored(metric, report.rating_set, report.task)
        except MissingData as error:
            report.skipped[metric.name] = str(error)


def _measure(report: SetReport, resamples: int, permutations: int, seed: int, progress: Progress) -> None:
    task = report.task
    weights = agreement.draw_weights(task.units, resamples, seed)
    masks = agreement.draw_swaps(task.units, permutations, seed)
    everything: Ints = np.ones((1, task.units), dtype=np.int32)
    for number, figure in enumerate(task.figures):
        progress(f"{report.rating_set.title}: intervals and tests", number, len(task.figures))
        rows: dict[str, Measurement] = {}
        for name, scored in report.scored.items():
            if task.details and not figure.usable(scored):  # it scores captions, and points at no word
                continue
            value = float(figure.resampled(scored, everything)[0])
            comparisons = published.compare(
                report.rating_set.name, figure.key, task.signature, name, scored.signature, value
            )
            rows[name] = Measurement(
                figure=figure,
                metric=name,
                label=scored.metric.label,
                estimate=Estimate.of(value, _resampled(figure, scored, weights, seed)),
                used=figure.usable(scored),
                comparisons=tuple(comparisons),
                draws=tuple(figure.per_trial(scored))
                if isinstance(figure, PairStatistic) and len(figure.trials) > 1
                else (),
            )
        ranks = _ranks(report, figure, rows, masks, seed) if figure.headline and permutations else {}
        report.measured += [replace(row, cluster=ranks.get(name)) for name, row in rows.items()]
    progress(f"{report.rating_set.title}: intervals and tests", len(task.figures), len(task.figures))


def _resampled(figure: AgreementStatistic, scored: Scored, weights: Ints, seed: int) -> Floats:
    identity = Identity.of(
        ["resampled", figure.formula, scored.metric.identity(), figure.material(scored), weights.shape, seed]
    )
    return stored_array(identity, lambda: figure.resampled(scored, weights))


def _ranks(
    report: SetReport, figure: AgreementStatistic, rows: dict[str, Measurement], masks: Masks, seed: int
) -> dict[str, int]:
    """Clusters of one figure; the p values that were needed are kept."""
    usable = {name: row for name, row in rows.items() if not np.isnan(row.estimate.value)}
    order = sorted(usable, key=lambda name: usable[name].estimate.value, reverse=True)

    def test(better: str, worse: str) -> float:
        first, second = report.scored[better], report.scored[worse]
        observed = usable[better].estimate.value - usable[worse].estimate.value
        sides = [(side.metric.identity(), figure.material(side)) for side in (first, second)]
        identity = Identity.of(["swapped", figure.formula, sides, masks.shape, seed])
        permuted = stored_array(identity, lambda: _permuted(figure, first, second, masks, observed))
        p = p_value(permuted, observed)
        report.p_values[figure.key, better, worse] = p
        return p

    return rank_clusters(order, test, LEVEL)


def _permuted(figure: AgreementStatistic, first: Scored, second: Scored, masks: Masks, observed: float) -> Floats:
    """Differences under swaps, in batches; a test that is clearly not significant stops early (Besag and Clifford)."""
    differences: list[Floats] = []
    for start in range(0, len(masks), BATCH):
        differences.append(figure.swapped(first, second, masks[start : start + BATCH]))
        if sum(int(as_extreme(batch, observed).sum()) for batch in differences) >= ENOUGH:
            break
    return np.concatenate(differences)
