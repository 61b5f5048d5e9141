"""Keep the best rows of image-text data: `caplens filter`. One pass scores, one writes what is kept."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.core.plain_json import json_pieces
from caplens.core.progress import Progress, silent
from caplens.core.tables import Table
from caplens.core.types import Floats
from caplens.evaluation.tabular import Tabular
from caplens.metrics import canonical_name, find_metric
from caplens.readers.columns import ColumnChoice
from caplens.scale.duplicates import hash_texts, repeated_hashes
from caplens.scale.engines import Engine, make_engine
from caplens.scale.evaluate import evaluate_shards
from caplens.scale.kept import LAYOUTS, KeptRows, WriteKept, write_uids
from caplens.scale.results import ShardReport
from caplens.scale.shards import find_shards, refuse_folder_of
from caplens.scale.stored import StoredShard
from caplens.storage.atomic import atomic_path

AnyPath = str | os.PathLike[str]
Mask = NDArray[np.bool_]
_COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_CONDITION = re.compile(r"\s*([\w.-]+)\s*(>=|<=|>|<)\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*")
_SCORES = "scores"
"""The folder in the output where the scores are, unless another is named."""


@dataclass(frozen=True)
class Condition:
    """What a row must fulfill: a metric's score on one side of a threshold."""

    metric: str
    comparison: str
    threshold: float

    def __str__(self) -> str:
        return f"{self.metric} {self.comparison} {self.threshold:.6g}"

    def holds(self, scores: Floats) -> Mask:
        """Say which scores fulfill it; a caption without a score does not."""
        return np.asarray(_COMPARISONS[self.comparison](scores, self.threshold))


@dataclass(frozen=True)
class FilterReport(Tabular):
    """What a filter kept."""

    rows: int
    kept: int
    unscored: int
    duplicates: int
    """Rows whose picture and caption an earlier row has; without pictures, whose caption."""
    dropped_duplicates: int
    conditions: tuple[Condition, ...]
    output: str
    scores: ShardReport
    errors: Mapping[str, str]

    def table(self) -> Table:
        """Return the counts, one per row."""
        share = self.kept / self.rows if self.rows else 0.0
        duplicates = "dropped where they would be kept" if self.dropped_duplicates else "counted"
        return Table(
            ("rows", "number", "remark"),
            [
                ["read", f"{self.rows:,}", ""],
                ["kept", f"{self.kept:,}", f"{share:.2%}, {' and '.join(map(str, self.conditions))}"],
                ["without a score", f"{self.unscored:,}", "not kept"],
                ["repeated", f"{self.duplicates:,}", f"same picture and caption as an earlier row; {duplicates}"],
            ],
            ("number",),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "rows": self.rows,
            "kept": self.kept,
            "unscored": self.unscored,
            "duplicates": self.duplicates,
            "dropped_duplicates": self.dropped_duplicates,
            "conditions": [
                {"metric": one.metric, "comparison": one.comparison, "threshold": one.threshold}
                for one in self.conditions
            ],
            "output": self.output,
            "errors": dict(self.errors),
            "scores": self.scores.to_dict(),
        }

    def to_json(self, path: AnyPath) -> None:
        """Write `to_dict` as a json file."""
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json_pieces(self.to_dict()))
            file.write("\n")

    def to_html(self, path: AnyPath, title: str = "") -> None:
        """Write the page of the scores, with the thresholds and what was kept."""
        from caplens.scale.page import write_page

        facts = [(cells[0], cells[1], cells[2]) for cells in self.table().rows]
        write_page(self.scores, path, title or Path(self.output).name, facts)


