"""What a folder of stored shards adds up to: corpus scores and intervals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from caplens.core.errors import InputError
from caplens.core.plain_json import json_pieces
from caplens.core.signature import merge_signatures
from caplens.core.sums import add_parts
from caplens.core.tables import Table, show_interval, show_number
from caplens.core.types import Floats
from caplens.evaluation.resampling import bootstrap_sums, interval
from caplens.evaluation.results import MANY, SCORE_NUMBERS
from caplens.evaluation.tabular import Tabular
from caplens.metrics import load_metric
from caplens.metrics.base import Metric
from caplens.scale.duplicates import repeated
from caplens.scale.stored import StoredShard, stored_shards
from caplens.storage.atomic import atomic_path

GROUPS = 1000
"""Of many captions, so many groups are drawn again and not single captions; the interval is as wide."""
RESAMPLES, SEED = 1000, 12345
MOST_NOTES = 5


@dataclass(frozen=True)
class MetricTotal:
    """One metric over all shards."""

    name: str
    metric: Metric
    score: float
    signature: str
    scored: int
    captions: int
    notes: tuple[str, ...]

    @property
    def shown_count(self) -> str:
        """How many captions the score stands on."""
        return f"{self.captions:,}" if self.scored == self.captions else f"{self.scored:,} of {self.captions:,}"


@dataclass
class ShardReport(Tabular):
    """The results of a run over shards, read from its folder as far as they are asked for."""

    folder: Path
    shards: list[StoredShard]
    errors: Mapping[str, str] = field(default_factory=dict)
    """Shard to reason, for those that could not be scored."""
    fresh: int = 0
    """Shards that were computed now, not found finished."""

    @classmethod
    def open(cls, folder: str | os.PathLike[str], names: Iterable[str] | None = None, **rest: Any) -> ShardReport:
        """Read the summaries of a folder, or of some shards in it; results of several runs do not add up."""
        folder = Path(folder)
        known = stored_shards(folder)
        wanted = None if names is None else set(names)
        shards = [shard for shard in known if wanted is None or shard.summary.shard in wanted]
        for shard in shards[1:]:
            if shard.summary.run != shards[0].summary.run:
                raise InputError(
                    f"{shard.path.name} and {shards[0].path.name} hold results of different runs",
                    where=str(folder),
                    remedy="put each run into a folder of its own",
                )
        return cls(folder, shards, **rest)

    def __len__(self) -> int:
        return sum(shard.summary.rows for shard in self.shards)

    def __getitem__(self, name: str) -> MetricTotal:
        return self.totals[name]

    @cached_property
    def totals(self) -> dict[str, MetricTotal]:
        """Every metric over all shards, from the sums that each has kept."""
        return {name: self._total(name) for name in self.shards[0].summary.metrics}

    def _total(self, name: str) -> MetricTotal:
        parts = [(shard.summary, shard.summary.metrics[name]) for shard in self.shards]
        first = parts[0][1]
        metric = load_metric(first.name, **first.options)
        scored = sum(part.scored for _, part in parts)
        sums = add_parts(part.sums for _, part in parts)
        notes = [f"{summary.shard}: {note}" for summary, part in parts for note in part.notes]
        if len(notes) > MOST_NOTES:
            notes = [*notes[:MOST_NOTES], f"{len(notes) - MOST_NOTES:,} more notes on other shards"]
        return MetricTotal(
            name=name,
            metric=metric,
            score=float(metric.corpus(sums, scored)) if scored else float("nan"),
            signature=merge_signatures([(part.signature, summary.rows) for summary, part in parts]),
            scored=scored,
            captions=len(self),
            notes=tuple(notes),
        )

    def scores(self, name: str) -> Iterator[Floats]:
        """Yield the scores of the captions, shard after shard."""
        return (shard.scores(name) for shard in self.shards)

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """95 % bootstrap intervals of the corpus scores, from the stored statistics."""
        found = {}
        drawn: dict[tuple[str, ...], Floats] = {}
        for name, total in self.totals.items():
            if total.scored > 1:
                columns = tuple(self.shards[0].summary.metrics[name].statistics)
                if columns not in drawn:  # metrics that share statistics share the draws
                    rows = _usable(shard.statistics(name) for shard in self.shards)
                    sums = np.concatenate(list(rows)) if total.scored <= MANY else _grouped(rows)
                    drawn[columns] = bootstrap_sums(sums, RESAMPLES, SEED)
                found[name] = interval(np.asarray(total.metric.corpus(drawn[columns], total.scored)))
        return found

    @cached_property
    def repeated_ids(self) -> tuple[int, list[str]]:
        """How many ids stand more than once, and the first few, each with its shards."""
        count, examples = repeated(lambda: (shard.texts("id") for shard in self.shards), len(self))
        return count, [
            f"{name!r} in {' and '.join(self.shards[place].summary.location for place in places)}"
            for name, places in examples
        ]

    def notes(self) -> list[str]:
        """Return what the reader should know about the shards as a whole."""
        count, examples = self.repeated_ids
        if not count:
            return []
        return [f"{count:,} ids stand in more than one row, such as {examples[0]}; every row was scored all the same"]

    def table(self) -> Table:
        """Return one row per metric: score, scale, interval, and how many captions it stands on."""
        rows = []
        for name, total in self.totals.items():
            percent, bounds = total.metric.shown_as_percent, self.intervals.get(name)
            rows.append(
                [
                    name,
                    show_number(total.score, percent),
                    "×100" if percent else "",
                    "" if bounds is None else show_interval(bounds, percent),
                    total.shown_count,
                ]
            )
        return Table(("metric", *SCORE_NUMBERS[:1], "scale", *SCORE_NUMBERS[1:]), rows, SCORE_NUMBERS)

    def to_dict(self) -> dict[str, Any]:
        """Return the totals and what is in which file; the scores of captions are in the files."""
        return {
            "captions": len(self),
            "folder": str(self.folder),
            "metrics": {
                name: {
                    "score": None if np.isnan(total.score) else total.score,
                    "interval": list(self.intervals[name]) if name in self.intervals else None,
                    "signature": total.signature,
                    "scored": total.scored,
                    "notes": list(total.notes),
                }
                for name, total in self.totals.items()
            },
            "shards": [
                {"shard": shard.summary.location, "results": shard.path.name, "captions": shard.summary.rows}
                for shard in self.shards
            ],
            "errors": dict(self.errors),
            "notes": self.notes(),
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` as a json file."""
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json_pieces(self.to_dict()))
            file.write("\n")

    def to_html(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write one self-contained page."""
        from caplens.scale.page import write_page

        write_page(self, path, title or self.folder.name)


def _usable(statistics: Iterable[Floats]) -> Iterator[Floats]:
    return (rows[~np.isnan(rows).any(axis=1)] for rows in statistics)


def _grouped(statistics: Iterable[Floats]) -> Floats:
    """The sums of `GROUPS` groups of captions, dealt out in turn, each as if it had the mean number of captions."""
    sums: Floats | None = None
    counts = np.zeros(GROUPS)
    passed = 0
    for rows in statistics:
        if sums is None:
            sums = np.zeros((GROUPS, rows.shape[1]))
        for start in range(0, len(rows), GROUPS):
            part = rows[start : start + GROUPS]
            group = (passed + np.arange(len(part))) % GROUPS  # each at most once
            sums[group] += part
            counts[group] += 1
            passed += len(part)
    assert sums is not None
    return np.asarray(sums * (counts.mean() / counts)[:, None])
