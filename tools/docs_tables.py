"""Fills the tables of docs/ and README.md that repeat what the code says: options, verbs, models, figures.

    python -m tools.docs_tables          # the quick blocks
    python -m tools.docs_tables --all    # and those that run metrics or measure installed packages

A block stands between `<!-- kind: words -->` and `<!-- end kind -->`. Whatever is between the two lines is replaced.
tests/docs/test_site.py fails when a quick block and the code disagree.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from tools.docs_extras import ROOT, extras_block, table

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^<!-- (?P<kind>[a-z]+): ?(?P<words>.*?) ?-->\n(?P<body>.*?)^<!-- end (?P=kind) -->$", re.M | re.S)

PAGE_OF = {
    **dict.fromkeys(("chair-i", "chair-s"), "chair"),
    **dict.fromkeys(("div-1", "div-2", "distinct", "mbleu-4", "self-cider", "vocabulary", "novel"), "diversity"),
    **{f"bleu-{n}": "bleu" for n in range(1, 5)},
    **dict.fromkeys(("cider-d", "cider-plain", "cider-r"), "cider"),
    **dict.fromkeys(("em-score", "em-score-ref"), "em-score"),
    **dict.fromkeys(("infometic-p", "infometic-r", "infometic-plus"), "infometic"),
    **dict.fromkeys(("clair", "fleur", "g-veval"), "judge"),
    "ref-clip-s": "clip-s",
    "ref-pac-s": "pac-s",
}
"""Metrics that share a page with another one."""


def page_of(name: str) -> Path:
    """The page of a metric."""
    return DOCS / "metrics" / f"{PAGE_OF.get(name, name)}.md"


# Metrics


def options_block(words: str) -> str:
    """Options, defaults and meanings of some metrics."""
    from caplens.metrics import find_metric
    from caplens.metrics.option_meanings import option_meanings

    metrics = [find_metric(name) for name in words.split()]
    rows: dict[tuple[str, str, str], list[str]] = {}
    for metric in metrics:
        meanings = option_meanings(metric)
        for name, default in metric.option_defaults().items():
            rows.setdefault((f"`{name}`", f"`{default!r}`".replace("'", '"'), meanings[name]), []).append(metric.name)
    if not rows:
        return "None."
    several = len(metrics) > 1
    columns = ["option", "default", "meaning", *(["of"] if several else [])]
    shared = "all" if len(metrics) > 2 else "both"
    return table(
        columns,
        (
            [*row, *([shared if len(names) == len(metrics) else ", ".join(names)] if several else [])]
            for row, names in rows.items()
        ),
    )


def metrics_block(words: str) -> str:
    """Every metric with its page."""
    from caplens.metrics import known_metrics, list_metrics

    rows = []
    for entry in list_metrics():
        metric = known_metrics()[entry["name"]]
        needs = " + ".join(entry["needs"]) or "nothing else"
        if {"image", "video"} <= metric.needs:
            needs = needs.replace("image + ", "").replace(" + video", "").replace("video", "") or ""
            needs = " + ".join(filter(None, [needs, "image or video"]))
        if further := metric.optional_inputs - metric.needs:
            needs += f" ({', '.join(sorted(further))} where given)"
        name = f"[{entry['name']}]({page_of(entry['name']).name})"
        rows.append([name, ", ".join(entry["aliases"]), needs, entry["summary"].rstrip("."), entry["paper"]])
    return table(["metric", "alias", "needs", "what it is", "paper"], rows)


def agreement_block(words: str) -> str:
    """The rows of some metrics in the overview of docs/research/agreement.md, turned on their side."""
    lines = (DOCS / "research" / "agreement.md").read_text("utf-8").split("## Overview\n\n")[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()]
    head, rows = cells[0], {row[0]: row[1:] for row in cells[2:]}
    wanted = [name for name in words.split() if name in rows]
    if not wanted:
        return "Not measured yet: [the page of agreement](../research/agreement.md) says why, set by set."
    sides = []
    for place, title in enumerate(head[1:]):
        values = [rows[name][place] for name in wanted]
        if any(values):
            rating_set, _, figure = title.partition("<br>")
            sides.append([rating_set, figure, *(value or "–" for value in values)])
    return table(["rating set", "figure", *wanted], sides)


def signature_block(words: str) -> str:
    """What some metrics print as their signature on the example captions."""
    import caplens
    from caplens.readers import read

    captions = read(ROOT / "examples" / "captions.jsonl")
    names, *options = words.split("; ")
    given: dict[str, Any] = dict(pair.split("=") for pair in options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = caplens.evaluate(captions, metrics=names.split(), **given)
    return "```text\n" + "\n".join(result.signature for result in report) + "\n```"


# The command line

# Where a verb has a page of its own, or a section of one.
VERB_PAGES = {
    "demo": ("Your first report", "first-report.md"),
    "new-metric": ("Write a metric", "write-a-metric.md"),
    "score": ("Your first report", "first-report.md"),
    "check": ("Check alt texts", "check.md"),
    "explain": ("Explain a caption", "explain.md"),
    "compare": ("Compare systems", "compare.md"),
    "caption": ("Captions and rewards", "captioner.md"),
    "report": ("Many files, many machines", "scale.md"),
    "filter": ("Filter", "scale.md#filter"),
    "generate": ("Train PAC-S", "train.md#pac-s"),
    "bench": ("Agreement with people", "bench.md"),
    "train": ("Train", "train.md"),
    "weights": ("Models and data", "install.md#models-and-data"),
    "idf": ("CIDEr with one picture", "../metrics/cider.md#one-picture"),
    "metrics": ("Metrics", "../metrics/index.md"),
    "doctor": ("Install", "install.md"),
}


def verbs() -> dict[str, Any]:
    """Every verb as click's command, in the order of `caplens --help`."""
    import typer

    from caplens.cli import build_app

    app: Any = typer.main.get_command(build_app())
    return {name: app.commands[name] for name in app.list_commands(None)}


