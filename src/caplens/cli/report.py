"""`caplens report`: what a folder of scored shards adds up to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._results import Format, Layout, Signatures
from caplens.cli._shards import show_shards
from caplens.cli._show import JsonTarget


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder that `caplens score SHARDS --output` has filled.")
    ],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with histograms, the best and the worst.")
    ] = None,
    format: Format = Layout.table,
    signatures: Signatures = False,
    json: JsonTarget = None,
) -> None:
    """Add up scored shards: corpus scores and intervals from the statistics that are stored with the captions.

    Example: caplens report scores --html scores.html
    """
    from caplens.scale.results import ShardReport

    show_shards(ShardReport.open(folder), format, json, html, signatures)
