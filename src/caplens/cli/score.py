"""`caplens score`: judge one file of captions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._arguments import (
    AllowUrls,
    CaptionColumn,
    Encoder,
    IdColumn,
    ImageColumn,
    Images,
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
from caplens.cli._show import JsonTarget, progress_bar, write_json


def command(
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="CAPTIONS",
            help="Captions: COCO results, json, jsonl, csv, parquet, tar, html or folder; - for standard input.",
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
    encoder: Encoder = None,
    allow_urls: AllowUrls = False,
    max_requests: MaxRequests = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with every caption's scores.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first picture that cannot be read.")] = False,
    format: Format = Layout.table,
    signatures: Signatures = False,
    json: JsonTarget = None,
) -> None:
    """Score captions; without --metrics, with the quick ones that run on what is given.

    Example: caplens score predictions.json -r captions_val2014.json --html report.html
    """
    from caplens.evaluation.evaluate import evaluate
    from caplens.readers import read

    captions = read(
        predictions,
        references,
        images,
        videos,
        caption_column=caption_column,
        image_column=image_column,
        id_column=id_column,
        several=several,
    )
    asked = split_names(metrics)
    with progress_bar() as progress:
        report = evaluate(
            captions,
            metrics=asked or None,
            progress=progress,
            strict=strict,
            **read_options(option, encoder, allow_urls, max_requests),
        )

    if json is not None:  # details are worked out for those who look at them
        write_json(json, report.contents(choose_by))
    if html is not None:
        report.to_html(html, title=predictions.name)
    show_result(
        report.several(choose_by) if several else report,
        format,
        json,
        signatures=[result.signature for result in report] if signatures else (),
        written=(html, json),
    )
    ids = report.captions.ids
    name_unscored((ids[row], reason) for result in report for row, reason in result.failures.items())
    name_failures(report.errors, asked)