def verbs_block(words: str) -> str:
    """A section for every verb: what it does, where to read more, its arguments and options."""
    parts = []
    for name, command in verbs().items():
        parts.append(f"## {name}\n\n{_help(command)}")
        if name in VERB_PAGES:
            parts.append("See [{}]({}).".format(*VERB_PAGES[name]))
        inner = getattr(command, "commands", None)
        if inner is None:
            parts.append(_parameters(command))
        for word, each in (inner or {}).items():
            parts.append(f"### {name} {word}\n\n{_help(each)}\n\n{_parameters(each)}")
    return "\n\n".join(parts)


def _help(command: Any) -> str:
    """What `--help` says of a verb; its example as code."""
    said, _, example = inspect.cleandoc(command.help or "").partition("Example: ")
    said = " ".join(said.split())
    return f"{said}\n\n```console\n$ {' '.join(example.split())}\n```" if example else said


def _parameters(command: Any) -> str:
    rows = []
    for parameter in command.params:
        if parameter.name == "help":
            continue
        if parameter.param_type_name == "argument":
            name = f"`{(parameter.metavar or parameter.name).upper()}`"
        else:
            name = ", ".join(f"`{word}`" for word in [*parameter.opts, *parameter.secondary_opts])
        optional = parameter.metavar is not None and parameter.metavar.startswith("[")
        rows.append(
            [
                name,
                "required" if parameter.required and not optional else _default(parameter),
                (getattr(parameter, "help", "") or "").rstrip("."),
            ]
        )
    return table(["", "default", "meaning"], rows)


def _default(parameter: Any) -> str:
    if isinstance(getattr(parameter, "show_default", None), str):
        return str(parameter.show_default)
    default = parameter.default
    if default is None or default is False or default == [] or callable(default):
        return ""
    return f"`{getattr(default, 'value', default)}`"


# Models, packages, files


def models_block(words: str) -> str:
    """Every model that `caplens weights fetch` brings."""
    from caplens.storage.weights import models

    return table(
        ["name", "what", "upstream", "license", "size"],
        (
            [f"`{model.name}`", model.what, model.upstream, model.license, f"{model.size / 1e6:.1f} MB"]
            for model in models().values()
        ),
    )


def cards() -> dict[str, str]:
    """Title to text of every card of shipped weights."""
    found = {}
    for path in sorted((ROOT / "src" / "caplens" / "storage" / "shipped").glob("*.md")):
        title, _, text = path.read_text("utf-8").partition("\n")
        found[title.lstrip("# ")] = text.strip()
    return found


