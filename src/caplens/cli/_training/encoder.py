"""`caplens train encoder`: the heads of the embedded image-text encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, write_json
from caplens.core.optional import require


def command(
    images: Annotated[Path, typer.Option(help="Folder with the pictures.")],
    captions: Annotated[Path, typer.Option(help='Captions: {picture: {"split": train|val|test, "captions": [...]}}.')],
    output: Annotated[Path, typer.Option(help="Folder for features, checkpoint, curve and heads.safetensors.")],
    more_captions: Annotated[
        list[Path] | None,
        typer.Option(help="Further captions of the same Flickr photos; their test photos are left out."),
    ] = None,
    features: Annotated[Path | None, typer.Option(help="Where features are kept; default: inside the output.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    epochs: Annotated[int, typer.Option(help="Passes over the training pictures.")] = 40,
    json: JsonTarget = None,
) -> None:
    """Train the heads of the embedded encoder: under an hour on two cores, nearly all of it features, and resumable."""
    require("torch", "matplotlib", purpose="training an encoder")
    from caplens.training.encoder import EncoderConfig, train_encoder

    config = EncoderConfig(seed=seed, epochs=epochs)
    with progress_bar() as progress:
        reached = train_encoder(images, captions, more_captions or [], output, config, features, progress)
    write_json(json, reached)
    for split in ("val", "test"):
        for name, value in reached.get(split, {}).items():
            say(json, f"{split}: {name} {100 * value:.1f}")
    say(json, f"heads: {output / 'heads.safetensors'}")
