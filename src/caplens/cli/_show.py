"""What all verbs share: where json goes, tables for people or pipes, progress bars on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from caplens.core.plain_json import json_text
from caplens.core.progress import Progress, silent
from caplens.storage.atomic import write_atomically

JsonTarget = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the result as json; without FILE (or with -) to standard output."
    ),
]


def write_json(target: str | None, value: Any) -> None:
    """Write a verb's result where `--json` said; nothing if it was not given."""
    if target is None:
        return
    text = json_text(value) + "\n"
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_atomically(target, text)


def say(json_target: str | None, text: str = "") -> None:
    """A line for people; silent when standard output belongs to json."""
    if json_target != "-":
        typer.echo(text)


def show_table(
    json_target: str | None,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    title: str = "",
) -> None:
    """A rich table on a terminal, aligned plain text elsewhere; `right` names the columns of numbers."""
    if json_target == "-":
        return
    if not sys.stdout.isatty():
        if title:
            typer.echo(title)
        for line in plain_table(columns, rows, right):
            typer.echo(line)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: brackets in a caption are not markup
    Console().print(table)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> list[str]:
    """Lines of aligned columns.

    >>> print("\\n".join(plain_table(["metric", "score"], [["bleu-4", "31.20"], ["wmd", "5.00"]], right=["score"])))
    metric  score
    bleu-4  31.20
    wmd      5.00
    """
    cells = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ).rstrip()
        for row in cells
    ]


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A `Progress` that draws bars on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def advance(task: str, done: int, total: int) -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(task, total=total)
            bars.update(tasks[task], completed=done, total=total)

        yield advance
