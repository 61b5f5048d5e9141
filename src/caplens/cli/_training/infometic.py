"""`caplens train infometic`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, write_json
from caplens.core.optional import require


def command(
    images: Annotated[Path, typer.Option(help="Folder with the pictures.")],
    captions: Annotated[Path, typer.Option(help='Captions: {picture: {"split": train|val|test, "captions": [...]}}.')],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for features, checkpoint, curve and weights.")],
    more_captions: Annotated[
        list[Path] | None,
        typer.Option(help="Further captions of the same Flickr photos; their test photos are left out."),
    ] = None,
    encoder: Annotated[str, typer.Option(help="embedded, or a CLIP backbone such as ViT-B-32.")] = "embedded",
    regions: Annotated[
        str, typer.Option(help="detector, grid, a file of boxes, or a transformers detector.")
    ] = "detector",
    features: Annotated[Path | None, typer.Option(help="Where features are kept; default: inside the output.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A toml file with settings; docs/guide/train.md lists them.")
    ] = None,
    json: JsonTarget = None,
) -> None:
    """Train InfoMetIC's network over a frozen encoder; goes on where an earlier run stopped."""
    require("torch", "matplotlib", purpose="training InfoMetIC")
    from caplens.training.config import read_config
    from caplens.training.infometic import InfoMeticConfig
    from caplens.training.infometic_run import train_infometic

    with progress_bar() as progress:
        result = train_infometic(
            images,
            captions,
            more_captions or [],
            output,
            read_config(config, InfoMeticConfig),
            encoder=encoder,
            regions=regions,
            features=features,
            progress=progress,
        )
    write_json(json, result)
    say(json, f"stopped after {result['steps']} steps, best at {result['best step']}")
    say(json, f"weights: {result['weights']}")
