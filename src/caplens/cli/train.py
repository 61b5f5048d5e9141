"""`caplens train`: make the weights of a learned metric, an encoder or a captioner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli._arguments import read_options
from caplens.cli._show import JsonTarget, progress_bar, say, write_json
from caplens.core.optional import require
from caplens.core.progress import Progress

Images = Annotated[Path, typer.Option(metavar="DIR", help="Folder with the pictures.")]
Captions = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        help='Captions by picture: {picture: {"split": "train", "val" or "test", "captions": [...]}}.',
    ),
]
MoreCaptions = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Further captions of the same Flickr photos; their test photos are left out. May be repeated.",
    ),
]
Encoder = Annotated[str, typer.Option(metavar="NAME", help="embedded, or a CLIP backbone such as ViT-B-32.")]
Features = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where features are kept for the next training.", show_default="in the output"),
]
Output = Annotated[
    Path, typer.Option(metavar="DIR", help="Folder for the weights, the learning curve and checkpoints.")
]
Config = Annotated[Path | None, typer.Option(metavar="FILE.toml", help="Settings that differ from the defaults.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="One setting, such as seed=2; may be repeated."),
]

Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Where to train: auto, cpu, cuda, cuda:1, mps.",
        show_default="a GPU if there is one",
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(metavar="TYPE", help="Of the products; weights stay float32.", show_default="float32"),
]
BatchSize = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Examples of a step: the setting 'batch'.", show_default="the setting's"),
]

app = typer.Typer(help="Train a learned metric, an encoder or a captioner.", no_args_is_help=True)


@app.callback()
def _every_training() -> None:
    """Train a learned metric, an encoder or a captioner.

    Stopped and started again with the same command, a training goes on where it was.
    """


@app.command()
def captioner(
    images: Images,
    captions: Captions,
    output: Output,
    encoder: Encoder = "embedded",
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A captioner to train further, instead of a new one.")
    ] = None,
    features: Features = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    config: Config = None,
    option: Settings = None,
    json: JsonTarget = None,
) -> None:
    """Train a captioner: cross entropy first, then a metric as the teacher.

    Example: caplens train captioner --images photos --captions captions.json --output run -o reward=cider-d
    """
    with _getting_ready("torch", "matplotlib", purpose="training a captioner") as progress:
        from caplens.encoders.devices import place_torch
        from caplens.training.captioner import CaptionerConfig, train
        from caplens.training.config import read_config

        result = train(
            images,
            captions,
            output,
            read_config(config, CaptionerConfig, read_options(option, batch=batch_size)),
            encoder=encoder,
            features=features,
            weights=weights,
            progress=progress,
            place=place_torch(device or "auto", dtype or "float32"),
        )
    _show(json, result, *_by_split(result, ".3f"))


@app.command()
def composite(
    human: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Captions by people, five per picture; repeat for more collections."),
    ],
    background: Annotated[
        Path, typer.Option(metavar="FILE", help="Captions of other pictures, which say what is usual.")
    ],
    output: Output,
    machine: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Captions by machines for pictures of any collection.")
    ] = None,
    images: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder with pictures of any collection.")] = None,
    config: Config = None,
    option: Settings = None,
    json: JsonTarget = None,
) -> None:
    """Train the metric caplens-score on captions by people and machines.

    Example: caplens train composite --human flickr8k.json --background usual.json --images photos --output run
    """
    with _getting_ready("matplotlib", purpose="training the composite") as progress:
        from caplens.readers import read_references
        from caplens.training.composite import CompositeConfig, train
        from caplens.training.config import read_config

        result = train(
            [read_references(path) for path in human],
            read_references(machine) if machine is not None else {},
            read_references(background),
            images,
            output,
            read_config(config, CompositeConfig, read_options(option)),
            progress=progress,
        )
    feature_weights = (f"  {weight:8.3f}  {name}" for name, weight in result["feature weights"].items())
    order = f"pairs of held-out captions in the right order: {result['held_out_right_order']}"
    _show(json, result, *feature_weights, order)


@app.command()
def encoder(
    images: Images,
    captions: Captions,
    output: Output,
    more_captions: MoreCaptions = None,
    encoder: Annotated[str, typer.Option(metavar="NAME", help="embedded or embedded-strong.")] = "embedded",
    text_only: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Captions of pictures that are not at hand, for the setting 'consistency'; may be repeated.",
        ),
    ] = None,
    features: Features = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    config: Config = None,
    option: Settings = None,
    json: JsonTarget = None,
) -> None:
    """Train the heads of the embedded encoder: under an hour on two cores, nearly all of it features.

    Example: caplens train encoder --images photos --captions captions.json --output run -o epochs=20
    """
    with _getting_ready("torch", "matplotlib", purpose="training an encoder") as progress:
        from caplens.encoders.devices import place_torch
        from caplens.training.config import read_config
        from caplens.training.encoder import EncoderConfig, train

        settings = read_config(config, EncoderConfig, read_options(option, batch=batch_size))
        result = train(
            images,
            captions,
            more_captions or [],
            output,
            settings,
            encoder=encoder,
            unseen=text_only or (),
            features=features,
            progress=progress,
            place=place_torch(device or "auto", dtype or "float32"),
        )
    _show(json, result, *_by_split(result, ".1%"))


@app.command()
def infometic(
    images: Images,
    captions: Captions,
    output: Output,
    more_captions: MoreCaptions = None,
    encoder: Encoder = "embedded",
    regions: Annotated[
        str, typer.Option(metavar="NAME", help="detector, grid, a file of boxes, or a transformers detector.")
    ] = "detector",
    features: Features = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    config: Config = None,
    option: Settings = None,
    json: JsonTarget = None,
) -> None:
    """Train InfoMetIC's network over a frozen encoder.

    Example: caplens train infometic --images photos --captions captions.json --output run -o steps=500
    """
    with _getting_ready("torch", "matplotlib", purpose="training InfoMetIC") as progress:
        from caplens.encoders.devices import place_torch
        from caplens.training.config import read_config
        from caplens.training.infometic import InfoMeticConfig, train

        result = train(
            images,
            captions,
            more_captions or [],
            output,
            read_config(config, InfoMeticConfig, read_options(option, batch=batch_size)),
            encoder=encoder,
            regions=regions,
            features=features,
            progress=progress,
            place=place_torch(device or "auto", dtype or "float32"),
        )
    words = (
        f"replaced words found {result['replaced word lowest']:.1%}, words right at β {result['words right at β']:.1%}"
    )
    _show(json, result, f"{_stopped(result)}: validation loss {result['loss']:.3f}, {words}")


@app.command()
def nneval(
    human: Annotated[
        Path, typer.Option(metavar="FILE", help="Captions by people, five per image: any file of references.")
    ],
    machine: Annotated[
        Path, typer.Option(metavar="FILE", help="Captions by machines for the same images: a file of references too.")
    ],
    validation: Annotated[
        Path, typer.Option(metavar="FILE", help="Rated captions to stop by: jsonl with caption, references, rating.")
    ],
    output: Output,
    leave_out: Annotated[
        list[str] | None, typer.Option(metavar="FEATURE", help="Train without this feature (ablation).")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    config: Config = None,
    option: Settings = None,
    json: JsonTarget = None,
) -> None:
    """Train NNEval to tell people's captions from machines'.

    Example: caplens train nneval --human human.json --machine machine.json --validation rated.jsonl --output run
    """
    with _getting_ready("torch", "matplotlib", purpose="training NNEval") as progress:
        from caplens.encoders.devices import place_torch
        from caplens.readers import read_references
        from caplens.training.config import read_config
        from caplens.training.nneval import NNEvalConfig, read_rated_captions, train

        result = train(
            read_references(human),
            read_references(machine),
            read_rated_captions(validation),
            output,
            read_config(config, NNEvalConfig, read_options(option, batch=batch_size)),
            leave_out=leave_out or (),
            progress=progress,
            place=place_torch(device or "auto", dtype or "float32"),
        )
    _show(json, result, f"best at epoch {result['epoch']}: Kendall's τ with the ratings {result['kendall']}")


@app.command()
def pac_s(
    images: Images,
    captions: Captions,
    output: Output,
    more_captions: MoreCaptions = None,
    encoder: Encoder = "embedded",
    weights: Annotated[
        str | None, typer.Option(metavar="FILE", help="Weights to start from.", show_default="the encoder's")
    ] = None,
    new_captions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="t': a file of `caplens generate positives`, or 'retrieved' for a stand-in."),
    ] = None,
    new_images: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="v': a folder of `caplens generate positives`, or a stand-in: 'crops', 'crops-1000' for so many.",
        ),
    ] = None,
    features: Features = None,
    allow_pickle: Annotated[bool, typer.Option(help="Read pickled weights, with weights_only.")] = False,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    config: Config = None,
    option: Settings = None,
    json: JsonTarget = None,
) -> None:
    """Tune an encoder's final projections on pictures, captions and generated positives (PAC-S).

    Example: caplens train pac-s --images photos --captions captions.json --new-captions retrieved --output run
    """
    with _getting_ready("torch", "matplotlib", purpose="training PAC-S") as progress:
        from caplens.encoders.devices import place_torch
        from caplens.training.config import read_config
        from caplens.training.pac import PacConfig, train

        result = train(
            images,
            captions,
            more_captions or [],
            output,
            read_config(config, PacConfig, read_options(option, batch=batch_size)),
            encoder=encoder,
            weights=weights,
            new_captions=new_captions,
            new_images=new_images,
            features=features,
            allow_pickle=allow_pickle,
            progress=progress,
            place=place_torch(device or "auto", dtype or "float32"),
        )
    _show(json, result, f"{_stopped(result)}: validation loss {result['validation loss']:.3f}")


@contextmanager
def _getting_ready(*packages: str, purpose: str) -> Iterator[Progress]:
    """Load what a training needs behind a first bar: torch alone takes seconds, in which nobody should wonder."""
    with progress_bar() as progress:
        progress("getting ready", 0, 1)
        require(*packages, purpose=purpose)
        progress("getting ready", 1, 1)
        yield progress


def _show(json: str | None, result: Mapping[str, Any], *reached: str) -> None:
    """Say what was reached, and at the end where the weights are."""
    write_json(json, result)
    for line in (*reached, f"weights: {result['weights']}"):
        say(json, line)


def _stopped(result: Mapping[str, Any]) -> str:
    return f"stopped after {result['steps']:,} steps, best at {result['best step']:,}"


def _by_split(result: Mapping[str, Any], form: str) -> list[str]:
    """Return a line for val and one for test, as far as there are such pictures."""
    return [
        f"{split}: " + ", ".join(f"{name} {value:{form}}" for name, value in result[split].items())
        for split in ("val", "test")
        if split in result
    ]
