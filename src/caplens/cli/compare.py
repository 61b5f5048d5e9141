"""`caplens compare`: several systems on the same pictures, each tested against the first."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caplens.cli._arguments import (
    AllowUrls,
    CaptionColumn,
    Encoder,
    IdColumn,
    ImageColumn,
    Images,
    Metrics,
    Options,
    References,
    Videos,
    choose_metrics,
    name_failures,
    name_unscored,
    read_options,
    split_names,
)
from caplens.cli._show import JsonTarget, progress_bar, say, show_table, write_json

if TYPE_CHECKING:
    from caplens.evaluation.compare import Comparison, Difference

COLUMNS = ("metric", "system", "score", "scale", "95 % interval", "difference", "p swap", "p boot", "")
NUMBERS = ("score", "95 % interval", "difference", "p swap", "p boot")


def command(
    predictions: Annotated[
        list[Path], typer.Argument(help="Two or more files of captions; the first is the baseline.")
    ],
    references: References = None,
    images: Images = None,
    videos: Videos = None,
    caption_column: CaptionColumn = None,
    image_column: ImageColumn = None,
    id_column: IdColumn = None,
    metrics: Metrics = None,
    option: Options = None,
    encoder: Encoder = None,
    allow_urls: AllowUrls = False,
    samples: Annotated[int, typer.Option(min=1, help="Draws of the bootstrap and of the randomization test.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Makes the draws repeatable.")] = 12345,
    fail_if_worse: Annotated[
        bool, typer.Option("--fail-if-worse", help="Exit code 1 if a system is significantly worse than the first.")
    ] = False,
    json: JsonTarget = None,
) -> None:
    """Compare systems: intervals, paired bootstrap and approximate randomization against the first one."""
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
        )
        for name, path in zip(_names(predictions), predictions, strict=True)
    }
    asked = split_names(metrics)
    names = choose_metrics(asked, next(iter(systems.values())))
    with progress_bar() as progress:
        found = compare(
            systems,
            metrics=names,
            samples=samples,
            seed=seed,
            progress=progress,
            **read_options(option, encoder, allow_urls),
        )

    write_json(json, found.to_dict())
    show_table(json, COLUMNS, _rows(found), right=NUMBERS)
    say(json, f"{found.captions:,} captions, {samples:,} draws, seed {seed}; * p < {SIGNIFICANT}, ** p < 0.01 (swap)")
    for metric in found.metrics.values():
        say(json, metric.signature)
    scored = [system for metric in found.metrics.values() for system in metric.systems]
    name_unscored(failure for system in scored for failure in system.failures.items())
    name_failures(found.errors, asked)
    if fail_if_worse and found.worse():
        for system, name in found.worse():
            print(f"{system} is significantly worse than {found.systems[0]} in {name}", file=sys.stderr)
        raise typer.Exit(1)


def _rows(comparison: Comparison) -> list[list[str]]:
    """One row per metric and system, under COLUMNS."""
    from caplens.report.table import show_interval, show_number

    rows = []
    for metric in comparison.metrics.values():
        for place, system in enumerate(metric.systems):
            rows.append(
                [
                    metric.name if place == 0 else "",
                    system.system,
                    show_number(system.score, metric.shown_as_percent),
                    "×100" if metric.shown_as_percent else "",
                    show_interval(system.interval, metric.shown_as_percent),
                    *_difference_cells(system.difference, metric.shown_as_percent),
                ]
            )
    return rows


def _difference_cells(difference: Difference | None, percent: bool) -> Sequence[str]:
    if difference is None:
        return "baseline", "", "", ""
    stars = "" if difference.verdict == "same" else "**" if difference.p_permutation < 0.01 else "*"
    return (
        f"{difference.value * (100 if percent else 1):+.2f}",
        f"{difference.p_permutation:.4f}",
        f"{difference.p_bootstrap:.4f}",
        f"{stars} {difference.verdict}".strip() if stars else "",
    )


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
