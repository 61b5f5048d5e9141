"""Report: the scores of every metric on one set of captions, as Python, json, a data frame or a page."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.core.captions import CaptionSet, media_name
from caplens.core.errors import CaplensWarning, InputError, MissingData, as_caplens_error
from caplens.core.optional import require
from caplens.core.plain_json import json_pieces
from caplens.core.tables import Table, show_interval, show_number
from caplens.evaluation.destinations import log_report
from caplens.evaluation.pages import render_page
from caplens.evaluation.plots import Panel, Point
from caplens.evaluation.resampling import bootstrap_sums, interval
from caplens.evaluation.several import Pictures, SeveralSummary, Which, chosen_rows, reduce_result
from caplens.evaluation.tabular import Plottable
from caplens.metrics import canonical_name
from caplens.metrics.base import Result
from caplens.storage.atomic import atomic_path, write_atomically

if TYPE_CHECKING:
    import pandas

    from caplens.vision.pictures import PictureReader

MANY = 20_000
SCORE_NUMBERS = ("score", "95 % interval", "captions")


class Report(Plottable):
    """Results by metric name, in the order they were asked for."""

    def __init__(self, captions: CaptionSet) -> None:
        self.captions = captions
        self.results: dict[str, Result] = {}
        self.errors: dict[str, str] = {}
        """Metric name to reason, for metrics that could not run."""
        self.pictures: PictureReader | None = None
        """What the metrics have read and decoded, for the page to show."""
        self._intervals: dict[tuple[int, int], dict[str, tuple[float, float]]] = {}

    def add(self, result: Result) -> None:
        self.results[result.name] = result
        self._intervals.clear()

    def __getitem__(self, name: str) -> Result:
        name = name if name in self.results or name in self.errors else canonical_name(name)
        if name in self.results:
            return self.results[name]
        if name in self.errors:
            raise MissingData(self.errors[name])
        raise KeyError(f"{name} was not computed; this report has: {', '.join(self.results)}")

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results.values())

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        shown = ", ".join(f"{result.name} {result.score:.4f}" for result in self)
        return f"<Report of {len(self.captions)} captions: {shown}>"

    def intervals(self, resamples: int = 1000, seed: int = 12345) -> dict[str, tuple[float, float]]:
        """95 % bootstrap intervals of the corpus scores; none for one caption, or for so many that it would take long.

        Above `MANY` captions the interval is narrower than the digits people print. Where pictures have several
        captions, it is pictures that are drawn.
        """
        if self.captions.groups is not None:
            return self.per_picture("mean").intervals(resamples, seed)
        if not 1 < len(self.captions) <= MANY:
            return {}
        if (resamples, seed) not in self._intervals:
            self._intervals[resamples, seed] = self._bootstrap(resamples, seed)
        return self._intervals[resamples, seed]

    def _bootstrap(self, resamples: int, seed: int) -> dict[str, tuple[float, float]]:
        usable = {result.name: ~np.isnan(result.statistics).any(axis=1) for result in self}
        by_rows: dict[bytes, list[Result]] = {}
        for result in self:  # metrics that were computed on the same captions share the draws
            if usable[result.name].any():
                by_rows.setdefault(usable[result.name].tobytes(), []).append(result)
        intervals = {}
        for results in by_rows.values():
            rows = usable[results[0].name]
            widths = [result.statistics.shape[1] for result in results]
            drawn = bootstrap_sums(np.hstack([result.statistics[rows] for result in results]), resamples, seed)
            parts = np.split(drawn, np.cumsum(widths)[:-1], axis=1)
            for result, sums in zip(results, parts, strict=True):
                try:
                    intervals[result.name] = interval(np.asarray(result.metric.corpus(sums, int(rows.sum()))))
                except Exception as error:  # a score without an interval is still a score
                    note = f"{result.name} has no interval: {as_caplens_error(error)}"
                    warnings.warn(note, CaplensWarning, stacklevel=4)
        return {result.name: intervals[result.name] for result in self if result.name in intervals}

    def table(self) -> Table:
        """Return one row per metric: score, scale, interval, and how many captions it stands on.

        Where pictures have several captions, that is the table of `several`.
        """
        if self.captions.groups is not None:
            return self.several().table()
        intervals = self.intervals()
        rows = []
        for result in self:
            percent, bounds = result.metric.shown_as_percent, intervals.get(result.name)
            rows.append(
                [
                    result.metric.label,
                    show_number(result.score, percent),
                    "×100" if percent else "",
                    "" if bounds is None else show_interval(bounds, percent),
                    show_count(result),
                ]
            )
        return Table(("metric", "score", "scale", "95 % interval", "captions"), rows, SCORE_NUMBERS)

    def panels(self) -> list[Panel]:
        """Return one panel for the metrics that people print times 100, one for the others."""
        intervals = self.intervals()
        panels = []
        for percent, title in ((True, "score ×100, 95 % interval"), (False, "score, 95 % interval")):
            scale = 100 if percent else 1
            points = [
                Point(result.name, result.score, intervals.get(result.name)).times(scale)
                for result in self
                if result.metric.shown_as_percent == percent
            ]
            panels.append(Panel(title, points))
        return panels

    def per_picture(self, which: Which = "mean", choose_by: str | None = None) -> Report:
        """Return a report with one row per picture, where pictures have several captions (`groups`).

        Args:
            which: ``mean`` over a picture's captions, the ``first`` of them, the ``best`` that a metric without
                references chooses, or the ``oracle``: for every metric the caption that it scores highest itself.
            choose_by: the metric that chooses the best; by default the first of this report without references.
        """
        pictures = Pictures.of(self.captions)
        chooser = self._chooser(choose_by) if which == "best" else None
        if which == "best" and chooser is None:
            raise MissingData("nothing can choose the best caption: add a metric without references, such as clip-s")
        rows = pictures.first() if chooser is None else chosen_rows(chooser, pictures, "best", chooser)
        reduced = Report(self.captions.take(rows.tolist()).named(pictures.names))
        reduced.errors.update(self.errors)
        reduced.pictures = self.pictures
        for result in self:
            reduced.add(reduce_result(result, pictures, which, chooser))
        return reduced

    def several(self, choose_by: str | None = None) -> SeveralSummary:
        """Return mean, first, best and oracle of every metric, where pictures have several captions."""
        chooser = self._chooser(choose_by)
        ways: tuple[Which, ...] = (
            ("mean", "first", "oracle") if chooser is None else ("mean", "first", "best", "oracle")
        )
        reports = {which: self.per_picture(which, choose_by) for which in ways}
        return SeveralSummary(
            pictures=len(reports["mean"].captions),
            captions=len(self.captions),
            chosen_by=None if chooser is None else chooser.name,
            results={which: report.results for which, report in reports.items()},
            intervals=reports["mean"].intervals(),
        )

    def _chooser(self, name: str | None) -> Result | None:
        if name is not None and canonical_name(name) not in self.results:
            raise InputError(f"{name} was not computed, so it cannot choose", remedy="add it to the metrics")
        if name is not None:
            return self[name]
        looking = (result for result in self if result.metric.needs and "references" not in result.metric.needs)
        return next(looking, None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values; NaN becomes None so that any json reader takes it."""
        everything = self.contents()
        for entry in everything["metrics"].values():
            if "details" in entry:
                entry["details"] = list(entry["details"])
        return everything

    def contents(self, choose_by: str | None = None) -> dict[str, Any]:
        """What `to_dict` has, for writing: details are worked out as they are read, and need not be held together."""
        intervals = self.intervals()
        return {
            "captions": len(self.captions),
            "ids": self.captions.ids,
            **_columns(self.captions),
            "metrics": {
                result.name: {
                    "label": result.metric.label,
                    "shown_as_percent": result.metric.shown_as_percent,
                    "higher_is_better": result.metric.higher_is_better,
                    "options": result.metric.plain_options(),
                    "score": _plain(result.score),
                    "interval": list(intervals[result.name]) if result.name in intervals else None,
                    "signature": result.signature,
                    "scores": [_plain(score) for score in result.scores.tolist()],
                    **_statistics(result),
                    "notes": list(result.notes),
                    "failures": {self.captions.ids[row]: reason for row, reason in result.failures.items()},
                    **({"details": result.details} if result.details is not None else {}),
                }
                for result in self
            },
            "errors": dict(self.errors),
            **(
                {}
                if self.captions.groups is None
                else {"groups": self.captions.groups, "several": self.several(choose_by).to_dict()}
            ),
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` as a json file."""
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json_pieces(self.contents()))
            file.write("\n")

    def to_pandas(self) -> pandas.DataFrame:
        """One row per caption: id, candidate, and a column per metric."""
        pandas = require("pandas", purpose="to_pandas")
        # As objects: a data frame's own text type refuses half characters, which captions may hold.
        pictures = {} if self.captions.groups is None else {"image_id": self.captions.groups}
        texts = {"id": self.captions.ids, **pictures, "candidate": self.captions.candidates}
        columns = {name: pandas.Series(column, dtype=object) for name, column in texts.items()}
        return pandas.DataFrame({**columns, **{result.name: result.scores for result in self}})

    def to_html(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write one self-contained page."""
        write_atomically(path, render_page(self, title or Path(path).stem))

    def log_to(self, destination: str, *, prefix: str = "", step: int | None = None, **options: Any) -> Any:
        """Log scores, signatures, the captions and the page to "wandb", "mlflow" or "tensorboard".

        Args:
            destination: the tool; wandb and mlflow log to the run under way, or to one of its own.
            prefix: put before every name, such as ``"validation/"``.
            step: the step of the training that was judged.
            options: of `wandb.init` or `mlflow.start_run`; for tensorboard, ``folder``.
        """
        return log_report(destination, self, prefix, step, **options)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _columns(captions: CaptionSet) -> dict[str, Any]:
    """What was judged, so that a report can be read again and looked at."""
    media = {"images": captions.images, "videos": captions.videos}
    return {
        "candidates": captions.candidates,
        **({} if captions.references is None else {"references": captions.references}),
        **{
            name: [None if entry is None else media_name(entry) for entry in column]
            for name, column in media.items()
            if column is not None
        },
    }


def _statistics(result: Result) -> dict[str, Any]:
    """What the score of the set is made of, where that is not the mean of the scores: for comparing reports later."""
    if np.array_equal(result.statistics, result.scores[:, None], equal_nan=True):
        return {}
    return {"statistics": [[_plain(value) for value in row] for row in result.statistics.tolist()]}


def show_count(result: Result) -> str:
    """Return how many captions the score stands on, and out of how many if some could not be scored."""
    total, failed = len(result.scores), len(result.failures)
    return f"{total:,}" if not failed else f"{total - failed:,} of {total:,}"
