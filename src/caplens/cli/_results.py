"""How verbs show a result: a table for people, or csv, LaTeX or Markdown alone for a file or a pipe."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import say, show_table, tell
from caplens.evaluation.tabular import Tabular


class Layout(StrEnum):
    """What a table can be printed as."""

    table = "table"
    csv = "csv"
    latex = "latex"
    markdown = "markdown"


Format = Annotated[
    Layout,
    typer.Option(
        "--format", metavar="FORMAT", help="What to print: a table with its remarks, or csv, latex or markdown alone."
    ),
]
Signatures = Annotated[
    bool, typer.Option("--signatures", help="Print what went into every number (always in --json and on the page).")
]


def show_result(
    result: Tabular,
    layout: Layout,
    json_target: str | None,
    remarks: Iterable[str] = (),
    signatures: Iterable[str] = (),
    written: Iterable[Path | str | None] = (),
) -> None:
    """Print a result's table with what belongs to it; in another format than `table`, the table alone."""
    lines = [*remarks, *signatures, *(f"wrote {target}" for target in written if target not in (None, "-"))]
    if layout is Layout.table:
        for title, part in result.tables().items():
            show_table(json_target, part.columns, part.rows, right=part.numbers, title=title)
        for line in lines:
            say(json_target, line)
        return
    for line in result.table().to_format(layout).rstrip("\n").split("\n"):
        say(json_target, line)
    for line in lines:  # standard output is the table's alone
        tell(line)
