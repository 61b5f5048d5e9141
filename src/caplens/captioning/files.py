"""Picture files to captions: which files, through which encoder, under which ids."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from caplens.captioning.captioner import Captioner
from caplens.core.captions import IMAGE_SUFFIXES
from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.encoders.base import Encoder
from caplens.encoders.embedded import EDITIONS
from caplens.encoders.embedder import Embedder
from caplens.encoders.load import load_encoder
from caplens.storage import weights

SHIPPED = {"embedded-strong": "captioner-strong", "embedded": "captioner"}
"""The captioners that come with caplens, by the encoder whose grids they look at, the better one first."""


def shipped_captioner(encoder: str | None = None) -> Captioner:
    """The captioner over an encoder; by default the best whose image towers are on this machine."""
    if encoder is None:
        here = (name for name in SHIPPED if all(weights.find(tower) for tower in EDITIONS[name].pictures))
        encoder = next(here, "embedded")
    if encoder not in SHIPPED:
        raise InputError(f"no captioner looks through {encoder}", remedy=f"use one of: {', '.join(SHIPPED)}")
    return Captioner.load(weights.shipped(SHIPPED[encoder]))


@dataclass(frozen=True)
class Captioned:
    """One caption per picture that could be read; what is wrong with the others, by picture."""

    pictures: list[Path]
    captions: list[str]
    failures: dict[Path, str]


def picture_files(given: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that are given, and the pictures in the folders that are given, each once."""
    pictures: dict[Path, None] = {}
    for path in map(Path, given):
        inside = [path]
        if path.is_dir():
            inside = sorted(entry for entry in path.iterdir() if entry.suffix.lower() in IMAGE_SUFFIXES)
            if not inside:
                raise InputError(
                    "no pictures are in this folder", where=str(path), remedy=", ".join(sorted(IMAGE_SUFFIXES))
                )
        pictures.update(dict.fromkeys(inside))
    return list(pictures)


def caption_files(
    captioner: Captioner,
    pictures: Sequence[Path],
    *,
    encoder: Encoder | None = None,
    beam: int = 3,
    strict: bool = False,
    progress: Progress = silent,
) -> Captioned:
    """Caption pictures; one that cannot be read gets a reason, or stops everything if `strict`."""
    spec = captioner.spec
    encoder = encoder or load_encoder(spec.encoder)
    if encoder.grid_identity != spec.identity:
        raise InputError(
            f"this captioner looks at grids of {spec.identity}, and {spec.encoder} gives those of "
            f"{encoder.grid_identity} here",
            remedy="train it again, or use the encoder's weights of that time",
        )
    seen = Embedder(encoder, strict=strict, progress=progress).grids(list(pictures), spec.side)
    usable = [row for row in range(len(pictures)) if row not in seen.failures]
    captions: list[str] = []
    if usable:
        grids = seen.vectors[usable]
        captions = captioner.caption(grids.reshape(len(grids), -1, grids.shape[-1]), beam)
    return Captioned(
        [pictures[row] for row in usable], captions, {pictures[row]: reason for row, reason in seen.failures.items()}
    )


def picture_ids(pictures: Sequence[Path], known: Iterable[str] = ()) -> list[str]:
    """The id of each picture: its name as `known` ids have it, else without its ending, or whole if two would meet.

    >>> picture_ids([Path("in/COCO_val2014_000000000136.jpg"), Path("cat.png")], known=["136", "cat.png"])
    ['136', 'cat.png']
    >>> picture_ids([Path("a/1.jpg"), Path("b/1.jpg"), Path("b/2.jpg")])
    ['a/1.jpg', 'b/1.jpg', '2']
    """
    ids = set(known)
    stems = Counter(path.stem for path in pictures)
    chosen = []
    for path in pictures:
        number = path.stem.rpartition("_")[2].lstrip("0")
        fitting = [name for name in (path.stem, path.name, number) if name in ids]
        chosen.append(fitting[0] if fitting else path.stem if stems[path.stem] == 1 else str(path))
    return chosen
