"""`caplens generate positives`: captions and pictures by generators, as further positives for PAC-S."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, progress_bar, say, write_json

app = typer.Typer(help="Make training data with generators.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Make training data with generators."""


@app.command()
def positives(
    images: Annotated[Path, typer.Option(metavar="DIR", help="Folder with the pictures.")],
    captions: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help='Captions: {picture: {"split": ..., "captions": [...]}}; split train is used.'
        ),
    ],
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder for captions.jsonl and the pictures.")],
    captioner: Annotated[str | None, typer.Option(metavar="NAME", help="A BLIP model: hub name or folder.")] = None,
    generator: Annotated[
        str | None, typer.Option(metavar="NAME", help="A Stable Diffusion pipeline: hub name or folder.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Seed of the drawn pictures.")] = 0,
    steps: Annotated[int, typer.Option(metavar="NUMBER", help="Diffusion steps per picture.")] = 50,
    json: JsonTarget = None,
) -> None:
    """Caption every training picture and draw a picture for its first caption; what is there is not made again.

    Example: caplens generate positives --images photos --captions captions.json --output new --captioner blip
    """
    from caplens.core.errors import InputError
    from caplens.training.pairs import read_pairs
    from caplens.training.positives import generate_captions, generate_images, load_captioner, load_generator

    if captioner is None and generator is None:
        raise InputError("nothing to generate with", remedy="give --captioner, --generator or both")
    pairs = read_pairs(captions)
    counts: dict[str, int] = {}
    with progress_bar() as progress:
        if captioner is not None:
            target = output / "captions.jsonl"
            counts["captions"] = len(
                generate_captions(images, list(pairs.train), target, load_captioner(captioner), progress)
            )
        if generator is not None:
            first = [listed[0] for listed in pairs.train.values()]
            counts["pictures"] = len(generate_images(first, output, load_generator(generator), progress, seed, steps))
    write_json(json, counts)
    for kind, count in counts.items():
        say(json, f"{count} {kind} in {output}")
