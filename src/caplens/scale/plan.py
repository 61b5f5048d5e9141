"""What every worker does with a shard: count it for idf, or score it and write its results."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensError, InputError
from caplens.core.workspace import Workspace
from caplens.metrics import load_metrics
from caplens.metrics.base import Metric, Result
from caplens.readers import read
from caplens.scale.shards import Shard
from caplens.scale.stored import Run, ShardSummary, read_summary, statistics_columns, summarize, write_rows
from caplens.storage.digests import content_digest
from caplens.storage.identity import Identity
from caplens.text.idf import IdfTable, add_idf, build_idf
from caplens.text.ngrams import Tokenizer, tokenizer_name
from caplens.vision.pictures import pictures_of


@dataclass(frozen=True)
class Reading:
    """How shards are read: what `caplens.read` takes beside the file."""

    references: str | os.PathLike[str] | None = None
    images: str | os.PathLike[str] | None = None
    videos: str | os.PathLike[str] | None = None
    caption_column: str | None = None
    image_column: str | None = None
    id_column: str | None = None

    def read(self, path: Path) -> CaptionSet:
        """Return the captions of a shard."""
        return read(path, **self.__dict__, spare_references=True)

    def identity(self) -> str:
        """Return what results depend on beside the shard and the metrics."""
        references = None if self.references is None else content_digest(self.references)
        return Identity.of({**self.__dict__, "references": references}).digest


@dataclass(frozen=True)
class Done:
    """What became of one shard."""

    shard: Shard
    rows: int = 0
    fresh: bool = True
    """Whether it was computed now, not found finished."""
    error: str = ""


@dataclass(frozen=True)
class CountShard:
    """Counts the document frequencies of a shard's references into a file."""

    reading: Reading
    folder: Path
    tokenizer: Tokenizer

    def path(self, shard: Shard) -> Path:
        """Return where the counts of a shard are; the name tells what was counted."""
        counted = Identity.of([shard.digest(), self.reading.identity(), tokenizer_name(self.tokenizer)])
        return self.folder / f"{shard.name}-{counted.digest[:16]}.safetensors"

    def __call__(self, shard: Shard) -> Done:
        return attempt(self._count, shard)

    def _count(self, shard: Shard) -> Done:
        path = self.path(shard)
        if path.exists():
            return Done(shard, IdfTable.load(path).images, fresh=False)
        with shard.on_disk() as file:
            references = self.reading.read(file).references
        if references is None:
            raise InputError("has no references to count", where=shard.location)
        build_idf(references, self.tokenizer, least=1).save(path)
        return Done(shard, len(references))


@dataclass(frozen=True)
class AddCounts:
    """Adds up the counts of all shards into one table."""

    target: Path

    def __call__(self, parts: Sequence[Path]) -> int:
        table = add_idf(IdfTable.load(part) for part in parts)
        table.save(self.target)
        return len(table)


@dataclass(frozen=True)
class Loaded:
    """A metric in a worker."""

    metric: Metric
    name: str
    """What it is asked for by."""
    identity: str


