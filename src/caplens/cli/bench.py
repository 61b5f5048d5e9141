"""`caplens bench`: how far each metric agrees with people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caplens.cli._arguments import (
    AllowUrls,
    BatchSize,
    Device,
    Dtype,
    Encoder,
    Images,
    Language,
    MaxRequests,
    Options,
    References,
    Videos,
    read_options,
    split_names,
)
from caplens.cli._results import Format, Layout, show_result
from caplens.cli._show import JsonTarget, progress_bar, say, show_table, tell, write_json
from caplens.core.errors import InputError

if TYPE_CHECKING:
    from caplens.bench.results import BenchReport


def command(
    sets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SETS]...",
            help="Rating sets, all (those whose files are found), or list (what there is and where).",
        ),
    ] = None,
    data: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Folder with rating sets; may be repeated.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="NAMES",
            help="Names with commas between: of `caplens metrics`, classical, picture, learned, FILE.py:CLASS.",
            show_default="all that can run; with --scores, none",
        ),
    ] = None,
    option: Options = None,
    language: Language = None,
    encoder: Encoder = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    allow_urls: AllowUrls = False,
    max_requests: MaxRequests = None,
    ratings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own: csv with id, rating or id, preference.")
    ] = None,
    captions: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Captions that --ratings judges; two for preferences.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Scores made elsewhere: jsonl or csv with image (or video), caption, and numbers in other columns.",
        ),
    ] = None,
    references: References = None,
    images: Images = None,
    videos: Videos = None,
    resamples: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="Bootstrap samples over images for the intervals.")
    ] = 1000,
    permutations: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="Swaps in each paired test; 0 for no tests.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Seed of bootstrap and tests.")] = 1,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with plots.")] = None,
    format: Format = Layout.table,
    json: JsonTarget = None,
) -> None:
    """Measure metrics against human ratings: correlations, accuracies, intervals, tests, and what papers print.

    Example: caplens bench flickr8k-expert --data ratings -m cider-d,meteor,spice
    """
    from caplens.bench.base import RatingSet, find_sets, known_sets
    from caplens.bench.custom_ratings import OwnRatings
    from caplens.bench.data import DataFolders
    from caplens.bench.outside_scores import OutsideScores
    from caplens.bench.run import run

    folders = DataFolders(data or [])
    names = sets or []
    if names == ["list"]:
        _list(folders, json)
        return
    chosen: list[RatingSet]
    if ratings is not None:
        if names:
            raise InputError("--ratings and named sets were given", remedy="run them one after the other")
        chosen = [OwnRatings(ratings, captions or [], references, images, videos)]
    elif not names:
        raise InputError(
            "no rating set was named", remedy="`caplens bench list --data DIR` shows them; or give --ratings"
        )
    elif names == ["all"]:
        chosen = [found for found in known_sets().values() if found.found(folders) and not found.only_when_named]
        if not chosen:
            raise InputError("no rating set was found", remedy="name a folder that holds some: --data DIR")
    else:
        chosen = find_sets(names)
    outside = None if scores is None else OutsideScores.read(scores)
    if outside is not None and metrics is None:
        metrics = ""  # the file is what is to be measured; metrics beside it only where they are named
    with progress_bar() as progress:
        report = run(
            chosen,
            _metrics(
                metrics,
                read_options(
                    option,
                    encoder,
                    allow_urls,
                    device=device,
                    dtype=dtype,
                    batch_size=batch_size,
                    max_requests=max_requests,
                    language=language,
                ),
            ),
            folders,
            outside,
            resamples=resamples,
            permutations=permutations,
            seed=seed,
            progress=progress,
        )
    write_json(json, report.to_dict())
    if html is not None:
        report.to_html(html)
    if format is Layout.table:
        _show(report, json)
    else:
        show_result(report, format, json)
    if html is not None:
        say(json, f"wrote {html}")
    for name, reason in report.missing.items():
        tell(f"{name} was not run: {reason}")
    if report.missing and names != ["all"]:
        raise typer.Exit(2)


def _metrics(names: str | None, options: dict[str, Any]) -> list[Any]:
    """The metrics asked for; all that can be made without a word, the others named with what they lack."""
    from caplens.core.errors import CaplensError
    from caplens.metrics import load_metrics

    if names is not None and names.strip() != "all":
        return load_metrics(split_names(names), options)
    lacking: dict[str, CaplensError] = {}
    made = load_metrics(["all"], options, lacking)
    for name, reason in lacking.items():
        tell(f"{name} is left out: {reason}")
    return made


def _list(folders: Any, json: str | None) -> None:
    from caplens.bench.base import known_sets, missing_files

    looked = ", ".join(str(folder) for folder in folders.folders) or "nowhere (give --data DIR)"
    entries = []
    for rating_set in known_sets().values():
        found = rating_set.found(folders)
        entries.append(
            {
                "name": rating_set.name,
                "title": rating_set.title,
                "what": rating_set.what,
                "protocol": rating_set.protocol,
                "paper": rating_set.paper,
                "license": rating_set.license,
                "get it": rating_set.home,
                "found": [str(path) for path in found],
                "missing": missing_files(rating_set, folders),
                "looked": [str(folder) for folder in folders.folders],
            }
        )
    write_json(json, entries)
    for entry in entries:
        say(json, f"{entry['name']}  {'found' if entry['found'] else 'not found'}")
        for key in ("what", "protocol", "paper", "license", "get it"):
            say(json, f"  {key:9}{entry[key]}")
        if entry["found"]:
            say(json, f"  {'found':9}{', '.join(entry['found'])}")
        else:
            say(json, f"  {'missing':9}{'; '.join(entry['missing'])}")
        say(json, f"  {'looked':9}below {looked}")
        say(json)


def _show(report: BenchReport, json: str | None) -> None:
    """One table per set, best metric first by the first figure with clusters."""
    for part in report.sets:
        say(json, f"{part.rating_set.title}: {part.rating_set.what}")
        for figure in part.task.figures:
            if figure.at is not None and not figure.headline:
                continue
            rows = [row.cells() for row in part.of(figure.key)]
            if rows:
                title = f"{figure.label} ×{figure.scale:g}" if figure.scale != 1 else figure.label
                show_table(
                    json,
                    [title, "value", "95 % interval", "cluster", "rows", "in print", "status"],
                    rows,
                    right=["value", "95 % interval", "cluster", "rows", "in print"],
                )
        for note in part.task.notes:
            say(json, f"note: {note}")
        alike: dict[str, list[str]] = {}
        for name, reason in part.skipped.items():
            alike.setdefault(reason.removeprefix(f"{name} "), []).append(name)
        for reason, names in alike.items():
            say(json, f"not measured: {', '.join(names)}: {reason}")
        say(json, f"{part.rating_set.name}|{part.task.signature}|resamples:{report.resamples}|seed:{report.seed}")
        say(json)
