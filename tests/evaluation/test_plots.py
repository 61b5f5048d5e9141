"""Every result draws itself: what is in the figure is what is in the result."""

from __future__ import annotations

from typing import Any

import pytest

import caplens
from caplens.core.errors import InputError
from caplens.evaluation.plots import Panel, Point, draw

pytest.importorskip("matplotlib")
CANDIDATES = ["a cat on a mat", "two dogs run", "a bird in the sky"]
REFERENCES = [["a cat on the mat", "the cat"], ["two dogs"], ["one bird flies"]]


def content(figure: Any) -> list[tuple[str, dict[str, float]]]:
    """Title and numbers of every panel, read off the figure."""
    found = []
    for axis in figure.axes:
        labels = [label.get_text() for label in axis.get_yticklabels()]
        (dots,) = [line for line in axis.lines if line.get_marker() == "o"]
        found.append((axis.get_title(loc="left"), dict(zip(labels, dots.get_xdata(), strict=True))))
    return found


def intervals(axis: Any) -> list[tuple[float, ...]]:
    return [
        tuple(line.get_xdata()) for line in axis.lines if line.get_linewidth() == 1.5 and len(line.get_xdata()) == 2
    ]


def test_a_report() -> None:
    report = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["bleu-1", "rouge-l", "length"])
    figure: Any = report.plot()
    (percents, others) = content(figure)
    assert percents == (
        "score ×100, 95 % interval",
        {name: 100 * report[name].score for name in ("bleu-1", "rouge-l")},
    )
    assert others == ("score, 95 % interval", {"length": report["length"].score})
    assert intervals(figure.axes[1]) == [report.intervals()["length"]]
    assert figure._repr_png_().startswith(b"\x89PNG")  # what a notebook asks for


def test_a_comparison_has_a_panel_per_metric_and_lines_between_ranks() -> None:
    systems = {"poor": ["x"] * 60, "good": CANDIDATES * 20, "same": CANDIDATES * 20}
    found = caplens.compare(systems, REFERENCES * 20, metrics=["rouge-l", "bleu-1"], resamples=200)
    figure: Any = found.plot()
    for (title, numbers), metric in zip(content(figure), found.metrics.values(), strict=True):
        assert title == f"{metric.name} ×100"
        assert list(numbers) == ["good", "same", "poor"]
        assert numbers == {system.system: 100 * system.score for system in metric.systems}
    assert [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_linewidth() == 0.6] == [1.5]


def test_notebooks_show_the_table() -> None:
    report = caplens.evaluate(["a <b>"], [["a"]], metrics=["rouge-l"])
    found = caplens.compare({"<i>": CANDIDATES, "b": CANDIDATES}, REFERENCES, metrics=["rouge-l"], resamples=20)
    assert report._repr_html_().startswith("<table>")
    assert "&lt;i&gt;" in found._repr_html_()


def test_nothing_to_draw() -> None:
    with pytest.raises(InputError, match="no number to plot"):
        draw([Panel("empty", []), Panel("unknown", [Point("a", float("nan"))])])
    figure = draw([Panel("empty", []), Panel("one", [Point("a", 1.0, (float("nan"), float("nan")))])])
    assert content(figure) == [("one", {"a": 1.0})]
    assert intervals(figure.axes[0]) == []