def shipped_block(words: str) -> str:
    """The cards of the weights that come with the package."""
    folder = ROOT / "src" / "caplens" / "storage" / "shipped"
    parts = []
    for title, text in cards().items():
        sizes = ", ".join(f"`{name}` {(folder / name).stat().st_size / 1e6:.2f} MB" for name in title.split(", "))
        parts.append(f"### {title}\n\n{sizes}\n\n{text}")
    return "\n\n".join(parts)


def file_block(words: str) -> str:
    """A file of the repository, word for word."""
    path = ROOT / words
    kind = {".py": "python", ".toml": "toml", ".jsonl": "json"}[path.suffix]
    return f"```{kind}\n{path.read_text('utf-8').rstrip()}\n```"


def sets_block(words: str) -> str:
    """Every rating set."""
    from caplens.bench.base import known_sets

    rows = ([f"`{name}`", found.what, found.paper, found.license] for name, found in known_sets().items())
    return table(["set", "what people judged", "paper", "license"], rows)


def columns_block(words: str) -> str:
    """The columns that readers know, by all their names."""
    from caplens.readers import columns

    kinds = {
        "the name of the caption": columns.ID_NAMES,
        "the text to judge": columns.CAPTION_NAMES,
        "what people wrote": columns.REFERENCES_NAMES,
        "a picture": columns.IMAGE_NAMES,
        "a video": columns.VIDEO_NAMES,
    }
    rows = (
        [f"`{first}`", meaning, ", ".join(f"`{name}`" for name in others)]
        for meaning, (first, *others) in kinds.items()
    )
    return table(["column", "what it is", "also called"], rows)


def limits_block(words: str) -> str:
    """How much of a file is read: the fields of `ReadLimits`, each with the text below it."""
    from caplens.readers import ReadLimits

    (limits,) = (node for node in ast.parse(inspect.getsource(ReadLimits)).body if isinstance(node, ast.ClassDef))
    rows = []
    for field, said in pairwise(limits.body):
        if isinstance(field, ast.AnnAssign) and isinstance(said, ast.Expr):
            name = ast.unparse(field.target)
            rows.append([f"`{name}`", f"{getattr(ReadLimits, name):,}", str(ast.literal_eval(said.value)).rstrip(".")])
    return table(["limit", "default", "meaning"], rows)


def settings_block(words: str) -> str:
    """Settings of a training: the fields of its config class, read without importing torch."""
    for path in sorted((ROOT / "src" / "caplens" / "training").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name == words:
                rows = [
                    [f"`{ast.unparse(entry.target)}`", f"`{ast.unparse(entry.value)}`"]
                    for entry in node.body
                    if isinstance(entry, ast.AnnAssign) and entry.value is not None
                ]
                return table(["setting", "default"], rows)
    raise LookupError(f"no training has a class {words}")


def run_block(words: str) -> str:
    """A command and what it prints."""
    command = [sys.executable, "-m", "caplens", *shlex.split(words)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stderr}")
    return f"```console\n$ {words}\n{done.stdout.rstrip()}\n```"


QUICK: dict[str, Callable[[str], str]] = {
    "options": options_block,
    "metrics": metrics_block,
    "agreement": agreement_block,
    "verbs": verbs_block,
    "models": models_block,
    "shipped": shipped_block,
    "file": file_block,
    "sets": sets_block,
    "columns": columns_block,
    "limits": limits_block,
    "settings": settings_block,
}
SLOW: dict[str, Callable[[str], str]] = {"run": run_block, "signature": signature_block, "extras": extras_block}


def pages() -> list[Path]:
    """Every page that may have blocks."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def filled(text: str, kinds: dict[str, Callable[[str], str]]) -> str:
    """A page with its blocks of these kinds made anew."""

    def fill(match: re.Match[str]) -> str:
        kind, words = match["kind"], match["words"]
        if kind not in kinds:
            return match[0]
        start = f"<!-- {kind}: {words}".rstrip()
        return f"{start} -->\n\n{kinds[kind](words)}\n\n<!-- end {kind} -->"

    return BLOCK.sub(fill, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also run metrics and measure packages")
    given = parser.parse_args()
    kinds = {**QUICK, **SLOW} if given.all else QUICK
    for path in pages():
        old = path.read_text("utf-8")
        new = filled(old, kinds)
        if new != old:
            path.write_text(new, "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
