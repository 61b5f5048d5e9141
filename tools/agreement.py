"""Writes docs/research/agreement.md and out/agreement.html from a real run.

    python tools/agreement.py DATA_FOLDER [--budget MINUTES]

Scores are stored, so that a second call only recomputes figures. A metric that is not stored for a set and whose turn
comes after the budget is spent is left out, and the page says so.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from caplens.bench.base import RatingSet, Task, find_sets, known_sets
from caplens.bench.data import DataFolders
from caplens.bench.page import headlines
from caplens.bench.results import BenchReport, Measurement, SetReport
from caplens.bench.run import run
from caplens.bench.score_store import is_stored
from caplens.bench.statistics import AgreementStatistic
from caplens.core.errors import CaplensError, CaplensWarning
from caplens.metrics import expand_groups, known_metrics, load_metric
from caplens.metrics.base import Metric
from caplens.storage.atomic import write_atomically

# From the sets that most papers report to the special ones.
ORDER = (
    "flickr8k-expert", "flickr8k-cf", "composite", "thumb", "pascal-50s-consensus", "pascal-50s-pairs", "abstract-50s",
    "msvd-eval", "foil", "hat", "nocaps-foil", "distraction", "pracegover", "curve-abstract-50s", "curve-pascal-50s",
    "retrieval-flickr8k", "coco-systems",
)  # fmt: skip
RESAMPLES = 500
PERMUTATIONS = 500
CURVE_POINTS = (1, 2, 5, 10, 20, 30, 40, 48)
MARK = {"reproduced": "=", "not reproduced": "≠", "not published": ""}
# Hundreds of thousands of captions: only the quick metrics are scored here, others when their scores are stored.
LARGE = ("curve-abstract-50s", "curve-pascal-50s", "coco-systems")
QUICK = ("bleu-", "rouge-", "cider-", "length", "meteor")
# These say how various captions are, not how good one is, which no rating set is about.
DIVERSITY = ("distinct", "div-1", "div-2", "mbleu-4", "novel", "self-cider", "vocabulary")
# What people come for: the purpose, the set that is nearest to it, and what a metric may ask for.
PURPOSES = (
    ("rank captions of photos, with references", "Flickr8k-Expert", "references"),
    ("rank captions of photos, without references", "Flickr8k-Expert", "image"),
    ("rank what captioning systems write, with references", "Composite", "references"),
    ("see how right and how complete good captions are", "THumB 1.0", "references"),
    ("say which of two captions people prefer", "Pascal-50S, consensus labels", "references"),
    ("the same with one reference", "Pascal-50S by number of references", "references"),
    ("notice one wrong noun", "FOIL", "references"),
    ("find the captions of machines that name what is not there", "HAT", "references"),
    ("judge detailed captions, with a detailed reference", "LongCap-Arena", "references"),
    ("judge captions in Portuguese", "#PraCegoVer triplets", "references"),
    ("judge captions of videos, with references", "MSVD-Eval", "references"),
)
TOO_SLOW = "not scored on this set: this run on two cores had no time left for it"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--budget", type=float, default=60.0, help="minutes for scoring what is not stored yet")
    given = arguments.parse_args()
    warnings.simplefilter("ignore", CaplensWarning)
    data = DataFolders([given.data])
    metrics = _metrics()
    stop = time.monotonic() + 60 * given.budget
    reports, missing = [], {}
    for rating_set in _sets():
        try:
            task = rating_set.load(data)
        except CaplensError as error:
            missing[rating_set.name] = str(error)
            continue
        affordable = [
            metric
            for metric in metrics
            if not metric.takes(task.trials[0])  # which costs nothing, and the report says why
            or _stored(metric, task)
            or (time.monotonic() < stop and (rating_set.name not in LARGE or metric.name.startswith(QUICK)))
        ]
        report = run([rating_set], affordable, data, resamples=RESAMPLES, permutations=PERMUTATIONS).sets[0]
        if not report.scored:
            missing[rating_set.name] = TOO_SLOW
            continue
        report.skipped |= {metric.name: TOO_SLOW for metric in metrics if metric not in affordable}
        reports.append(report)
        print(f"{rating_set.name}: {len(report.scored)} metrics", flush=True)
        _write_page(BenchReport(reports, missing, RESAMPLES, PERMUTATIONS, seed=1))  # nothing is lost on Ctrl-C
    whole = BenchReport(reports, missing, RESAMPLES, PERMUTATIONS, seed=1)
    _write_page(whole)
    Path("out").mkdir(exist_ok=True)
    whole.to_json("out/agreement.json")
    whole.to_html("out/agreement.html")


def _write_page(whole: BenchReport) -> None:
    write_atomically(Path(__file__).parents[1] / "docs" / "research" / "agreement.md", page(whole))


def _sets() -> list[RatingSet]:
    others = (name for name, found in known_sets().items() if name not in ORDER and not found.only_when_named)
    return find_sets([*ORDER, *others])


def _metrics() -> list[Metric]:
    made = []
    for name in expand_groups(["all"]):
        if name in DIVERSITY:
            continue
        try:
            metric = load_metric(name)
            metric.signature_parts()  # loads weights, where there are some
            made.append(metric)
        except CaplensError as error:
            print(f"{name}: {error}")
    return made


def _stored(metric: Metric, task: Task) -> bool:
    return all(is_stored(metric, captions, task.details) for captions in task.trials)


def page(report: BenchReport) -> str:
    """The whole page as Markdown."""
    figures = {
        part.rating_set.title: [_standing(row) for row in part.of(figure.key) if _is_whole(row)]
        for part, figure in headlines(report)
    }
    parts = [
        _head(report),
        purposes(figures),
        _overview(report),
        *(_section(part) for part in report.sets),
        _absent(report),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _head(report: BenchReport) -> str:
    return f"""# How far can a metric be trusted?

