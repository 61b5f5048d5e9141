"""What is in a run: the rows and facts of a report, of verdicts, or of scored shards, one layout for all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.core.types import Floats
from caplens.evaluation.results import Report
from caplens.evaluation.stored_report import read_json, report_of
from caplens.metrics.base import Result
from caplens.report.histogram import bars
from caplens.report.html import readable_details
from caplens.scale.results import ShardReport

Kind = Literal["score", "check", "shards"]
# How the two outputs that are runs begin: a look at the first bytes must do, as there may be thousands of files.
_BEGINNINGS: dict[Kind, re.Pattern[bytes]] = {
    "score": re.compile(rb'\s*\{\s*"captions"\s*:\s*\d+\s*,\s*"ids"'),
    "check": re.compile(rb'\s*\{\s*"texts"\s*:\s*\d+\s*,\s*"counts"'),
}


@dataclass(frozen=True)
class MetricFacts:
    """One metric of a run, as pages show it."""

    name: str
    label: str
    percent: bool
    higher_is_better: bool
    score: float | None
    interval: tuple[float, float] | None
    signature: str
    notes: list[str]
    histogram: list[tuple[float, float, int]]
    """Low end, high end and number of captions of every bar."""


@dataclass(frozen=True)
class Row:
    """One caption of a run."""

    id: str
    caption: str
    scores: list[float | None]
    references: list[str] = field(default_factory=list)
    media: str | None = None
    verdict: str | None = None
    reasons: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    """What explains it to what is said."""
    failures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunContent:
    """All of a run; the rows come one by one."""

    metrics: list[MetricFacts]
    rows: Iterator[Row]
    errors: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def kind_of(path: Path) -> Kind | None:
    """Return what a path holds, by its beginning; None for anything that is no run."""
    if path.is_dir():
        return "shards" if any(not file.name.startswith(".") for file in path.glob("*.parquet")) else None
    if path.suffix != ".json":
        return None
    with path.open("rb") as file:
        head = file.read(400)
    return next((kind for kind, beginning in _BEGINNINGS.items() if beginning.match(head)), None)


def read_run(path: Path, kind: Kind) -> RunContent:
    """Read a run."""
    if kind == "shards":
        return _shards(path)
    content = read_json(path)
    return _scored(content) if kind == "score" else _checked(content)


def stored_report(path: Path, kind: Kind) -> Report:
    """Return a run as a report that can be compared."""
    if kind == "shards":
        return _report_of_shards(ShardReport.open(path))
    if kind == "check":
        raise InputError("verdicts are not compared", where=path.name, remedy="choose runs of `caplens score`")
    return report_of(read_json(path), path.name)


def _scored(content: Mapping[str, Any]) -> RunContent:
    entries: dict[str, Any] = content["metrics"]
    metrics = [
        MetricFacts(
            name=name,
            label=entry["label"],
            percent=entry["shown_as_percent"],
            higher_is_better=entry["higher_is_better"],
            score=entry["score"],
            interval=None if entry["interval"] is None else tuple(entry["interval"]),
            signature=entry["signature"],
            notes=entry["notes"],
            histogram=_histogram(np.array(entry["scores"], dtype=np.float64)),
        )
        for name, entry in entries.items()
    ]
    return RunContent(metrics, _scored_rows(content, entries), content["errors"])


def _scored_rows(content: Mapping[str, Any], entries: Mapping[str, Any]) -> Iterator[Row]:
    ids = content["ids"]
    nothing = [None] * len(ids)
    columns = zip(
        ids,
        content["candidates"],
        content.get("references") or nothing,
        content.get("images") or content.get("videos") or nothing,
        strict=True,
    )
    explaining = {name: entry for name, entry in entries.items() if "details" in entry}
    for row, (name, caption, references, media) in enumerate(columns):
        details = {entry["label"]: readable_details(entry["details"], row) for entry in explaining.values()}
        yield Row(
            id=name,
            caption=caption,
            scores=[entry["scores"][row] for entry in entries.values()],
            references=references or [],
            media=media,
            details={label: found for label, found in details.items() if found},
            failures={
                entry["label"]: entry["failures"][name] for entry in entries.values() if name in entry["failures"]
            },
        )


def _checked(content: Mapping[str, Any]) -> RunContent:
    rows = (
        Row(
            id=row["id"],
            caption=row["text"],
            scores=[],
            media=row["image"],
            verdict=row["verdict"],
            reasons=row["reasons"],
        )
        for row in content["rows"]
    )
    return RunContent([], rows, notes=content["notes"])


def _shards(folder: Path) -> RunContent:
    report = ShardReport.open(folder)
    metrics = [
        MetricFacts(
            name=name,
            label=total.metric.label,
            percent=total.metric.shown_as_percent,
            higher_is_better=total.metric.higher_is_better,
            score=None if np.isnan(total.score) else total.score,
            interval=report.intervals.get(name),
            signature=total.signature,
            notes=list(total.notes),
            histogram=_histogram(np.concatenate(list(report.scores(name)))),
        )
        for name, total in report.totals.items()
    ]
    return RunContent(metrics, _shard_rows(report), dict(report.errors), report.notes())


def _shard_rows(report: ShardReport) -> Iterator[Row]:
    """An id that stands in several shards is told apart by its shard."""
    names = list(report.totals)
    seen: set[str] = set()
    for shard in report.shards:
        scores = np.column_stack([shard.scores(name) for name in names])
        texts = (shard.texts(column) for column in ("id", "caption", "picture"))
        for (name, caption, picture), row in zip(zip(*texts, strict=True), scores, strict=True):
            name = f"{shard.summary.shard}: {name}" if name in seen else str(name)
            seen.add(name)
            yield Row(
                name, caption or "", [None if np.isnan(score) else score for score in row.tolist()], media=picture
            )


def _report_of_shards(shards: ShardReport) -> Report:
    rows = list(_shard_rows(shards))
    report = Report(CaptionSet([row.id for row in rows], [row.caption for row in rows], source=shards.folder.name))
    for name, total in shards.totals.items():
        report.add(
            Result(
                name=name,
                score=total.score,
                scores=np.concatenate(list(shards.scores(name))),
                signature=total.signature,
                statistics=np.concatenate([shard.statistics(name) for shard in shards.shards]),
                metric=total.metric,
            )
        )
    return report


def _histogram(scores: Floats) -> list[tuple[float, float, int]]:
    return [(bar.low, bar.high, bar.count) for bar in bars(scores)]
