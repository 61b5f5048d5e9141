"""`caplens compare`: several systems on the same pictures, each tested against the first."""

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
from caplens.cli._show import JsonTarget, progress_bar, tell, write_json


def command(
    predictions: Annotated[
        list[Path],
        typer.Argument(metavar="CAPTIONS...", help="Two to fifty files of captions; the first is the baseline."),
    ],
    references: References = None,
    images: Images = None,
    videos: Videos = None,
    caption_column: CaptionColumn = None,
    image_column: ImageColumn = None,
    id_column: IdColumn = None,
    several: Several = False,
    metrics: Metrics = None,
    option: Options = None,
    language: Language = None,
    encoder: Encoder = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    allow_urls: AllowUrls = False,
    max_requests: MaxRequests = None,
    resamples: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Draws of the bootstrap and of the permutation test.",
            show_default="1000, more for many systems",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Makes the draws repeatable.")] = 12345,
    fail_if_worse: Annotated[
        bool, typer.Option("--fail-if-worse", help="Exit code 1 if a system is significantly worse than the first.")
    ] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a leaderboard page.")] = None,
    format: Format = Layout.table,
    signatures: Signatures = False,
    json: JsonTarget = None,
) -> None:
    """Rank systems on the same pictures: intervals, every pair tested, rank clusters, a leaderboard page.

    Example: caplens compare baseline.json new.json -r references.json --html board.html
    """
    from caplens.evaluation.compare import SIGNIFICANT, compare
    from caplens.readers import read

    systems = {
        name: read(
            path,
            references,
            images,
            videos,
            caption_column=caption_column,
            image_column=image_column,
            id_column=id_column,
            several=several,
        )
        for name, path in zip(_names(predictions), predictions, strict=True)
    }
    names = split_names(metrics)
    with progress_bar() as progress:
        comparison = compare(
            systems,
            metrics=names or None,
            resamples=resamples,
            seed=seed,
            progress=progress,
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
        )

    write_json(json, comparison.to_dict())
    if html is not None:
        comparison.to_html(html)
    units = "pictures, each with the mean of its captions" if several else "captions"
    draws = f"{comparison.resamples:,} resamples, {comparison.permutations:,} permutations, seed {seed}"
    show_result(
        comparison,
        format,
        json,
        remarks=[
            f"{comparison.captions:,} {units}, {draws}",
            "a new rank begins where a system is significantly worse than all of the one above",
            f"* p < {SIGNIFICANT}, ** p < 0.01 (permutation test, Holm)",
        ],
        signatures=[metric.signature for metric in comparison.metrics.values()] if signatures else (),
        written=(html, json),
    )
    scored = [system for metric in comparison.metrics.values() for system in metric.systems]
    name_unscored(failure for system in scored for failure in system.failures.items())
    name_failures(comparison.errors, names)
    if fail_if_worse and comparison.worse():
        for system, name in comparison.worse():
            tell(f"{system} is significantly worse than {comparison.systems[0]} in {name}")
        raise typer.Exit(1)


def _names(paths: list[Path]) -> list[str]:
    """What to call the systems: the shortest of stem, name and path that tells them apart.

    >>> _names([Path("a/x.json"), Path("a/y.json")]), _names([Path("a/x.json"), Path("b/x.json")])
    (['x', 'y'], ['a/x.json', 'b/x.json'])
    """
    for names in ([path.stem for path in paths], [path.name for path in paths]):
        if len(set(names)) == len(names):
            return names
    whole = [str(path) for path in paths]
    return whole if len(set(whole)) == len(whole) else [f"{number}: {name}" for number, name in enumerate(whole, 1)]
