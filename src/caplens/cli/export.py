"""`caplens export`: the viewer of runs as plain files, for any web host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, tell, write_json
from caplens.core.errors import InputError


def command(
    runs: Annotated[
        Path, typer.Argument(metavar="RUNS", help="Folder of runs: what --json wrote, and folders of scored shards.")
    ],
    output: Annotated[Path, typer.Argument(metavar="SITE", help="Folder to write; an earlier export is replaced.")],
    images: Annotated[
        list[Path] | None,
        typer.Option("--images", metavar="DIR", help="Folder of the pictures; may be repeated."),
    ] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="What the page of all runs is called.")] = "Runs",
    pictures: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="How many pictures are copied, made small.")
    ] = 2000,
    json: JsonTarget = None,
) -> None:
    """Write the viewer of `caplens serve` with all runs as plain files.

    Example: caplens export runs site --images photos
    """
    from caplens.core.optional import check

    check("fastapi", purpose="caplens export")
    from caplens.server.export import export
    from caplens.server.settings import Settings

    for folder in (runs, *(images or ())):
        if not folder.is_dir():
            raise InputError("is no folder", where=str(folder))
    with progress_bar() as progress:
        written = export(
            Settings(runs=runs, folders=tuple(images or ())), output, title=title, pictures=pictures, progress=progress
        )
    write_json(json, written.to_dict())
    say(json, f"wrote {written.runs:,} runs, {written.captions:,} captions, {written.pictures:,} pictures to {output}")
    for name, reason in written.skipped.items():
        tell(f"{name} was left out: {reason}")
    if written.skipped:
        raise typer.Exit(2)
