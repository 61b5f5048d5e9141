"""Score shards of captions on any engine: what `caplens.evaluate_shards` and `caplens score SHARDS --output` do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from caplens.core.errors import InputError
from caplens.core.optional import check
from caplens.core.progress import Progress, silent
from caplens.metrics import GROUPS, default_metrics, expand_groups, find_metric, load_metrics
from caplens.metrics.base import Metric
from caplens.scale.engines import Engine, Workers, make_engine
from caplens.scale.plan import AddCounts, CountShard, Done, Reading, ScoreShard, corpus_tokenizer, refuse_whole_set
from caplens.scale.results import ShardReport
from caplens.scale.shards import Shard, choose_part, find_shards, refuse_folder_of
from caplens.scale.stored import PURPOSE
from caplens.storage.identity import Identity
from caplens.text.ngrams import Tokenizer, tokenizer_name

AnyPath = str | os.PathLike[str]
IDF_FOLDER = "idf"
"""Where in the output the document frequencies of every shard are kept until they are added up."""


def evaluate_shards(
    paths: AnyPath | Sequence[AnyPath],
    metrics: str | Sequence[str | Metric] | None = None,
    *,
    output: AnyPath,
    references: AnyPath | None = None,
    images: AnyPath | None = None,
    videos: AnyPath | None = None,
    caption_column: str | None = None,
    image_column: str | None = None,
    id_column: str | None = None,
    engine: str | Engine = "local",
    workers: int | None = None,
    gpus_per_worker: float = 0,
    part: str | None = None,
    allow_urls: bool = False,
    strict: bool = False,
    progress: Progress = silent,
    **options: Any,
) -> ShardReport:
    """Judge the captions of many files; memory depends on the largest, not on how many there are.

    Args:
        paths: files, globs, ``{0000..0099}`` braces and folders; with `allow_urls`, addresses that fsspec opens.
        metrics: as `caplens.evaluate` takes them.
        output: a folder for the results: one parquet per shard, with a row per caption. A second run with the same
            output goes on where the first one stopped.
        references: where the references are, if not in the rows; every worker reads all of them.
        images: a folder of pictures; ``videos`` likewise.
        caption_column: the column to judge; ``image_column`` and ``id_column`` likewise.
        engine: ``local`` (processes on this machine), ``ray``, or an `Engine`.
        workers: how many at a time; by default as many as there are processors, less one for Ray.
        gpus_per_worker: for Ray, such as 1 or 0.5.
        part: "3/64" scores the third of 64 parts of the shards, for jobs that share them.
        strict: stop at the first picture that cannot be read.
        options: passed to every metric that takes them.

    A shard that cannot be read is listed in ``report.errors`` and the others are not lost; mend it and run again.
    """
    check("pyarrow", purpose=PURPOSE)
    every = find_shards(paths, allow_urls=allow_urls)
    shards = every if part is None else choose_part(every, part)
    folder = Path(output)
    refuse_folder_of(every, folder)
    reading = Reading(references, images, videos, caption_column, image_column, id_column)
    runner = make_engine(engine, workers, gpus_per_worker)
    names, made = _choose(metrics, reading, every)
    if allow_urls and any("allow_urls" in find_metric(name).options() for name in names):
        options["allow_urls"] = True
    loaded = [*(load_metrics(names, options) if names else ()), *made]
    refuse_whole_set(loaded)
    tokenizers = {tokenizer_name(found): found for metric in loaded if (found := corpus_tokenizer(metric)) is not None}
    if tokenizers and len(shards) < len(every):
        raise InputError(
            "idf is counted over all shards, and this run has a part of them",
            remedy="count it first (caplens idf build SHARDS --output idf.safetensors) and pass -o idf=idf.safetensors",
        )
    files = tuple(path for metric in loaded for path in metric.shared_files(progress))
    with runner.start(len(shards)) as pool:
        idf = {
            name: build_shared_idf(shards, pool, reading, tokenizer, folder, progress)
            for name, tokenizer in tokenizers.items()
        }
        task = ScoreShard(tuple(names), options, tuple(made), reading, folder, idf, strict, files)
        done = go_through(pool, task, shards, "shards scored", progress)
    errors = {entry.shard.location: entry.error for entry in done if entry.error}
    finished = [entry for entry in done if not entry.error]
    if not finished:
        raise InputError(next(iter(errors.values())) + _more(errors))
    return ShardReport.open(
        folder,
        names=[entry.shard.name for entry in finished],
        errors=errors,
        fresh=sum(entry.fresh for entry in finished),
    )


def go_through(
    pool: Workers, work: Callable[[Shard], Done], shards: Sequence[Shard], task: str, progress: Progress
) -> list[Done]:
    """Return what became of every shard, in their order."""
    done: dict[Shard, Done] = {}
    progress(task, 0, len(shards))
    for entry in pool.map(work, shards):
        done[entry.shard] = entry
        progress(task, len(done), len(shards))
    return [done[shard] for shard in shards]


def build_shared_idf(
    shards: Sequence[Shard],
    pool: Workers,
    reading: Reading,
    tokenizer: Tokenizer,
    folder: Path,
    progress: Progress = silent,
) -> Path:
    """Count document frequencies over all shards into a table in the folder; one that is there is not made again.

    A shard that cannot be read ends the run: without it every score would be another.
    """
    count = CountShard(reading, folder / IDF_FOLDER, tokenizer)
    counted = Identity.of([[shard.name, shard.digest()] for shard in shards] + [[reading.identity()]])
    target = folder / f"idf-{tokenizer_name(tokenizer)}-{counted.digest[:16]}.safetensors"
    if target.exists():
        return target
    done = go_through(pool, count, shards, "shards counted for idf", progress)
    broken = {entry.shard.location: entry.error for entry in done if entry.error}
    if broken:
        raise InputError(next(iter(broken.values())) + _more(broken))
    parts = [count.path(shard) for shard in shards]
    for _ in pool.map(AddCounts(target), [parts]):  # in a worker, which gives its memory back
        for path in parts:
            path.unlink(missing_ok=True)
    count.folder.rmdir()
    return target


def _choose(
    metrics: str | Sequence[str | Metric] | None, reading: Reading, shards: Sequence[Shard]
) -> tuple[list[str], list[Metric]]:
    """The names of the metrics, one each, and those that were made already."""
    wanted = [name for name in metrics.split(",") if name.strip()] if isinstance(metrics, str) else metrics
    made = [metric for metric in wanted or () if isinstance(metric, Metric)]
    names = [name.strip() for name in wanted or () if isinstance(name, str)]
    if wanted is None or any(map(_depends_on_columns, names)):
        with shards[0].on_disk() as file:  # what can run follows from what the first shard has
            captions = reading.read(file)
        names = default_metrics(captions) if wanted is None else expand_groups(names, captions)
    if not names and not made:
        raise InputError("no metric was asked for", remedy="name some: metrics=['cider-r', 'bleu-4']")
    names = expand_groups(names)
    classes = {find_metric(name).name: name if ".py" in name else find_metric(name).name for name in names}
    return list(classes.values()), made


def _depends_on_columns(name: str) -> bool:
    """Whether a group stands for other metrics where there are no references or no pictures."""
    group = name.lower()
    return group == "all" or len({find_metric(member).needs for member in GROUPS.get(group, ())}) > 1


def _more(errors: Iterable[Any]) -> str:
    count = len(list(errors)) - 1
    return f" (and {count} more shards)" if count else ""
