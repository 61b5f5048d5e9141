"""`caplens train captioner`: cross entropy, then a metric as the teacher."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, write_json
from caplens.core.optional import require


def command(
    images: Annotated[Path, typer.Option(help="Folder with the pictures.")],
    captions: Annotated[Path, typer.Option(help='Captions: {picture: {"split": train|val|test, "captions": [...]}}.')],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for features, checkpoint, curve and captioner.safetensors.")
    ],
    reward: Annotated[
        str | None, typer.Option(help="The metric that teaches: cider-d, cider-r or any other; default: cider-r.")
    ] = None,
    encoder: Annotated[str, typer.Option(help="embedded, or a CLIP ViT such as ViT-B-32.")] = "embedded",
    weights: Annotated[Path | None, typer.Option(help="A captioner to train further, instead of a new one.")] = None,
    features: Annotated[Path | None, typer.Option(help="Where features are kept; default: inside the output.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A toml file with settings; docs/guide/train.md lists them.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    json: JsonTarget = None,
) -> None:
    """Train a captioner on pictures and captions; goes on where an earlier run stopped."""
    from dataclasses import replace

    require("torch", "matplotlib", purpose="training a captioner")
    from caplens.training.captioner import CaptionerConfig
    from caplens.training.captioner_run import train_on_files
    from caplens.training.config import read_config

    settings = read_config(config, CaptionerConfig)
    settings = replace(settings, reward=reward or settings.reward, seed=settings.seed if seed is None else seed)
    with progress_bar() as progress:
        reached = train_on_files(
            images,
            captions,
            output,
            settings,
            encoder=encoder,
            features=features,
            weights=weights,
            progress=progress,
        )
    write_json(json, reached)
    for split in ("val", "test"):
        if split in reached:
            say(json, f"{split}: " + ", ".join(f"{name} {value:.3f}" for name, value in reached[split].items()))
    say(json, f"captioner: {output / 'captioner.safetensors'}")
