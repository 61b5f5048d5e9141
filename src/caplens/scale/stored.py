"""The results of one shard as a parquet file: a row per caption, and a summary in the file's metadata.

    id | caption | picture | cider-d | cider-d.failure | bleu-4 | bleu-4.failure | bleu-1.statistics.0 | …

Statistics that are the score itself are not stored twice, nor are those that several metrics share.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caplens.core.errors import InputError
from caplens.core.optional import check, require
from caplens.core.sums import exact_parts
from caplens.core.types import Floats
from caplens.metrics.base import Result
from caplens.storage.atomic import atomic_path

FORMAT = "caplens-shard-1"
_KEY = b"caplens"
PURPOSE = "results of shards"


@dataclass(frozen=True)
class MetricSummary:
    """What one metric found in one shard."""

    name: str
    """What it is asked for by: a metric's name, or ``file.py:Class``."""
    options: dict[str, Any]
    """Those options that json can hold; the score of a set may depend on them."""
    signature: str
    identity: str
    statistics: list[str]
    """The columns of its statistics, in their order."""
    scored: int
    """Captions that have a score."""
    sums: list[list[float]]
    """The sum of every column of statistics, in parts that add up exactly (`core.sums`)."""
    notes: list[str]


@dataclass(frozen=True)
class ShardSummary:
    """What was read, and what came out."""

    shard: str
    location: str
    digest: str
    rows: int
    reading: str
    """How the shard was read: columns, references, folders."""
    metrics: dict[str, MetricSummary]
    format: str = FORMAT

    @property
    def run(self) -> Run:
        """What all shards of a run share."""
        return Run(self.reading, tuple((name, metric.identity) for name, metric in self.metrics.items()))


class Run(NamedTuple):
    """How shards are read and scored; results of one run add up."""

    reading: str
    metrics: tuple[tuple[str, str], ...]
    """Names and identities."""


def summarize(result: Result, name: str, identity: str, columns: Sequence[str]) -> MetricSummary:
    """Return the summary of a metric's result on a shard."""
    usable = result.statistics[~np.isnan(result.statistics).any(axis=1)]
    return MetricSummary(
        name=name,
        options=result.metric.plain_options(),
        signature=result.signature,
        identity=identity,
        statistics=list(columns),
        scored=len(usable),
        sums=exact_parts(usable),
        notes=list(result.notes),
    )


def statistics_columns(results: Sequence[Result]) -> tuple[dict[str, list[str]], dict[str, Floats]]:
    """Return the names of each metric's columns of statistics, and the columns that are not scores already."""
    names: dict[str, list[str]] = {}
    stored: dict[str, Floats] = {}
    owners: list[Result] = []
    for result in results:
        rows = result.statistics
        if rows.shape[1] == 1 and np.array_equal(rows[:, 0], result.scores, equal_nan=True):
            names[result.name] = [result.name]
            continue
        owner = next((known for known in owners if known.statistics is rows), None)
        if owner is not None:
            names[result.name] = names[owner.name]
            continue
        owners.append(result)
        names[result.name] = [f"{result.name}.statistics.{column}" for column in range(rows.shape[1])]
        stored |= {name: rows[:, column] for column, name in enumerate(names[result.name])}
    return names, stored


def write_rows(
    path: Path, texts: Mapping[str, Sequence[str | None]], numbers: Mapping[str, Floats], summary: ShardSummary
) -> None:
    """Write the results of a shard, whole or not at all."""
    pyarrow = require("pyarrow", purpose=PURPOSE)
    write_table = require("pyarrow.parquet:write_table", purpose=PURPOSE)
    columns = {name: _text_column(column) for name, column in texts.items()}
    columns |= {name: _number_column(column) for name, column in numbers.items()}
    table = pyarrow.Table.from_arrays(list(columns.values()), list(columns))
    about = json.dumps(asdict(summary)).encode()
    try:
        with atomic_path(path) as temporary:
            write_table(table.replace_schema_metadata({_KEY: about}), temporary, compression="zstd")
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror or error})",
            where=str(path),
            remedy="make room and run the same command again: finished shards are kept",
        ) from None


# `pyarrow.array` would import pandas, to see whether it was given something of it: 30 MB in every worker.
def _text_column(texts: Sequence[str | None]) -> Any:
    builder = require("pyarrow.lib:StringBuilder", purpose=PURPOSE)()
    builder.append_values(texts)
    return builder.finish()


def _number_column(numbers: Floats) -> Any:
    pyarrow = require("pyarrow", purpose=PURPOSE)
    values = pyarrow.py_buffer(np.ascontiguousarray(numbers, np.float64))
    return pyarrow.Array.from_buffers(pyarrow.float64(), len(numbers), [None, values])


def read_summary(path: Path) -> ShardSummary:
    """Return the summary of a file of results; anything else is refused."""
    pyarrow = require("pyarrow", purpose=PURPOSE)
    read_schema = require("pyarrow.parquet:read_schema", purpose=PURPOSE)
    try:
        about = json.loads((read_schema(path).metadata or {})[_KEY])
        if about["format"] != FORMAT:
            raise ValueError(about["format"])
        metrics = {name: MetricSummary(**entry) for name, entry in about.pop("metrics").items()}
        return ShardSummary(metrics=metrics, **about)
    except (OSError, pyarrow.ArrowException, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"holds no results of `caplens score` ({type(error).__name__})",
            where=str(path),
            remedy="delete it, or name another folder",
        ) from None


@dataclass(frozen=True)
class StoredShard:
    """A file of results: its summary, and its columns when they are asked for."""

    path: Path
    summary: ShardSummary

    @classmethod
    def open(cls, path: Path) -> StoredShard:
        return cls(path, read_summary(path))

    def scores(self, metric: str) -> Floats:
        """Return the score of every caption, NaN where there is none."""
        return self._matrix([metric])[:, 0]

    def statistics(self, metric: str) -> Floats:
        """Return the statistics of every caption."""
        return self._matrix(self.summary.metrics[metric].statistics)

    def texts(self, column: str) -> list[str | None]:
        """Return a column of texts."""
        texts: list[str | None] = self._read([column]).column(0).to_pylist()
        return texts

    def _matrix(self, names: Sequence[str]) -> Floats:
        return np.column_stack([column.to_numpy() for column in self._read(names).columns])

    def _read(self, names: Sequence[str]) -> Any:
        return require("pyarrow.parquet:read_table", purpose=PURPOSE)(self.path, columns=list(names), use_threads=False)


def stored_shards(folder: Path) -> list[StoredShard]:
    """Return the results that a folder holds, by name."""
    check("pyarrow", purpose=PURPOSE)
    files = sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))
    if not files:
        raise InputError(
            "holds no results", where=str(folder), remedy="`caplens score SHARDS --output FOLDER` writes some"
        )
    return [StoredShard.open(path) for path in files]
