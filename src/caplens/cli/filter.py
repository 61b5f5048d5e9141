"""`caplens filter`: keep the rows of image-text data whose scores are good enough."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._arguments import (
    AllowUrls,
    BatchSize,
    CaptionColumn,
    Device,
    Dtype,
    Encoder,
    IdColumn,
    ImageColumn,
    Images,
    Metrics,
    Options,
    References,
    read_options,
    split_names,
)
from caplens.cli._results import Format, Layout, show_result
from caplens.cli._shards import Engine, GpusPerWorker, Workers, name_unfinished
from caplens.cli._show import JsonTarget, progress_bar, write_json
from caplens.core.errors import InputError


def command(
    shards: Annotated[list[str], typer.Argument(metavar="SHARDS", help="Shards: files, globs, {000..099}, folders.")],
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="What is kept, a file for each shard; with --to uids, a .npy file.")
    ],
    keep: Annotated[
        str | None, typer.Option(metavar="CONDITION", help='Such as "pac-s >= 0.3 and length < 60".')
    ] = None,
    top: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Such as 30%, by the one metric of --metrics.")
    ] = None,
    metrics: Metrics = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="LAYOUT",
            help="parquet, webdataset or uids (DataComp's npy).",
            show_default="a tar as a tar, all else as parquet",
        ),
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Scores to go on from.", show_default="scores in --output")
    ] = None,
    deduplicate: Annotated[
        bool, typer.Option("--deduplicate", help="Of rows with equal picture and caption keep the first.")
    ] = False,
    references: References = None,
    images: Images = None,
    caption_column: CaptionColumn = None,
    image_column: ImageColumn = None,
    id_column: IdColumn = None,
    option: Options = None,
    encoder: Encoder = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    engine: Engine = "local",
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = 0,
    allow_urls: AllowUrls = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with histograms and what was kept.")
    ] = None,
    format: Format = Layout.table,
    json: JsonTarget = None,
) -> None:
    """Score shards and write the rows that are good enough.

    Example: caplens filter "data/*.tar" --keep "pac-s >= 0.3" --output kept
    """
    from caplens.scale.filter import filter_shards

    names = split_names(metrics)
    if len(names) > 1:
        raise InputError(f"--metrics names {len(names)} metrics", remedy="--top takes one; --keep names its own")
    with progress_bar() as progress:
        report = filter_shards(
            shards,
            output=output,
            keep=keep,
            top=top,
            metric=names[0] if names else None,
            to=to,
            scores=scores,
            deduplicate=deduplicate,
            references=references,
            images=images,
            caption_column=caption_column,
            image_column=image_column,
            id_column=id_column,
            engine=engine,
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            allow_urls=allow_urls,
            progress=progress,
            **read_options(option, encoder, device=device, dtype=dtype, batch_size=batch_size),
        )
    write_json(json, report.to_dict() if json is not None else None)
    if html is not None:
        report.to_html(html)
    show_result(report, format, json, written=(output, html, json))
    name_unfinished(report.errors)
