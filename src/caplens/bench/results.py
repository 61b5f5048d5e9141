"""What a run found: figures of metrics on sets, beside those in print."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.bench.agreement import Estimate
from caplens.bench.base import RatingSet, Task
from caplens.bench.published import Comparison, Status
from caplens.bench.statistics import AgreementStatistic, Scored
from caplens.core.optional import require
from caplens.core.tables import Table
from caplens.evaluation.plots import Panel, Point
from caplens.evaluation.tabular import Plottable
from caplens.storage.atomic import write_atomically

if TYPE_CHECKING:
    import pandas

LEVEL = 0.05


@dataclass(frozen=True)
class Measurement:
    """One figure of one metric."""

    figure: AgreementStatistic
    metric: str
    label: str
    """What tables call the metric: its name, and the encoder where it is not the paper's."""
    estimate: Estimate
    used: int
    """Rows or pairs that could be scored, of `figure.count`."""
    comparisons: tuple[Comparison, ...]
    draws: tuple[float, ...] = ()
    """The value of each reference draw, where there are several."""
    cluster: int | None = None

    @property
    def status(self) -> Status:
        """Reproduced as soon as one figure in print is met; papers print the same figure differently."""
        if not self.comparisons:
            return "not published"
        met = any(comparison.status == "reproduced" for comparison in self.comparisons)
        return "reproduced" if met else "not reproduced"

    @property
    def nearest(self) -> Comparison | None:
        """Return the figure in print that ours is nearest to, one that it reproduces before one that it does not."""
        return min(
            self.comparisons,
            key=lambda entry: (entry.status != "reproduced", abs(entry.difference) / entry.published.scale),
            default=None,
        )

    @property
    def in_print(self) -> str:
        """The nearest figure in print, on the scale that this one is shown on; nothing where none is."""
        return "" if self.nearest is None else self.shown(self.nearest.published.value / self.nearest.published.scale)

    @property
    def remark(self) -> str:
        """Whether it is reproduced and, if not, how far off it is, on the scale that it is shown on."""
        if self.nearest is None or self.status != "not reproduced":
            return self.status
        off = self.nearest.difference / self.nearest.published.scale * self.figure.scale
        return f"not reproduced ({off:+.{self.figure.digits}f})"

    def shown(self, value: float) -> str:
        """A value of this figure as people read it."""
        return f"{value * self.figure.scale:.{self.figure.digits}f}"

    @property
    def interval(self) -> str:
        """The 95 % interval as people read it; nothing where nothing was resampled."""
        low, high = self.estimate.low, self.estimate.high
        return "" if np.isnan(low) else f"{self.shown(low)} to {self.shown(high)}"

    def point(self) -> Point:
        """Return it for a plot, on the scale that it is shown on."""
        found = self.estimate
        return Point(self.metric, found.value, (found.low, found.high), self.cluster).times(self.figure.scale)

    def cells(self) -> list[str]:
        """Return metric, value, interval, cluster, rows, figure in print and status, for a table."""
        return [
            self.label,
            self.shown(self.estimate.value),
            self.interval,
            "" if self.cluster is None else str(self.cluster),
            f"{self.used:,}" + ("" if self.used == self.figure.count else f" of {self.figure.count:,}"),
            self.in_print,
            self.remark,
        ]

    def to_dict(self) -> dict[str, Any]:
        scale = self.figure.scale
        return {
            "figure": self.figure.key,
            "metric": self.metric,
            "value": _number(self.estimate.value * scale),
            "low": _number(self.estimate.low * scale),
            "high": _number(self.estimate.high * scale),
            "rows": self.used,
            "of": self.figure.count,
            "cluster": self.cluster,
            "draws": [value * scale for value in self.draws],
            "status": self.status,
            "published": [
                {
                    "value": comparison.published.value,
                    "source": comparison.published.source,
                    "difference": _number(comparison.difference),
                    "tolerance": comparison.published.tolerance,
                    "status": comparison.status,
                }
                for comparison in self.comparisons
            ],
        }