Agreement of the metrics in caplens {version("caplens")} with human judgments. This page is written by
`python tools/agreement.py DATA` from a real run; nothing on it is typed by hand.

How to read it. Every figure comes with its 95 % interval from a bootstrap over images ({report.resamples:,}
resamples, seed {report.seed}). The number in brackets is a significance cluster: going down a column, a metric
opens a new cluster when it is significantly worse (paired permutation test over images, {report.permutations:,}
swaps, p < 0.05) than every metric of the cluster above. Two metrics of one cluster cannot be told apart on that
set. “In print” is what papers report: = reproduced within the tolerance (see
`src/caplens/bench/published.json`), ≠ not reproduced, with the difference; nothing where no paper prints it. τ,
ρ and accuracies are × 100.

Figures of metrics that compare with references depend on how many there are and which; those of learned metrics
on the weights, which stand in the signatures (`caplens bench SET --json`). A metric marked † could not score
every caption of the set (pictures that are not here): its figure is on the rest and must not be compared with
the others'.

A metric is not judged fairly by a set on which its rules or weights were chosen; its page in
this folder says which. Metrics of diversity judge many captions together and are not here.
"""


@dataclass(frozen=True)
class Standing:
    """A metric's place in a column."""

    figure: str
    metric: str
    value: str
    interval: str
    cluster: int | None


def _is_whole(row: Measurement) -> bool:
    """Whether the metric scored every caption, so that its figure may be compared."""
    return bool(np.isfinite(row.estimate.value)) and row.used == row.figure.count


def _standing(row: Measurement) -> Standing:
    low, high = (_number(bound, row.figure) for bound in (row.estimate.low, row.estimate.high))
    return Standing(
        row.figure.label, row.metric, _number(row.estimate.value, row.figure), f"{low} to {high}", row.cluster
    )


def _needs(name: str) -> frozenset[str]:
    """What a metric asks for; one that asks for nothing by itself is asked for with references."""
    metric = known_metrics()[name]
    return metric.needs or metric.optional_inputs & {"references"}


def purposes(figures: dict[str, list[Standing]]) -> str:
    """Which metric for which purpose: the best cluster of the set that is nearest to it, best first."""
    body = []
    for purpose, title, given in PURPOSES:
        rows = [row for row in figures.get(title, ()) if _needs(row.metric) == {given}]
        if not rows:
            continue
        best = [row for row in rows if row.cluster == rows[0].cluster]
        quick = next((row for row in rows if row.metric.startswith(QUICK)), None)
        body.append(
            [
                purpose,
                ", ".join(f"`{row.metric}`" for row in best[:3]) + (f" and {len(best) - 3} more" if best[3:] else ""),
                f"{best[0].value} ({best[0].interval})",
                f"`{quick.metric}` {quick.value}" if quick else "–",
                f"{title}, {best[0].figure}",
            ]
        )
    return (
        "## Which metric for which purpose\n\n"
        "Of the metrics that need nothing but what you have, the best significance cluster on the set nearest to your "
        "purpose, best first; and beside it the best that runs without a model. `caplens-score` looks at the picture, "
        "too, where there is one.\n\n"
        + _table(["you want to", "take", "figure of the first", "without models", "measured on"], body)
        + "\nTo find what a caption leaves out or gets wrong, see [explanations](explanations.md); where captions train"
        " on a metric, see [which can be gamed](gameability.md). Language models can [judge](../guide/judges.md),"
        " too.\n"
    )


def _overview(report: BenchReport) -> str:
    columns = headlines(report)
    names: dict[str, list[float]] = {}
    cells: dict[tuple[str, str], str] = {}
    for part, figure in columns:
        rows = [row for row in part.of(figure.key) if np.isfinite(row.estimate.value)]
        for place, row in enumerate(rows):
            names.setdefault(row.metric, []).append(place / max(1, len(rows) - 1))
            cells[row.metric, part.rating_set.name] = _cell(row)
    order = sorted(names, key=lambda name: (-len(names[name]), float(np.mean(names[name]))))
    head = ["metric", *(f"{part.rating_set.title}<br>{figure.label}" for part, figure in columns)]
    body = [[name, *(cells.get((name, part.rating_set.name), "") for part, _ in columns)] for name in order]
    return "## Overview\n\n" + _table(head, body)