@dataclass(frozen=True)
class ScoreShard:
    """Scores a shard and writes its results; a shard that is finished is left alone."""

    names: tuple[str, ...]
    """Metrics to load, one each, with those of the options that they take."""
    options: Mapping[str, Any]
    metrics: tuple[Metric, ...]
    """Metrics that somebody made."""
    reading: Reading
    folder: Path
    idf: Mapping[str, Path] = field(default_factory=dict)
    """Tables over all shards, by the name of their tokenizer, for metrics with ``idf="corpus"``."""
    strict: bool = False
    shared_files: tuple[Path, ...] = ()
    """Large files that every worker reads."""

    def __call__(self, shard: Shard) -> Done:
        return attempt(self._score, shard)

    def path(self, shard: Shard) -> Path:
        """Return where the results of a shard are."""
        return self.folder / f"{shard.name}.parquet"

    def load(self) -> list[Loaded]:
        """Return the metrics; a worker loads them once, and encoders stay in memory from shard to shard."""
        return _load(pickle.dumps((self.names, dict(self.options), self.metrics, dict(self.idf))))

    def _score(self, shard: Shard) -> Done:
        path, metrics, digest = self.path(shard), self.load(), shard.digest()
        run = Run(self.reading.identity(), tuple((entry.metric.name, entry.identity) for entry in metrics))
        if path.exists():
            found = read_summary(path)
            if found.run != run:
                raise InputError(
                    f"holds results of another run ({_difference(found, metrics)})",
                    where=str(path),
                    remedy="name another folder, or delete this one",
                )
            if found.digest == digest:
                return Done(shard, found.rows, fresh=False)
        texts, results = self._results(shard, metrics)
        names, statistics = statistics_columns(results)
        numbers = {result.name: result.scores for result in results}
        summaries = {
            result.name: summarize(result, entry.name, entry.identity, names[result.name])
            for result, entry in zip(results, metrics, strict=True)
        }
        summary = ShardSummary(shard.name, shard.location, digest, len(texts["id"]), run.reading, summaries)
        write_rows(path, texts, {**numbers, **statistics}, summary)
        return Done(shard, summary.rows)

    def _results(self, shard: Shard, metrics: Sequence[Loaded]) -> tuple[dict[str, list[str | None]], list[Result]]:
        """The columns of text of a shard's results, and what every metric says.

        References, and what the metrics share on the way, such as n-grams and pictures, are gone when this returns.
        """
        with shard.on_disk() as file:
            captions = replace(self.reading.read(file), source=shard.location)
            refuse_whole_set([entry.metric for entry in metrics], captions)
            work = Workspace(captions, strict=self.strict, quiet=True, details=False)
            results = [entry.metric.result(work) for entry in metrics]
            texts: dict[str, list[str | None]] = {"id": [*captions.ids], "caption": [*captions.candidates]}
            texts["picture"] = _picture_digests(work)
        for result in results:
            texts[f"{result.name}.failure"] = [result.failures.get(row) for row in range(len(captions))]
        return texts, results


@functools.lru_cache(maxsize=1)
def _load(task: bytes) -> list[Loaded]:
    names, options, metrics, idf = pickle.loads(task)
    made = [*zip(load_metrics(list(names), options) if names else (), names, strict=True)]
    made += [(metric, metric.name) for metric in metrics]
    tables = {tokenizer: replace(IdfTable.load(path), is_corpus=True) for tokenizer, path in idf.items()}
    loaded = [(_with_idf(metric, tables), name) for metric, name in made]
    return [Loaded(metric, name, metric.identity().digest) for metric, name in loaded]


def refuse_whole_set(metrics: Sequence[Metric], captions: CaptionSet | None = None) -> None:
    """Raise an `InputError` if one of the metrics cannot score a part of the captions by itself."""
    for metric in metrics:
        if reason := metric.whole_set(captions):
            raise InputError(
                f"{metric.name} needs all captions at once: {reason}",
                remedy="score one file without --output, or leave this metric out",
            )


def corpus_tokenizer(metric: Metric) -> Tokenizer | None:
    """Return the tokenizer of a metric that counts idf over the captions it judges, None for any other."""
    return getattr(metric, "tokenizer", "ptb") if getattr(metric, "idf", None) == "corpus" else None


def _with_idf(metric: Metric, tables: Mapping[str, IdfTable]) -> Metric:
    """The same metric with a table of all shards where it would count over one."""
    tokenizer = corpus_tokenizer(metric)
    if tokenizer is None:
        return metric
    options = {name: getattr(metric, name) for name in metric.options()}
    return type(metric)(**{**options, "idf": tables[tokenizer_name(tokenizer)]})


def attempt(work: Callable[[Shard], Done], shard: Shard) -> Done:
    """What became of a shard; what is wrong with it costs this one only."""
    try:
        return work(shard)
    except InputError as error:
        where = "" if shard.location in error.where or str(error).startswith(shard.location) else f"{shard.location}: "
        return Done(shard, error=where + str(error))
    except CaplensError as error:
        return Done(shard, error=f"{shard.location}: {error}")
    except OSError as error:
        return Done(shard, error=f"{error.filename or shard.location}: {error.strerror or error}")


def _difference(found: ShardSummary, metrics: Sequence[Loaded]) -> str:
    """What another run did otherwise, in words."""
    theirs = {name: metric.identity for name, metric in found.metrics.items()}
    ours = {entry.metric.name: entry.identity for entry in metrics}
    for name in theirs.keys() & ours.keys():
        if theirs[name] != ours[name]:
            return f"its signature is {found.metrics[name].signature}"
    if theirs.keys() != ours.keys():
        return f"of {', '.join(theirs)}"
    return "read with other references, folders or columns"


def _picture_digests(work: Workspace) -> list[str | None]:
    """What tells pictures apart, as far as they were read; equal pictures have equal digests."""
    images, reader = work.captions.images, pictures_of(work)
    return [None if image is None else reader.digest_of(image) for image in images or [None] * len(work.captions)]
