"""What all verbs share: where json goes, tables for people or pipes, progress bars on a terminal.

Whatever a verb prints goes through this file, which makes it printable: ids, paths and captions are other people's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from caplens.core.plain_json import json_pieces
from caplens.core.progress import Progress, silent
from caplens.core.terminal_text import ascii_json, printable, printable_json
from caplens.storage.atomic import atomic_path

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
    if target == "-":
        pieces = (printable_json(piece) for piece in json_pieces(value))
        if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":  # who reads json takes it for utf-8
            pieces = (ascii_json(piece) for piece in pieces)
        sys.stdout.writelines(pieces)
        sys.stdout.write("\n")
        sys.stdout.flush()
        return
    with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json_pieces(value))
        file.write("\n")


def say(json_target: str | None, text: str = "") -> None:
    """A line for people; silent when standard output belongs to json."""
    say_as_it_is(json_target, printable(text))


def say_as_it_is(json_target: str | None, line: str) -> None:
    """A line that was made printable before colors of our own went into it."""
    if json_target != "-":
        typer.echo(line)


def tell(text: str) -> None:
    """A line for people on standard error: what went wrong, or what they should know."""
    typer.echo(printable(text), err=True)


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
    columns, right = [printable(column) for column in columns], [printable(column) for column in right]
    rows = [[printable(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for line in [title] * bool(title) + plain_table(columns, rows, right):
            say(json_target, line)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Text: brackets in a caption are not markup.
    heading = Text(printable(title)) if title else None
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(Text(column), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> list[str]:
    """Lines of aligned columns.

    >>> print("\\n".join(plain_table(["metric", "score"], [["bleu-4", "31.20"], ["wmd", "5.00"]], right=["score"])))
    metric  score
    bleu-4  31.20
    wmd      5.00
    """
    cells = [list(columns), *(list(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
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

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def advance(task: str, done: int, total: int) -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(printable(task), total=total)
            bars.update(tasks[task], completed=done, total=total)

        yield advance
