"""`caplens train pac-s`: final projections on real and generated positives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, write_json
from caplens.core.optional import require


def command(
    images: Annotated[Path, typer.Option(help="Folder with the pictures.")],
    captions: Annotated[Path, typer.Option(help='Captions: {picture: {"split": train|val|test, "captions": [...]}}.')],
    output: Annotated[Path, typer.Option(help="Folder for features, checkpoint, curve and the tuned weights.")],
    encoder: Annotated[str, typer.Option(help="embedded, or a CLIP backbone such as ViT-B-32.")] = "embedded",
    weights: Annotated[str | None, typer.Option(help="Weights to start from; default: the encoder's own.")] = None,
    more_captions: Annotated[
        list[Path] | None,
        typer.Option(help="Further captions of the same Flickr photos; their test photos are left out."),
    ] = None,
    new_captions: Annotated[
        str | None, typer.Option(help="t': a file of `caplens generate positives`, or 'retrieved' for a stand-in.")
    ] = None,
    new_images: Annotated[
        str | None,
        typer.Option(
            help="v': a folder of `caplens generate positives`, or a stand-in: 'crops', 'crops-1000' for so many."
        ),
    ] = None,
    features: Annotated[Path | None, typer.Option(help="Where features are kept; default: inside the output.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    patience: Annotated[int, typer.Option(help="Stop after so many iterations without a better loss.")] = 1500,
    allow_pickle: Annotated[bool, typer.Option(help="Read pickled weights, with weights_only.")] = False,
    json: JsonTarget = None,
) -> None:
    """Tune the final projections on pictures, captions and generated positives (PAC-S)."""
    require("torch", "matplotlib", purpose="training PAC-S")
    from caplens.training.pac import PacConfig
    from caplens.training.pac_run import train_pac

    with progress_bar() as progress:
        result = train_pac(
            images,
            captions,
            more_captions or [],
            output,
            PacConfig(seed=seed, patience=patience),
            encoder=encoder,
            weights=weights,
            new_captions=new_captions,
            new_images=new_images,
            features=features,
            allow_pickle=allow_pickle,
            progress=progress,
        )
    write_json(json, result)
    say(json, f"stopped after {result['iterations']} iterations, best at {result['best iteration']}")
    say(json, f"weights: {result['weights']}")
