"""`caplens weights`: models and data files that others published, by name."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, show_table, write_json

app = typer.Typer(help="List, fetch and find model weights and data files.", no_args_is_help=True)


@app.command("list")
def list_weights(json: JsonTarget = None) -> None:
    """Every model that can be fetched by name, with its license and whether it is here.

    Example: caplens weights list
    """
    from caplens.storage import weights

    listed: list[dict[str, Any]] = [
        {
            "name": model.name,
            "what": model.what,
            "upstream": model.upstream,
            "license": model.license,
            "carriers": [f"{carrier.package} {carrier.version}" for carrier in model.carriers],
            "megabytes": round(model.size / 1e6, 1),
            "path": None if (path := weights.find(model.name)) is None else str(path),
        }
        for model in weights.models().values()
    ]
    write_json(json, listed)
    rows = [
        [entry["name"], f"{entry['megabytes']} MB", "yes" if entry["path"] else "no", entry["license"], entry["what"]]
        for entry in listed
    ]
    show_table(json, ["weights", "size", "here", "license", "what they are"], rows)


PICTURES = ("dinov2-vits14", "tinyvit-5m", "all-MiniLM-L6-v2", "efficientdet-lite0", "en_core_web_md", "wordnet-3.0")


class Purpose(StrEnum):
    """What weights can be fetched for."""

    check = "check"
    demo = "demo"
    test = "test"

    def names(self) -> tuple[str, ...]:
        """Return the weights that it needs."""
        if self is Purpose.check:
            return (*PICTURES, "clip-vit-b-16-vision")
        demo = (*PICTURES, "meteor", "glove-6b-50d", "coco-captions-2014")
        if self is Purpose.demo:
            return demo
        clip = ("clip-vocabulary", "clip-vit-b-16-vision", "clip-vit-b-16-coco-names")
        return (*demo, *clip, "en_core_web_sm", "all-mpnet-base-v2", "multilingual-e5-small")


@app.command()
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAMES]...", help="Names from `caplens weights list`, or owner/model on the hub."),
    ] = None,
    purpose: Annotated[
        Purpose | None, typer.Option("--for", metavar="JOB", help="Everything that a job needs: check, demo or test.")
    ] = None,
    json: JsonTarget = None,
) -> None:
    """Download models, check their sums, and keep them; what is here and whole is not downloaded again.

    Example: caplens weights fetch --for demo
    """
    from caplens.core.errors import InputError
    from caplens.storage import weights

    wanted = dict.fromkeys([*(names or ()), *(purpose.names() if purpose else ())])
    if not wanted:
        raise InputError("nothing to fetch was named", remedy="`caplens weights list` shows what there is")
    paths: dict[str, str] = {}
    for name in wanted:
        with progress_bar() as progress:
            paths[name] = str(weights.fetch(name, progress))
        say(json, f"{name}: {paths[name]}")
    write_json(json, paths)


@app.command()
def path(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `caplens weights list`.")],
    json: JsonTarget = None,
) -> None:
    """Print where a model is; an error with the remedy if it is not here.

    Example: caplens weights path meteor
    """
    from caplens.storage import weights

    location = str(weights.require(name))
    write_json(json, {name: location})
    say(json, location)
