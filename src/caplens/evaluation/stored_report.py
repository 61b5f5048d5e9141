"""Reports that were written with `--json`, read again: to be looked at, and compared without scoring anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError, as_caplens_error
from caplens.core.progress import Progress, silent
from caplens.core.types import Floats
from caplens.evaluation.compare import Comparison, by_picture, compare_reports
from caplens.evaluation.results import Report
from caplens.metrics import load_metric
from caplens.metrics.base import Result


def read_json(path: Path) -> dict[str, Any]:
    """Return what a verb wrote with `--json`, as plain values; messages name the file without its folders."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not json ({str(error)[:100]})", where=path.name) from None
    if not isinstance(content, dict):
        raise InputError("is not what `caplens score --json` writes", where=path.name)
    return content


def report_of(content: Mapping[str, Any], source: str) -> Report:
    """Return the report that `Report.to_dict` gave this content; metrics that are not here are listed as errors."""
    try:
        captions = CaptionSet(
            ids=list(content["ids"]),
            candidates=list(content["candidates"]),
            references=content.get("references"),
            images=content.get("images"),
            videos=content.get("videos"),
            source=source,
            groups=content.get("groups"),
        )
        report = Report(captions)
        report.errors.update(content["errors"])
        row_of = {name: row for row, name in enumerate(captions.ids)}
        for name, entry in content["metrics"].items():
            try:
                report.add(_result(name, entry, row_of))
            except Exception as error:  # a plug-in that is not installed here costs its own numbers only
                report.errors[name] = str(as_caplens_error(error))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"is not what `caplens score --json` writes ({error!r:.80})",
            where=source,
            remedy="score the captions again",
        ) from None
    return report


def _result(name: str, entry: Mapping[str, Any], row_of: Mapping[str, int]) -> Result:
    scores = _floats(entry["scores"])
    if scores.shape != (len(row_of),):
        raise InputError(f"{len(scores)} scores for {len(row_of)} captions")
    statistics = _floats(entry["statistics"]) if "statistics" in entry else scores[:, None]
    return Result(
        name=name,
        score=float("nan") if entry["score"] is None else float(entry["score"]),
        scores=scores,
        signature=entry["signature"],
        statistics=statistics.reshape(len(scores), -1),
        metric=load_metric(name, **entry["options"]),
        details=entry.get("details"),
        notes=tuple(entry["notes"]),
        failures={row_of[key]: reason for key, reason in entry["failures"].items() if key in row_of},
    )


def _floats(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)  # None becomes NaN


def compare_stored(reports: Mapping[str, Report], *, progress: Progress = silent) -> Comparison:
    """Rank reports of the same pictures; metrics whose signatures differ are not compared, and the reason is said."""
    if len(reports) < 2:
        raise InputError(f"{len(reports)} run to compare", remedy="choose at least two; the first is the baseline")
    (first_name, first), *others = ((name, by_picture(report)) for name, report in reports.items())
    aligned = {first_name: first}
    for name, report in others:
        aligned[name] = _in_order(report, first.captions.ids, name, first_name)
    reasons = {}
    for metric, result in first.results.items():
        for name, report in aligned.items():
            if metric not in report.results:
                reasons[metric] = f"{name} has no scores of it"
            elif report[metric].signature != result.signature:
                reasons[metric] = (
                    f"the numbers do not compare: {first_name} has {result.signature}, "
                    f"{name} {report[metric].signature}"
                )
    comparison = compare_reports(
        {name: _without(report, reasons) for name, report in aligned.items()}, progress=progress
    )
    comparison.errors.update(reasons)
    if not comparison.metrics:
        reason = next(iter(comparison.errors.values()), "the runs have no metric in common")
        raise InputError(f"nothing can be compared: {reason}")
    return comparison


def _without(report: Report, names: Mapping[str, str]) -> Report:
    """The same report without some metrics."""
    kept = Report(report.captions)
    for result in report:
        if result.name not in names:
            kept.add(result)
    return kept


def _in_order(report: Report, ids: list[str], name: str, baseline: str) -> Report:
    """The same report with its rows in the order of these ids."""
    if report.captions.ids == ids:
        return report
    row_of = {key: row for row, key in enumerate(report.captions.ids)}
    differing = set(ids) ^ set(row_of)
    if differing:
        raise InputError(
            f"{baseline!r} and {name!r} are not about the same pictures: {len(differing):,} ids differ, such as "
            f"{min(differing)!r}",
            remedy="compare runs on the same pictures",
        )
    rows = [row_of[key] for key in ids]
    place = {row: number for number, row in enumerate(rows)}
    ordered = Report(report.captions.take(rows))
    for result in report:
        ordered.add(
            Result(
                name=result.name,
                score=result.score,
                scores=result.scores[rows],
                signature=result.signature,
                statistics=result.statistics[rows],
                metric=result.metric,
                notes=result.notes,
                failures={place[row]: reason for row, reason in result.failures.items()},
            )
        )
    return ordered
