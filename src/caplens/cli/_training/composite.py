"""`caplens train composite`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, write_json
from caplens.core.optional import require


def command(
    human: Annotated[
        list[Path], typer.Option(help="Captions by people, five per picture; repeat for more collections.")
    ],
    usual: Annotated[Path, typer.Option(help="Captions of other pictures, which say what is usual: the bank.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the weights.")],
    machine: Annotated[Path | None, typer.Option(help="Captions by machines for pictures of any of them.")] = None,
    images: Annotated[Path | None, typer.Option(help="Folder with pictures of any of them.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A toml file with settings; docs/guide/train.md lists them.")
    ] = None,
    json: JsonTarget = None,
) -> None:
    """Train the metric caplens on captions by people and machines; features are computed once and kept."""
    require("matplotlib", purpose="training the composite")
    from caplens.readers import read_references
    from caplens.training.composite import train_composite
    from caplens.training.composite_trials import CompositeConfig
    from caplens.training.config import read_config

    with progress_bar() as progress:
        settings = read_config(config, CompositeConfig)
        collections = [read_references(path) for path in human]
        made = read_references(machine) if machine is not None else {}
        network = train_composite(collections, made, read_references(usual), images, output, settings, progress)
    write_json(json, {"weights": str(output / "caplens.safetensors"), **network.about})
    say(json, f"{output / 'caplens.safetensors'}: {network.about['held_out_right_order']} of pairs in the right order")
    named = zip(network.features, network.layers[0][0][:, 0], strict=True)
    for name, weight in named:
        say(json, f"  {weight:8.3f}  {name}")
