"""csv and tsv: a header, then rows; commas, semicolons or tabs between the cells.

References are a json list in one cell, texts with ``|`` between, or columns reference_1, reference_2, …
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, cast

from caplens.core.errors import InputError
from caplens.readers.columns import ColumnChoice, Columns, find_columns, listed
from caplens.readers.limits import ReadLimits
from caplens.readers.rows import Record, Row, split_references
from caplens.readers.source import Source

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_TOO_LONG = "field larger than field limit"


def read(source: Source, choice: ColumnChoice) -> Iterator[Row]:
    table = Table(source)
    columns = table_columns(table.header, choice, f"{source.name}, line {table.header_line}")
    for number, (place, cells) in enumerate(table.rows(), 1):
        yield table_record(cells, columns, place, number, source.folder, source.limits).row_of(columns)


def refuse_repeated(names: Sequence[str], where: str) -> None:
    """Refuse a header in which a name stands twice: nobody can tell which of the two is meant."""
    first: dict[str, int] = {}
    for position, name in enumerate(names, 1):
        if name and first.setdefault(name, position) < position:
            raise InputError(
                f"the column {name[:60]!r} stands twice (columns {first[name]} and {position})",
                where=where,
                remedy="rename or drop one of them",
            )


def table_columns(names: Sequence[str], choice: ColumnChoice, where: str) -> Columns:
    """The columns of a table with these names; one must hold captions or references."""
    refuse_repeated(names, where)
    columns = find_columns(names, choice, where)
    if columns.caption is None and columns.references is None and not columns.numbered_references:
        raise InputError(
            f"no column we know as a caption or as references, only {listed(names)}",
            where=where,
            remedy="start with a header such as id,caption,references, or choose with --caption-column",
        )
    return columns


def table_record(
    cells: dict[str, Any], columns: Columns, place: str, number: int, folder: str, limits: ReadLimits
) -> Record:
    """A row of a table as named values: an empty cell is an empty caption, and in every other column "not given"."""
    fields = {name: cell for name, cell in cells.items() if cell not in ("", None) or name == columns.caption}
    references = fields.get(columns.references or "")
    if isinstance(references, str):
        fields[columns.references or ""] = split_references(references, place, limits)
    return Record(fields, place, number, folder)


class Table:
    """A csv file: its header, and its rows by column."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._line = 0
        self._row_bytes = 0
        self._row_lines: list[str] = []
        self._lines = self._limited_lines()
        first = next((line for line in self._lines if line.strip()), None)
        if first is None:
            raise InputError("the file is empty", where=source.name)
        self._row_lines = [first]
        self.delimiter = _delimiter(first, source.suffix)
        self._reader = csv.reader(chain([first], self._lines), delimiter=self.delimiter, strict=True)
        self.header = [name.strip() for name in self._next_row(0) or ()]
        self.header_line = self._line

    def rows(self) -> Iterator[tuple[str, dict[str, str | None]]]:
        """Place and cells of every row; a row may end early, but not go on beyond the header."""
        number = 0
        while (row := self._next_row(number)) is not None:
            if not row:
                continue  # a blank line
            number += 1
            place = f"{self.source.name}, row {number} (line {self._line})"
            if len(row) > len(self.header):
                raise InputError(
                    f"{len(row)} cells for {len(self.header)} columns",
                    where=place,
                    remedy=f"put text that holds {_DELIMITERS[self.delimiter]} into quotes",
                )
            yield place, dict(zip(self.header, row, strict=False))

    def _next_row(self, number: int) -> list[str] | None:
        try:
            try:
                return next(self._reader, None)
            except csv.Error as error:
                if not str(error).startswith(_TOO_LONG):
                    raise
                return read_row(chain(self._row_lines, self._lines), self.delimiter)
        except csv.Error as error:
            problem = str(error).partition(" - ")[0]  # what follows is advice for programmers
            raise InputError(f"not csv: {problem}", where=f"{self.source.name}, row {number + 1}") from None
        finally:
            self._row_bytes = 0
            self._row_lines = []

    def _limited_lines(self) -> Iterator[str]:
        """Lines, as many as one row may have: an open quote would swallow the rest of the file."""
        for number, line in self.source.lines():
            self._line = number
            self._row_bytes += len(line)
            self._row_lines.append(line)
            self.source.budget.check_field(self._row_bytes, "one row", f"{self.source.name}, up to line {number}")
            yield line


def read_row(lines: Iterable[str], delimiter: str) -> list[str]:
    """Return the cells of the row that begins here, however long they are.

    The csv module reads the same, and faster, but its limit on a cell is one for the whole process: not ours to raise.

    >>> read_row(['"one\\n', '""two"" three",four\\n', "next\\n"], ",")
    ['one\\n"two" three', 'four']
    """
    cells: list[str] = []
    parts: list[str] = []
    end_of_cell = re.compile(rf"[{delimiter}\r\n]|$")
    quoted = False
    for line in lines:
        at = 0
        while True:
            if not quoted and line.startswith('"', at):
                quoted, at = True, at + 1
            if quoted:
                end = line.find('"', at)
                if end < 0:
                    parts.append(line[at:])
                    break  # it goes on in the next line
                parts.append(line[at:end])
                if line.startswith('"', end + 1):
                    parts.append('"')
                    at = end + 2
                    continue
                quoted, at = False, end + 1
            else:
                end = cast(re.Match[str], end_of_cell.search(line, at)).start()
                parts.append(line[at:end])
                at = end
            cells.append("".join(parts))
            parts.clear()
            if line.startswith(delimiter, at):
                at += 1
                continue
            if line[at:].strip("\r\n"):
                raise csv.Error(f"{delimiter!r} expected after a cell")
            return cells
    raise csv.Error("unexpected end of data")


def _delimiter(header: str, suffix: str) -> str:
    """What stands between the cells: that which divides the header into the most columns.

    >>> _delimiter('id;"caption, short";references', ".csv")
    ';'
    """
    preferred = "\t" if suffix == ".tsv" else ","

    def count(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter), []))
        except csv.Error:
            return 0

    return max(sorted(_DELIMITERS, key=lambda delimiter: delimiter != preferred), key=count)
