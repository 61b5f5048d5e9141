"""Arguments of the verbs that go through shards, and how they show what came out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caplens.cli._results import Layout, show_result
from caplens.cli._show import tell, write_json

if TYPE_CHECKING:
    from caplens.scale.results import ShardReport

Engine = Annotated[
    str, typer.Option(metavar="NAME", help="With shards: local (processes on this machine) or ray (a cluster).")
]
Workers = Annotated[
    int | None, typer.Option(metavar="N", help="Shards at a time.", show_default="as many as processors")
]
GpusPerWorker = Annotated[float, typer.Option(metavar="N", help="GPUs of each worker of Ray; a part of one, too.")]
ShardPart = Annotated[
    str | None, typer.Option(metavar="K/N", help="Take only the K-th of N parts of the shards, for array jobs.")
]


def show_shards(
    report: ShardReport, layout: Layout, json: str | None, html: Path | None, signatures: bool = False
) -> None:
    """Print the totals of a run over shards; shards that could not be scored are named, and the exit code is 2."""
    write_json(json, report.to_dict() if json is not None else None)
    if html is not None:
        report.to_html(html)
    shards = f"{len(report.shards):,} shards in {report.folder}"
    found = len(report.shards) - report.fresh
    show_result(
        report,
        layout,
        json,
        remarks=[shards if not report.fresh or not found else f"{shards}, {found:,} of them finished before"],
        signatures=[total.signature for total in report.totals.values()] if signatures else (),
        written=(html, json),
    )
    for total in report.totals.values():
        for note in total.notes:
            tell(f"note: {total.name}: {note}")
    for note in report.notes():
        tell(f"note: {note}")
    name_unfinished(report.errors)


def name_unfinished(errors: Mapping[str, str]) -> None:
    """Say which shards are not done and why; then the exit code is 2."""
    for location, reason in errors.items():
        tell(reason if location in reason else f"{location}: {reason}")
    if errors:
        tell(f"{len(errors):,} shards are not done; mend them and run the same command again")
        raise typer.Exit(2)