@dataclass
class SetReport:
    """Everything measured on one set."""

    rating_set: RatingSet
    task: Task
    scored: dict[str, Scored] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    measured: list[Measurement] = field(default_factory=list)
    p_values: dict[tuple[str, str, str], float] = field(default_factory=dict)
    """(figure, better, worse) to p, for the pairs that clusters needed."""

    def of(self, figure: str) -> list[Measurement]:
        """One figure's metrics, best first; NaN last."""
        rows = [row for row in self.measured if row.figure.key == figure]
        return sorted(
            rows, key=lambda row: -np.inf if np.isnan(row.estimate.value) else row.estimate.value, reverse=True
        )

    def value(self, figure: str, metric: str) -> float:
        """One figure, in the units printed."""
        for row in self.measured:
            if row.figure.key == figure and row.metric == metric:
                return row.estimate.value * row.figure.scale
        raise KeyError(f"{metric} has no {figure} on {self.rating_set.name}")

    def differences(self) -> list[str]:
        """Why figures are not those in print: a line per source and reason, with the metrics it holds for."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for row in self.measured:
            for comparison in row.comparisons:
                if comparison.status == "not reproduced":
                    printed = comparison.published
                    metrics = reasons.setdefault((printed.source, printed.remark or printed.why), [])
                    if row.metric not in metrics:
                        metrics.append(row.metric)
        return [f"{', '.join(metrics)}, {source}: {reason}" for (source, reason), metrics in sorted(reasons.items())]

    def to_dict(self) -> dict[str, Any]:
        return {
            "set": self.rating_set.name,
            "title": self.rating_set.title,
            "protocol": self.rating_set.protocol,
            "signature": self.task.signature,
            "notes": list(self.task.notes),
            "images": self.task.units,
            "metrics": {name: scored.signature for name, scored in self.scored.items()},
            "skipped": dict(self.skipped),
            "figures": [row.to_dict() for row in self.measured],
            "differences": self.differences(),
            "p_values": [
                {"figure": figure, "better": better, "worse": worse, "p": p}
                for (figure, better, worse), p in self.p_values.items()
            ],
        }


TABLE = ("set", "figure", "metric", "value", "95 % interval", "cluster", "rows", "in print", "status")


@dataclass
class BenchReport(Plottable):
    """What a run of several sets found."""

    sets: list[SetReport]
    missing: dict[str, str]
    """Set to reason, for sets that could not be run: most often, their files are not here."""
    resamples: int
    permutations: int
    seed: int

    def __getitem__(self, name: str) -> SetReport:
        for report in self.sets:
            if report.rating_set.name == name:
                return report
        raise KeyError(self.missing.get(name, f"{name} was not run"))

    def table(self) -> Table:
        """Return one row per set, figure and metric, the best metric of each figure first."""
        rows = []
        for part in self.sets:
            for figure in part.task.figures:
                label = f"{figure.label} ×{figure.scale:g}" if figure.scale != 1 else figure.label
                rows += [[part.rating_set.name, label, *row.cells()] for row in part.of(figure.key)]
        return Table(TABLE, rows, ("value", "95 % interval", "cluster", "rows", "in print"))

    def panels(self) -> list[Panel]:
        """Return one panel per set and headline figure, the best metric on top, with a line between rank clusters."""
        return [
            Panel(
                f"{part.rating_set.title}: {figure.label}" + (f" ×{figure.scale:g}" if figure.scale != 1 else ""),
                [row.point() for row in part.of(figure.key)],
            )
            for part in self.sets
            for figure in part.task.figures
            if figure.headline
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row per set, figure and metric, as numbers."""
        pandas = require("pandas", purpose="to_pandas")
        columns = ("figure", "metric", "value", "low", "high", "rows", "of", "cluster", "status")
        rows = [(part.rating_set.name, row.to_dict()) for part in self.sets for row in part.measured]
        return pandas.DataFrame([{"set": name, **{key: entry[key] for key in columns}} for name, entry in rows])

    def to_dict(self) -> dict[str, Any]:
        return {
            "resamples": self.resamples,
            "permutations": self.permutations,
            "seed": self.seed,
            "level": LEVEL,
            "missing": dict(self.missing),
            "sets": [report.to_dict() for report in self.sets],
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        write_atomically(path, json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False) + "\n")

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """One self-contained page with plots."""
        from caplens.bench.page import render

        write_atomically(path, render(self))


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
