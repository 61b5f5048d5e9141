"""Tables as text: what each format must escape, and how numbers are shown."""

from __future__ import annotations

import csv
import io

import pytest

from caplens.core.errors import InputError
from caplens.core.tables import Table, show_p

NASTY = Table(
    ("metric", "score"),
    [["a|b_c & 50 %", "1.00"], ["=cmd()", "-0.52"], ["x\ny\\z <b>", "+3.10"], ["{$#^~}", "10 – 25"]],
    ("score",),
)


def test_csv_is_read_back_and_never_runs_in_a_spreadsheet() -> None:
    rows = list(csv.reader(io.StringIO(NASTY.to_csv())))
    assert rows[0] == ["metric", "score"]
    assert rows[1] == ["a|b_c & 50 %", "1.00"]
    assert rows[2] == ["'=cmd()", "-0.52"]  # a number keeps its sign
    assert rows[3] == ["x\ny\\z <b>", "+3.10"]


def test_latex_escapes_what_latex_reads() -> None:
    text = NASTY.to_latex()
    assert r"\begin{tabular}{lr}" in text
    assert r"a|b\_c \& 50 \% & 1.00 \\" in text
    assert r"x y\textbackslash{}z \textless{}b\textgreater{} & +3.10 \\" in text
    assert r"\{\$\#\textasciicircum{}\textasciitilde{}\} & 10 -- 25 \\" in text
    assert [line for line in text.splitlines() if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]


def test_markdown_keeps_one_line_per_row() -> None:
    lines = NASTY.to_markdown().splitlines()
    assert len(lines) == 2 + len(NASTY.rows)
    assert lines[1] == "|:---|---:|"
    assert lines[2] == "| a\\|b_c & 50 % | 1.00 |"


def test_html_escapes() -> None:
    assert "&lt;b&gt;" in NASTY.to_html()
    assert "<b>" not in NASTY.to_html()


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="no format 'pdf'; choose one of csv, latex"):
        NASTY.to_format("pdf")


@pytest.mark.parametrize(
    ("value", "bound", "shown"),
    [(1 / 1001, True, "< 0.001"), (2 / 1001, False, "0.002"), (1 / 101, True, "≤ 0.010"), (1e-5, False, "< 0.001")],
)
def test_a_p_value_at_the_floor_is_a_bound(value: float, bound: bool, shown: str) -> None:
    assert show_p(value, bound=bound) == shown
