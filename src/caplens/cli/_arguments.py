"""Arguments that several verbs take, and how their values are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli._show import tell
from caplens.core.errors import InputError

References = Annotated[
    Path | None,
    typer.Option(
        "--references",
        "-r",
        metavar="FILE",
        help="References, in any layout; not needed if the captions' file has them.",
    ),
]
Images = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of pictures, named after the ids or in the 'image' column.")
]
Videos = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of videos, named after the ids or in the 'video' column.")
]
CaptionColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column to judge, if its name is unusual or several look like it.")
]
ImageColumn = Annotated[str | None, typer.Option(metavar="NAME", help="Column with the pictures.")]
IdColumn = Annotated[str | None, typer.Option(metavar="NAME", help="Column with the ids.")]
Several = Annotated[
    bool, typer.Option("--several", help="A picture may have several captions: rows with the same image_id, or lists.")
]
Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        "-m",
        metavar="NAMES",
        help="Names with commas between: of `caplens metrics`, classical, picture, learned, all, FILE.py:CLASS.",
        show_default="the quick ones that look at everything given",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="A metric's option, such as k_r=0.5; may be repeated."),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Image-text encoder of the metrics that look at pictures: embedded, embedded-strong, either with -int8, "
        "ViT-B-32, …",
        show_default="CLIP ViT-B-32 if its weights are here, else embedded",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Where encoders compute: auto, cpu, cuda, cuda:1, mps.",
        show_default="a GPU if there is one",
    ),
]
Dtype = Annotated[str | None, typer.Option(metavar="TYPE", help="Of an encoder's numbers.", show_default="float32")]
BatchSize = Annotated[int | None, typer.Option(metavar="N", help="Pictures that an encoder takes at a time.")]
AllowUrls = Annotated[bool, typer.Option("--allow-urls", help="Fetch pictures that are given as http(s) addresses.")]
MaxRequests = Annotated[
    int | None,
    typer.Option(
        "--max-requests",
        min=0,
        metavar="NUMBER",
        help="How many questions judges may send; a run that needs more is refused, with what it needs.",
        show_default="1000",
    ),
]


Language = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="CODE",
        help="Of the captions (pt, zh, ja, …), or auto: chooses how words are found.",
        show_default="as in English",
    ),
]


MOST_REASONS = 20


def read_options(
    pairs: Sequence[str] | None, encoder: str | None = None, allow_urls: bool = False, **others: Any
) -> dict[str, Any]:
    """`key=value` words as keyword arguments; numbers, true, false and none get their own type.

    >>> read_options(["k_r=0.5", "idf=coco.npz", "size=3", "fast=true", "limit=none"])
    {'k_r': 0.5, 'idf': 'coco.npz', 'size': 3, 'fast': True, 'limit': None}
    """
    options: dict[str, Any] = {}
    if encoder is not None:
        options["encoder"] = encoder
    if allow_urls:
        options["allow_urls"] = True
    options |= {name: value for name, value in others.items() if value is not None}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--option {pair!r} has no value", remedy="write it as KEY=VALUE")
        options[key.strip().replace("-", "_")] = _typed(value.strip())
    return options


def _typed(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def split_names(names: str | None) -> list[str]:
    """
    >>> split_names("bleu, cider-d,")
    ['bleu', 'cider-d']
    """
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def name_unscored(failures: Iterable[tuple[str, str]]) -> None:
    """Say which captions (ids) got no score and why, each once; of many, the first few."""
    reasons = dict.fromkeys(failures)
    for name, reason in islice(reasons, MOST_REASONS):
        tell(f"no score for {name}: {reason}")
    if len(reasons) > MOST_REASONS:
        tell(f"no score for {len(reasons) - MOST_REASONS:,} more: --json FILE has every reason")


def name_failures(errors: Mapping[str, str], asked: Sequence[str]) -> None:
    """Say which metrics were not computed and why; whoever asked for them gets exit code 2."""
    for name, reason in errors.items():
        tell(f"{name} was not computed: {reason}")
    if asked and errors:
        raise typer.Exit(2)