def filter_shards(
    paths: AnyPath | Sequence[AnyPath],
    *,
    output: AnyPath,
    keep: str | None = None,
    top: str | None = None,
    metric: str | None = None,
    to: str | None = None,
    scores: AnyPath | None = None,
    deduplicate: bool = False,
    engine: str | Engine = "local",
    workers: int | None = None,
    gpus_per_worker: float = 0,
    allow_urls: bool = False,
    progress: Progress = silent,
    **reading_and_options: Any,
) -> FilterReport:
    """Write the rows of shards whose scores are good enough.

    Args:
        paths: the shards, as `evaluate_shards` takes them.
        output: a folder for what is kept, a file per shard; with ``to="uids"`` one .npy file.
        keep: conditions such as ``"pac-s >= 0.3 and length < 60"``.
        top: keep this share, such as ``"30%"``, of the rows that have a score of `metric`; rows that tie with the last
            of them are kept, too.
        metric: the metric of `top`.
        to: ``parquet``, ``webdataset`` or ``uids`` (DataComp's); by default a tar gives a tar and all else parquet.
        scores: a folder of scores to go on from; by default ``scores`` inside the output.
        deduplicate: of rows with equal picture and caption, keep the first.
        reading_and_options: what else `evaluate_shards` takes.
    """
    if to is not None and to not in LAYOUTS:
        raise InputError(f"nothing can be written as {to!r}", remedy=f"take {', '.join(LAYOUTS)}")
    if (keep is None) == (top is None):
        raise InputError("a filter needs one of keep and top", remedy='write --keep "pac-s >= 0.3" or --top 30%')
    conditions = [] if keep is None else parse_conditions(keep)
    if top is not None and metric is None:
        raise InputError("top of what?", remedy="name one metric: --metrics pac-s")
    share = None if top is None else _parse_share(top)
    names = list(dict.fromkeys([*(one.metric for one in conditions), *([metric] if metric else [])]))
    output = Path(output)
    folder = Path(scores) if scores is not None else (output.parent if to == "uids" else output) / _SCORES
    found = {shard.name: shard for shard in find_shards(paths, allow_urls=allow_urls)}
    refuse_folder_of([*found.values()], output)
    runner = make_engine(engine, workers, gpus_per_worker)
    report = evaluate_shards(
        paths, names, output=folder, engine=runner, allow_urls=allow_urls, progress=progress, **reading_and_options
    )
    if share is not None:
        conditions = [top_condition(report, find_metric(cast(str, metric)).name, share)]
    choosing = _Choosing(report.shards, conditions, deduplicate)
    errors = dict(report.errors)
    if to == "uids":
        write_uids(output, choosing.kept_ids())
    else:
        choice = ColumnChoice(
            reading_and_options.get("caption_column"),
            reading_and_options.get("image_column"),
            reading_and_options.get("id_column"),
        )
        work = WriteKept(output, cast(Any, to), choice)
        tasks = [
            KeptRows(found[stored.summary.shard], len(mask), np.packbits(mask).tobytes())
            for stored, mask in choosing.masks()
        ]
        with runner.start(len(tasks)) as pool:
            for number, done in enumerate(pool.map(work, tasks), 1):
                progress("shards written", number, len(tasks))
                if done.error:
                    errors[done.shard.location] = done.error
    return FilterReport(
        rows=len(report),
        kept=choosing.kept,
        unscored=choosing.unscored,
        duplicates=choosing.duplicates,
        dropped_duplicates=choosing.dropped,
        conditions=tuple(conditions),
        output=str(output),
        scores=report,
        errors=errors,
    )


