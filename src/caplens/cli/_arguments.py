"""Arguments that several verbs take, and how their values are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.errors import InputError

References = Annotated[
    Path | None,
    typer.Option("--references", "-r", help="References, in any layout; not needed if PREDICTIONS has them."),
]
Images = Annotated[Path | None, typer.Option(help="Folder of images, named after the ids or in the 'image' column.")]
Videos = Annotated[Path | None, typer.Option(help="Folder of videos, named after the ids or in the 'video' column.")]
Metrics = Annotated[
    str | None, typer.Option("--metrics", "-m", help="Names with commas between; see `caplens metrics`.")
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="A metric's option, such as k_r=0.5; may be repeated."),
]
Encoder = Annotated[
    str | None, typer.Option(help="Image-text encoder of the metrics that look at pictures: embedded, ViT-B-32, …")
]
AllowUrls = Annotated[bool, typer.Option("--allow-urls", help="Fetch pictures that are given as http(s) addresses.")]


def read_options(pairs: Sequence[str] | None, encoder: str | None = None, allow_urls: bool = False) -> dict[str, Any]:
    """`key=value` words as keyword arguments; numbers, true, false and none get their own type.

    >>> read_options(["k_r=0.5", "idf=coco.npz", "size=3", "fast=true", "limit=none"])
    {'k_r': 0.5, 'idf': 'coco.npz', 'size': 3, 'fast': True, 'limit': None}
    """
    options: dict[str, Any] = {}
    if encoder is not None:
        options["encoder"] = encoder
    if allow_urls:
        options["allow_urls"] = True
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


def split_names(names: str) -> list[str]:
    """
    >>> split_names("bleu, cider-d,")
    ['bleu', 'cider-d']
    """
    return [name.strip() for name in names.split(",") if name.strip()]


def default_metrics(references: bool, visual: bool) -> list[str]:
    """What to compute when nobody said: the quick metrics that run on what is given."""
    from caplens.metrics import GROUPS, known_metrics

    if references:
        wanted = ["bleu", "rouge-l", "meteor", "cider-d", "cider-r"]
    elif visual:
        wanted = ["clip-s", "pac-s"]
    else:
        wanted = ["length"]
    return [name for name in wanted if name in GROUPS or name in known_metrics()]
