"""`caplens train nneval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, write_json
from caplens.core.optional import require


def command(
    human: Annotated[Path, typer.Option(help="Captions by people, five per image: any file of references.")],
    machine: Annotated[Path, typer.Option(help="Captions by machines for the same images: a file of references too.")],
    rated: Annotated[Path, typer.Option(help="Rated captions to stop by: jsonl with caption, references, rating.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for weights, curve and checkpoint.")],
    config: Annotated[
        Path | None, typer.Option(help="A toml file with settings; docs/guide/train.md lists them.")
    ] = None,
    leave_out: Annotated[list[str] | None, typer.Option(help="Train without this feature (ablation).")] = None,
    json: JsonTarget = None,
) -> None:
    """Train NNEval to tell people's captions from machines'; goes on where an earlier run stopped."""
    require("torch", "matplotlib", purpose="training NNEval")
    from caplens.readers import read_references
    from caplens.training.config import read_config
    from caplens.training.nneval import NNEvalConfig, read_rated, train_nneval

    with progress_bar() as progress:
        network = train_nneval(
            read_references(human),
            read_references(machine),
            read_rated(rated),
            output,
            read_config(config, NNEvalConfig),
            progress,
            leave_out or (),
        )
    write_json(json, {"weights": str(output / "nneval.safetensors"), **network.about})
    say(json, f"{output / 'nneval.safetensors'}: Kendall {network.about['kendall']} at epoch {network.about['epoch']}")
