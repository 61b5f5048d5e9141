"""`caplens new-metric`: the skeleton of a package that adds a metric, with its test."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, say, write_json

TEMPLATES = ("pyproject.toml", "README.md", "metric.py", "test_metric.py")


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the metric is to be called, such as vowel-share.")],
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to write.", show_default="caplens-NAME in the current folder"),
    ] = None,
    json: JsonTarget = None,
) -> None:
    """Start a metric of your own: a package with one metric and its test, ready to install.

    Example: caplens new-metric vowel-share
    """
    from caplens.core.errors import InputError
    from caplens.metrics import known_metrics
    from caplens.storage.atomic import write_atomically

    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise InputError(
            f"{name!r} is no name for a metric", remedy="use small letters, digits and hyphens: vowel-share"
        )
    if name in known_metrics():
        raise InputError(f"there is a metric {name!r} already", remedy="choose another name")
    folder = output or Path(f"caplens-{name}")
    if folder.exists() and any(folder.iterdir()):
        raise InputError("this folder is not empty", where=str(folder), remedy="give another --output")
    module = f"caplens_{name.replace('-', '_')}"
    words = {"NAME": name, "MODULE": module, "CLASS": "".join(part.capitalize() for part in name.split("-"))}
    targets = {"metric.py": f"{module}.py", "test_metric.py": f"test_{module}.py"}
    written = []
    for template in TEMPLATES:
        text = (files("caplens.cli") / "templates" / f"{template}.txt").read_text("utf-8")
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        target = folder / targets.get(template, template)
        write_atomically(target, text)
        written.append(str(target))
    write_json(json, {"folder": str(folder), "files": written})
    for path in written:
        say(json, f"wrote {path}")
    say(json, f"try it:     caplens score captions.jsonl -m {folder / targets['metric.py']}:{words['CLASS']}")
    shown = folder if folder.is_absolute() else f"./{folder}"
    say(json, f"install it: pip install {shown} && caplens metrics {name}")