def _cell(row: Measurement) -> str:
    mark = "†" if row.used < row.figure.count else ""
    cluster = f" ({row.cluster})" if row.cluster is not None else ""
    return f"{_number(row.estimate.value, row.figure)}{mark}{cluster}"


def _section(part: SetReport) -> str:
    rating_set = part.rating_set
    lines = [f"## {rating_set.title}", "", f"{_sentence(rating_set.what)} {rating_set.paper}.", ""]
    lines += [f"Protocol: {rating_set.protocol}.", "", f"`{rating_set.name}|{part.task.signature}`", ""]
    lines += [f"{_sentence(note)}\n" for note in part.task.notes]
    figures = [figure for figure in part.task.figures if figure.at is None]
    if len(figures) < len(part.task.figures):
        lines.append(_curve(part))
    elif all(type(figure).__name__ == "CorpusStatistic" for figure in figures):
        lines.append(_matrix(part, figures))
    else:
        lines += [_figure(part, figure) for figure in figures]
    lines += [f"≠ {line}.\n" for line in part.differences()]
    if part.skipped:
        reasons: dict[str, list[str]] = {}
        for name, reason in part.skipped.items():
            reasons.setdefault(reason.removeprefix(f"{name} ").removeprefix(f"{name}: "), []).append(name)
        lines += [f"Not measured: {', '.join(names)} ({reason})." for reason, names in reasons.items()]
        lines.append("")
    return "\n".join(lines)


def _figure(part: SetReport, figure: AgreementStatistic) -> str:
    rows = [row for row in part.of(figure.key) if np.isfinite(row.estimate.value)]
    if not rows:
        return ""
    head = [figure.label, "value", "95 % interval", *(["cluster"] if figure.headline else []), "in print"]
    body = []
    for row in rows:
        mark = f" † {row.used:,} of {figure.count:,}" if row.used < figure.count else ""
        interval = f"{_number(row.estimate.low, figure)} to {_number(row.estimate.high, figure)}"
        cluster = [str(row.cluster or "")] if figure.headline else []
        body.append([row.metric + mark, _number(row.estimate.value, figure), interval, *cluster, _in_print(row)])
    return _table(head, body)


def _in_print(row: Measurement) -> str:
    shown = []
    for comparison in row.comparisons:
        published = comparison.published
        difference = "" if comparison.status == "reproduced" else f" ({comparison.difference:+.3g})"
        shown.append(f"{MARK[comparison.status]} {published.value:g}{difference}, {published.source}")
    return "; ".join(shown)


def _curve(part: SetReport) -> str:
    """The number of references across, metrics down; with the authors' value where it differs or agrees."""
    found = {(row.figure.key, row.metric): row for row in part.measured}
    points = [figure for figure in part.task.figures if figure.at in CURVE_POINTS and figure.key.startswith("all,")]
    order = [row.metric for row in part.of(points[-1].key)]
    body = []
    for name in order:
        cells = []
        for figure in points:
            row = found[figure.key, name]
            text = _number(row.estimate.value, figure)
            for comparison in row.comparisons[:1]:
                text += f"<br>{MARK[comparison.status]} {100 * comparison.published.value:.1f}"
            cells.append(text)
        body.append([name, *cells])
    reproduced = [row.status for row in part.measured if row.comparisons]
    summary = (
        f"Of {len(reproduced)} points in print (all categories, 1 to 48 references), "
        f"{reproduced.count('reproduced')} are reproduced within their tolerance.\n"
    )
    return _table(["accuracy by number of references", *(f"{figure.at:g}" for figure in points)], body) + "\n" + summary


def _matrix(part: SetReport, figures: list[AgreementStatistic]) -> str:
    """Systems down, metrics across."""
    found = {(row.figure.key, row.metric): row for row in part.measured}
    names = list(part.scored)
    body = []
    for figure in figures:
        cells = []
        for name in names:
            row = found[figure.key, name]
            text = f"{row.estimate.value * figure.scale:.1f}"
            for comparison in row.comparisons[:1]:
                text += f"<br>{MARK[comparison.status]} {comparison.published.value:g}"
            cells.append(text)
        body.append([figure.key, *cells])
    return _table(["system", *names], body)


def _absent(report: BenchReport) -> str:
    if not report.missing:
        return ""
    head = "## Sets that were not run\n\nWhere files are missing, the loader is tested on a sample in their layout.\n\n"
    return head + "\n".join(f"- {name}: {why.split('; looked')[0]}" for name, why in report.missing.items())


def _number(value: float, figure: AgreementStatistic) -> str:
    return f"{value * figure.scale:.{3 if figure.scale == 1 else 1}f}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _table(head: list[str], body: list[list[str]]) -> str:
    rows = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows) + "\n"


if __name__ == "__main__":
    main()
