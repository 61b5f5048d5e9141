"""`caplens train composite`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, write_json


def command(
    human: Annotated[Path, typer.Option(help="Captions by people, five per image: any file of references.")],
    machine: Annotated[Path, typer.Option(help="Captions by machines for the same images: a file of references too.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for weights, curve and checkpoint.")],
    config: Annotated[
        Path | None, typer.Option(help="A toml file with settings; docs/composite.md lists them.")
    ] = None,
    json: JsonTarget = None,
) -> None:
    """Train the metric caplens on captions by people and machines; goes on where an earlier run stopped."""
    from caplens.readers import read_references
    from caplens.training.composite import CompositeConfig, train_composite
    from caplens.training.config import read_config

    with progress_bar() as progress:
        settings = read_config(config, CompositeConfig)
        network = train_composite(read_references(human), read_references(machine), output, settings, progress)
    write_json(json, {"weights": str(output / "caplens.safetensors"), **network.about})
    say(json, f"{output / 'caplens.safetensors'}: {network.about['right_order']} of held-out pairs in the right order")
