"""Scores that were made elsewhere, held against people: `caplens bench SET --scores FILE`.

A row of the file names a picture or video and a caption, and has a number in one or more further columns; each of these
columns is measured as a metric would be. Higher means better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np

from caplens.bench.base import RatingSet, Task, find_sets
from caplens.bench.statistics import Scored, Trial
from caplens.core.errors import InputError, MissingData
from caplens.core.signature import Signature
from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric, Statistics
from caplens.readers.columns import ColumnChoice, find_columns, listed, plain_name
from caplens.readers.rows import shortened, shown
from caplens.readers.source import Source
from caplens.readers.strict_json import parse
from caplens.readers.table import Table, refuse_repeated
from caplens.storage.digests import content_digest
from caplens.storage.identity import Identity

SET_COLUMN = "set"
Key = tuple[str, str, str]
"""Set (empty where the file names none), picture, caption."""


class OutsideMetric(Metric):
    """A column of scores: what tables and tests have to know about it. It computes nothing."""

    needs = frozenset()
    paper = ""
    summary = "scores from a file"
    signature_keys: ClassVar[Mapping[str, str]] = {"scores": "the file of scores, with its sum"}

    def __init__(self, name: str, file: str, digest: str) -> None:
        self.name = name  # type: ignore[misc]  # every column is a metric of its own
        self.file = file
        self.digest = digest

    def statistics(self, work: Workspace) -> Statistics:
        raise MissingData(f"{self.name} is a column of {self.file}; its scores belong to the captions of a rating set")

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("scores", f"{self.file}@{self.digest[:12]}"),)

    def identity(self) -> Identity:
        return Identity.of(["outside scores", self.name, self.digest])


@dataclass(frozen=True)
class OutsideScores:
    """A file of scores, read."""

    path: Path
    metrics: tuple[OutsideMetric, ...]
    scores: Mapping[Key, Mapping[str, float]]

    @classmethod
    def read(cls, path: Path) -> OutsideScores:
        """Read json lines, or a table (csv, tsv); a caption that stands there with two scores is refused."""
        scores: dict[Key, dict[str, float]] = {}
        places: dict[Key, str] = {}
        names: dict[str, None] = {}
        for place, fields in _records(path):
            key, numbers = _row(place, fields)
            if scores.setdefault(key, numbers) != numbers:
                raise InputError(
                    f"the caption {shortened(key[2])} of {shortened(key[1])} has other scores in {places[key]}",
                    where=place,
                    remedy="keep one of the two rows; where two sets share it, name them in a column 'set'",
                )
            places.setdefault(key, place)
            names.update(dict.fromkeys(numbers))
        if not names:
            raise InputError("no column holds scores", where=str(path), remedy="add one with a number per caption")
        digest = content_digest(path)
        return cls(path, tuple(OutsideMetric(name, path.name, digest) for name in names), scores)

    def scored(self, metric: OutsideMetric, rating_set: RatingSet, task: Task) -> Scored:
        """Return the scores of one column for every trial of a set; captions without one are NaN."""
        if not task.pictures:
            raise MissingData("this set does not name its pictures, by which scores from a file are joined")
        known = self._of_set(rating_set.name, metric.name)
        signature = str(Signature.of(metric.name, metric.signature_parts(), metric.signature_keys))
        trials = []
        for captions, pictures in zip(task.trials, task.pictures, strict=True):
            keys = zip(pictures, captions.candidates, strict=True)
            scores = np.array([known.get((plain_picture(name), plain_text(text)), math.nan) for name, text in keys])
            trials.append(Trial(scores, scores.reshape(-1, 1), signature))
        if all(np.isnan(trial.scores).all() for trial in trials):
            raise MissingData(
                f"no row of {self.path.name} is about this set, which has {shortened(task.pictures[0][0])} with "
                f"{shortened(task.trials[0].candidates[0])}, for example"
            )
        return Scored(metric, trials)

    def _of_set(self, name: str, column: str) -> dict[tuple[str, str], float]:
        named = {given: not given or name in _sets_called(given) for given in {key[0] for key in self.scores}}
        return {
            (picture, caption): numbers[column]
            for (given, picture, caption), numbers in self.scores.items()
            if named[given] and column in numbers
        }


def plain_picture(name: str) -> str:
    """Return what a picture or video is called without folder and suffix.

    >>> plain_picture("Flickr8k_Dataset/909191414_1cf5d85821.jpg")
    '909191414_1cf5d85821'
    """
    return PurePosixPath(name.replace("\\", "/")).stem


def plain_text(text: str) -> str:
    """Return a caption with single spaces: files differ in them."""
    return " ".join(text.split())


def _sets_called(name: str) -> list[str]:
    try:
        return [found.name for found in find_sets([name])]
    except InputError:  # a set that is not one of ours: its rows are about other captions
        return []


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with Source(path) as source:
        if source.suffix in (".csv", ".tsv"):
            table = Table(source)
            refuse_repeated(table.header, source.name)
            yield from table.rows()
            return
        for number, line in source.lines():
            if line.strip():
                place = f"{source.name}, row {number}"
                fields = parse(line, place, source.limits)
                if not isinstance(fields, dict):
                    raise InputError(f"each line must be an object, not {shown(fields)}", where=place)
                yield place, fields


def _row(place: str, fields: dict[str, Any]) -> tuple[Key, dict[str, float]]:
    columns = find_columns(tuple(fields), ColumnChoice(), place)
    picture = columns.image or columns.video or columns.group or columns.id
    if picture is None or columns.caption is None:
        raise InputError(
            f"no picture or no caption, only {listed(list(fields))}",
            where=place,
            remedy="name the columns image (or video), caption, and what the scores are called",
        )
    rating_set = next((name for name in fields if plain_name(name) == SET_COLUMN), "")
    texts = [fields.get(name) or "" for name in (rating_set, picture, columns.caption)]
    if not all(isinstance(text, str | int) for text in texts):
        raise InputError("set, picture and caption must be texts", where=place)
    rating_set_name, picture_name, caption = map(str, texts)
    others = {name: cell for name, cell in fields.items() if name not in {*columns.names, rating_set}}
    numbers = {name: number for name, cell in others.items() if (number := _number(cell)) is not None}
    return (rating_set_name, plain_picture(picture_name), plain_text(caption)), numbers


def _number(cell: object) -> float | None:
    """The score in a cell; None where it holds none, or something else."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
