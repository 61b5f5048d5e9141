"""A table of results as text: numbers for people, and the table as csv, LaTeX (booktabs), Markdown or HTML."""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from caplens.core.errors import InputError

TableFormat = Literal["csv", "latex", "markdown", "html"]
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{character: "\\" + character for character in "&%$#_{}"},
        "–": "--",
        "×": r"$\times$",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
    }
)


@dataclass(frozen=True)
class Table:
    """Columns and rows of text; `numbers` names the columns that are set flush right.

    >>> print(Table(("metric", "score"), [["bleu-4", "31.20"]], ("score",)).to_markdown())
    | metric | score |
    |:---|---:|
    | bleu-4 | 31.20 |
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[str] = ()

    def to_csv(self) -> str:
        """Return comma-separated values with a header; what a spreadsheet would run gets an apostrophe."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_inert(cell) for cell in row] for row in self.rows)
        return out.getvalue()

    def to_latex(self) -> str:
        """Return a booktabs tabular."""
        layout = "".join("r" if column in self.numbers else "l" for column in self.columns)
        lines = [
            rf"\begin{{tabular}}{{{layout}}}",
            r"\toprule",
            _latex_row(self.columns),
            r"\midrule",
            *(_latex_row(row) for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def to_markdown(self) -> str:
        """Return a pipe table."""
        rule = "|" + "|".join("---:" if column in self.numbers else ":---" for column in self.columns) + "|"
        rows = ["| " + " | ".join(_markdown_cell(cell) for cell in row) + " |" for row in (self.columns, *self.rows)]
        return "\n".join([rows[0], rule, *rows[1:]])

    def to_html(self) -> str:
        """Return an HTML table, as notebooks show it."""

        def cells(row: Sequence[str], tag: str) -> str:
            aligned = zip(self.columns, row, strict=True)
            return "".join(
                f'<{tag} style="text-align:{"right" if column in self.numbers else "left"}">{html.escape(cell)}</{tag}>'
                for column, cell in aligned
            )

        body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in self.rows)
        return f"<table><thead><tr>{cells(self.columns, 'th')}</tr></thead><tbody>{body}</tbody></table>"

    def to_format(self, name: str) -> str:
        """Return the table in one of the formats of `TableFormat`."""
        if name not in get_args(TableFormat):
            raise InputError(f"there is no format {name!r}", remedy=f"choose one of {', '.join(get_args(TableFormat))}")
        text: str = getattr(self, f"to_{name}")()
        return text


def show_number(value: float, percent: bool) -> str:
    """Return a score for people: two decimals times 100, or three.

    >>> show_number(0.3125, True), show_number(0.3125, False), show_number(float("nan"), True)
    ('31.25', '0.312', 'none')
    """
    if math.isnan(value):
        return "none"
    return f"{value * 100:.2f}" if percent else f"{value:.3f}"


def show_interval(bounds: tuple[float, float], percent: bool) -> str:
    """Return an interval for people.

    >>> show_interval((0.1, 0.25), True)
    '10.00 – 25.00'
    """
    return f"{show_number(bounds[0], percent)} – {show_number(bounds[1], percent)}"


def show_p(value: float, *, bound: bool = False) -> str:
    """Return a p value for people; `bound` says that the true one is at most this, as the draws resolve no less.

    >>> show_p(1 / 1001, bound=True), show_p(0.0421), show_p(0.02499, bound=True), show_p(1.0)
    ('< 0.001', '0.042', '≤ 0.025', '1.000')
    """
    if value < 0.001:
        return "< 0.001"
    return f"≤ {math.ceil(value * 1000 - 1e-9) / 1000:.3f}" if bound else f"{value:.3f}"


def _inert(cell: str) -> str:
    numeric = cell[:1] in "+-" and cell[1:].replace(".", "", 1).isdigit()
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not numeric else cell


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(" ".join(cell.translate(_LATEX).split()) for cell in cells) + r" \\"


def _markdown_cell(cell: str) -> str:
    return " ".join(cell.replace("\\", "\\\\").replace("|", "\\|").split())
