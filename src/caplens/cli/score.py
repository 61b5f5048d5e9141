"""`caplens score`: judge one file of captions, or many shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    Language,
    MaxRequests,
    Metrics,
    Options,
    References,
    Several,
    Videos,
    name_failures,
    name_unscored,
    read_options,
    split_names,
)
from caplens.cli._results import Format, Layout, Signatures, show_result
from caplens.cli._shards import Engine, GpusPerWorker, ShardPart, Workers, show_shards
from caplens.cli._show import JsonTarget, progress_bar, write_json
from caplens.core.errors import InputError


def command(
    predictions: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTIONS",
            help="Captions: COCO results, json, jsonl, csv, parquet, tar, html or folder; - for standard input. "
            "With --output any number of shards: files, globs, {000..099}, folders.",
        ),
    ],
    references: References = None,
    images: Images = None,
    videos: Videos = None,
    caption_column: CaptionColumn = None,
    image_column: ImageColumn = None,
    id_column: IdColumn = None,
    several: Several = False,
    choose_by: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="With --several: the metric that chooses the best caption of a picture.",
            show_default="the first without references",
        ),
    ] = None,
    metrics: Metrics = None,
    option: Options = None,
    language: Language = None,
    encoder: Encoder = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    allow_urls: AllowUrls = False,
    max_requests: MaxRequests = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with every caption's scores.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first picture that cannot be read.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Score shards into this folder, a parquet each; a second run goes on."),
    ] = None,
    engine: Engine = "local",
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = 0,
    shard: ShardPart = None,
    format: Format = Layout.table,
    signatures: Signatures = False,
    json: JsonTarget = None,
) -> None:
    """Score captions; without --metrics, with the quick ones that run on what is given.

    Example: caplens score predictions.json -r captions_val2014.json --html report.html
    """
    asked = split_names(metrics)
    reading = {"caption_column": caption_column, "image_column": image_column, "id_column": id_column}
    if output is not None:
        if several:
            raise InputError("--several is for one file", remedy="score shards without it: every row is a caption")
        from caplens.scale.evaluate import evaluate_shards

        with progress_bar() as progress:
            scored = evaluate_shards(
                predictions,
                asked or None,
                output=output,
                references=references,
                images=images,
                videos=videos,
                engine=engine,
                workers=workers,
                gpus_per_worker=gpus_per_worker,
                part=shard,
                allow_urls=allow_urls,
                strict=strict,
                progress=progress,
                **reading,
                **read_options(
                    option,
                    encoder,
                    device=device,
                    dtype=dtype,
                    batch_size=batch_size,
                    max_requests=max_requests,
                    language=language,
                ),
            )
        show_shards(scored, format, json, html, signatures)
        return
    if len(predictions) > 1:
        raise InputError(
            f"{len(predictions)} files were given ({', '.join(predictions)})",
            remedy="with --output DIR each is scored as a shard",
        )
    _score_file(
        Path(predictions[0]),
        {"references": references, "images": images, "videos": videos, "several": several, **reading},
        asked,
        choose_by,
        {
            "strict": strict,
            **read_options(
                option,
                encoder,
                allow_urls,
                device=device,
                dtype=dtype,
                batch_size=batch_size,
                max_requests=max_requests,
                language=language,
            ),
        },
        html,
        format,
        signatures,
        json,
    )


def _score_file(
    predictions: Path,
    reading: dict[str, Any],
    asked: list[str],
    choose_by: str | None,
    options: dict[str, Any],
    html: Path | None,
    format: Layout,
    signatures: bool,
    json: str | None,
) -> None:
    from caplens.evaluation.evaluate import evaluate
    from caplens.readers import read

    captions = read(predictions, **reading)
    with progress_bar() as progress:
        report = evaluate(captions, metrics=asked or None, progress=progress, **options)

    if json is not None:  # details are worked out for those who look at them
        write_json(json, report.contents(choose_by))
    if html is not None:
        report.to_html(html, title=predictions.name)
    show_result(
        report.several(choose_by) if reading["several"] else report,
        format,
        json,
        signatures=[result.signature for result in report] if signatures else (),
        written=(html, json),
    )
    ids = report.captions.ids
    name_unscored((ids[row], reason) for result in report for row, reason in result.failures.items())
    name_failures(report.errors, asked)