class _Choosing:
    """Goes through stored scores and says which rows are kept."""

    def __init__(self, shards: Sequence[StoredShard], conditions: Sequence[Condition], deduplicate: bool) -> None:
        self._shards, self._conditions, self._deduplicate = shards, conditions, deduplicate
        total = sum(shard.summary.rows for shard in shards)
        self.duplicates, repeated = repeated_hashes(lambda: map(_content, shards), total)
        self._repeated = np.sort(repeated)
        self.kept = self.unscored = self.dropped = 0

    def masks(self) -> Iterator[tuple[StoredShard, Mask]]:
        """Yield every shard with which of its rows are kept; counts as it goes."""
        seen: set[int] = set()
        for shard in self._shards:
            mask = np.ones(shard.summary.rows, bool)
            scored = np.ones(shard.summary.rows, bool)
            for condition in self._conditions:
                scores = shard.scores(condition.metric)
                scored &= ~np.isnan(scores)
                mask &= condition.holds(scores)
            if self._deduplicate and len(self._repeated):
                content = _content(shard)
                for row in np.flatnonzero(mask & np.isin(content, self._repeated)).tolist():
                    value = int(content[row])
                    mask[row] = value not in seen
                    self.dropped += value in seen
                    seen.add(value)
            self.unscored += int((~scored).sum())
            self.kept += int(mask.sum())
            yield shard, mask

    def kept_ids(self) -> Iterator[str]:
        for shard, mask in self.masks():
            ids = shard.texts("id")
            yield from (str(ids[row]) for row in np.flatnonzero(mask).tolist())


def _content(shard: StoredShard) -> NDArray[np.uint64]:
    """What tells rows apart: the picture, where it was read, and the caption."""
    captions, pictures = shard.texts("caption"), shard.texts("picture")
    return hash_texts(f"{picture or ''} {caption}" for picture, caption in zip(pictures, captions, strict=True))


def parse_conditions(text: str) -> list[Condition]:
    """Read conditions with "and" between.

    >>> [str(condition) for condition in parse_conditions("pac-s >= 0.3 and length < 60")]
    ['pac-s >= 0.3', 'length < 60']
    """
    conditions = []
    for part in re.split(r"\band\b", text):
        found = _CONDITION.fullmatch(part)
        try:
            if found is None:
                raise ValueError
            conditions.append(Condition(canonical_name(find_metric(found[1]).name), found[2], float(found[3])))
        except ValueError:
            raise InputError(
                f"{part.strip()[:60]!r} is no condition", remedy='write METRIC >= NUMBER, such as "pac-s >= 0.3"'
            ) from None
    return conditions


def _parse_share(text: str) -> float:
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", text)
    if found is None or not 0 < float(found[1]) <= 100:
        raise InputError(f"{text[:20]!r} is no share", remedy="write it as 30%")
    return float(found[1]) / 100


def top_condition(report: ShardReport, metric: str, share: float) -> Condition:
    """Return the threshold that this share of the scored rows reaches, exactly."""
    total = report[metric]
    count = round(share * total.scored)
    if not count:
        raise InputError(f"{share:%} of {total.scored:,} rows with a score are none")
    if total.metric.higher_is_better:
        return Condition(metric, ">=", _nth_largest(lambda: report.scores(metric), count))
    return Condition(metric, "<=", -_nth_largest(lambda: (-scores for scores in report.scores(metric)), count))


def _nth_largest(parts: Any, count: int) -> float:
    """The value that `count` values reach, NaN left out: 16 bits at a time, so that few numbers are held.

    >>> _nth_largest(lambda: [np.array([0.5, -1.0, np.nan]), np.array([2.0, 0.0])], 3)
    0.0
    """
    prefix, left = np.uint64(0), count
    for shift in (48, 32, 16, 0):
        counts = np.zeros(1 << 16, np.int64)
        for scores in parts():
            keys = _ordered(scores[~np.isnan(scores)])
            if shift < 48:
                keys = keys[keys >> np.uint64(shift + 16) == prefix]
            counts += np.bincount((keys >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64), minlength=1 << 16)
        reached = np.cumsum(counts[::-1])
        place = int(np.searchsorted(reached, left))
        left -= int(reached[place - 1]) if place else 0
        prefix = (prefix << np.uint64(16)) | np.uint64((1 << 16) - 1 - place)
    return float(_from_ordered(prefix))


_SIGN = np.uint64(1 << 63)


def _ordered(values: Floats) -> NDArray[np.uint64]:
    """Whole numbers in the order of the values; -0 counts as 0."""
    bits = (values + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _from_ordered(key: np.uint64) -> float:
    bits = key & ~_SIGN if key & _SIGN else ~key
    return float(np.array([bits], np.uint64).view(np.float64)[0])
