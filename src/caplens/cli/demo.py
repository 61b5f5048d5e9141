"""`caplens demo`: the main job of every metric family on twelve pictures that come along, as two pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caplens.cli._results import Layout, Signatures, show_result
from caplens.cli._show import JsonTarget, progress_bar, say, show_table, tell, write_json
from caplens.cli.weights import Purpose
from caplens.core.progress import Progress

if TYPE_CHECKING:
    from caplens.evaluation.compare import Comparison

METRICS = (
    *("bleu-4", "rouge-l", "meteor", "cider-d", "spice"),  # the classical ones
    *("cider-r", "nneval", "pac-s", "infometic"),  # those of the four papers
    *("clip-s", "sent-sim", "caplens-score"),
)
COMPARED = ("cider-r", "meteor", "nneval", "pac-s", "infometic", "caplens-score")


def command(
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the pages.")] = Path("out"),
    signatures: Signatures = False,
    json: JsonTarget = None,
) -> None:
    """Show what caplens does: score two captioning systems on twelve pictures, compare them, explain every caption.

    Data that is missing is fetched first, once (about 500 MB); after that nothing is downloaded.

    Example: caplens demo --output demo
    """
    from caplens.evaluation.compare import compare
    from caplens.evaluation.evaluate import evaluate
    from caplens.readers import read

    with progress_bar() as progress:
        fetch_missing(Purpose.demo.names(), progress)
        folder = examples_folder()
        system_a = read(folder / "captions.jsonl")
        system_b = read(folder / "captions_b.jsonl", references=folder / "captions.jsonl", images=folder / "images")
        report = evaluate(system_a, metrics=METRICS, encoder="embedded", progress=progress)
        comparison = compare(
            {"system A": system_a, "system B": system_b}, metrics=COMPARED, encoder="embedded", progress=progress
        )
        page, board = output / "demo.html", output / "demo-compare.html"
        progress("writing pages", 0, 2)
        report.to_html(page, title="caplens demo: system A")
        progress("writing pages", 1, 2)
        comparison.to_html(board, title="caplens demo: two systems")
        progress("writing pages", 2, 2)
    write_json(json, {"score": report.to_dict(), "compare": comparison.to_dict()})
    say(json, "System A on twelve pictures, against five references each:")
    show_result(report, Layout.table, json, signatures=[result.signature for result in report] if signatures else ())
    say(json)
    say(json, "Is system B better, on the same pictures?")
    columns = ("metric", *comparison.systems, "difference", "p (Holm)", "verdict")
    show_table(json, columns, _side_by_side(comparison), right=columns[1:-1])
    say(json)
    say(json, f"Wrong words, things left out, every score: open {page}")
    say(json, f"Where the two systems differ:              open {board}")
    if report.errors or comparison.errors:
        for name, reason in {**report.errors, **comparison.errors}.items():
            tell(f"{name} was not computed: {reason}")
        raise typer.Exit(2)


def _side_by_side(comparison: Comparison) -> list[list[str]]:
    """One row per metric: both scores, how far they are apart, and whether that is more than chance."""
    rows = []
    for title, table in comparison.tables().items():
        by_system = {row[1]: row for row in table.rows}
        first, second = (by_system[name] for name in comparison.systems)
        rows.append([title, first[2], second[2], *second[4:]])
    return rows


def fetch_missing(names: Sequence[str], progress: Progress) -> None:
    """Fetch what is not here yet, one model after the other."""
    from caplens.storage import weights

    missing = [name for name in names if weights.find(name) is None]
    for number, name in enumerate(missing):
        progress(f"fetching {name}", number, len(missing))
        weights.fetch(name, progress)
    if missing:
        progress("fetching", len(missing), len(missing))


def examples_folder() -> Path:
    """Return the folder of the examples, which come with the package."""
    return Path(__file__).parent / "examples"
