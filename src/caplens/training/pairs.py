"""Pictures and captions to learn from, and their features under frozen backbones, computed once and kept."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors
from caplens.encoders.base import ahead, length_batches
from caplens.storage.identity import Identity
from caplens.training.features import Arrays, kept_features, pictures_identity
from caplens.vision.images import open_image

if TYPE_CHECKING:
    from PIL.Image import Image

    from caplens.encoders.backbones import Backbones

PICTURES_PER_FILE = 256
PICTURES_AT_ONCE = 4


class FrozenImageEncoder(Protocol):
    """What turns pictures into features."""

    @property
    def tower_identity(self) -> str: ...
    @property
    def preprocessing(self) -> str: ...
    def pixels(self, image: Image) -> Vectors: ...
    def image_features(self, batch: Vectors) -> Vectors: ...


class FrozenEncoder(FrozenImageEncoder, Protocol):
    """Towers up to the layer that is trained: CLIP before its projections, the embedded encoder before its heads."""

    def tokenize(self, text: str) -> tuple[list[int], bool]: ...
    def caption_features(self, batch: Sequence[Sequence[int]]) -> Vectors: ...


@dataclass(frozen=True)
class Pairs:
    """Captions by picture, split as the data's makers split them."""

    train: dict[str, list[str]]
    val: dict[str, list[str]]
    test: dict[str, list[str]]


def read_pairs(captions: str | os.PathLike[str], more: Sequence[str | os.PathLike[str]] = ()) -> Pairs:
    """Read ``{picture: {"split": ..., "captions": [...]}}``.

    Further files add captions to the training pictures; Flickr's photo number, with which names begin, tells which.
    A picture that any file lists as test is in no training set: Flickr30k's test pictures are rated in Composite.
    """
    table = _read(captions)
    pairs = Pairs({}, {}, {})
    for name, entry in table.items():
        split = {"train": pairs.train, "val": pairs.val, "test": pairs.test}.get(entry["split"])
        if split is not None:
            split[name] = list(entry["captions"])
    by_number = {photo_number(name): name for name in pairs.train}
    for path in more:
        for name, entry in _read(path).items():
            ours = by_number.get(photo_number(name))
            if ours is None:
                continue
            if entry["split"] == "test":
                pairs.train.pop(ours, None)
            elif ours in pairs.train:
                pairs.train[ours] += entry["captions"]
    if not pairs.train or not pairs.val:
        raise InputError("has no pictures with split train, or none with split val", where=os.fspath(captions))
    return pairs


def photo_number(name: str) -> str:
    """Return the number of a Flickr photo, by which the data sets that use it agree.

    >>> photo_number("1000268201_693b08cb0e.jpg") == photo_number("1000268201.jpg")
    True
    """
    return name.partition(".")[0].partition("_")[0]


def _read(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    where = os.fspath(path)
    try:
        with gzip.open(path, "rt", encoding="utf-8") if where.endswith(".gz") else open(path, encoding="utf-8") as file:
            table = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read as json ({error})", where=where) from None
    shape = isinstance(table, dict) and all(
        isinstance(entry, dict) and isinstance(entry.get("captions"), list) and "split" in entry
        for entry in table.values()
    )
    if not shape:
        raise InputError('is not {picture: {"split": ..., "captions": [...]}}', where=where)
    checked: dict[str, dict[str, Any]] = table
    return checked


def unchanged(image: Image, name: str) -> Image:
    """Return the picture as it is."""
    return image


def picture_features(
    frozen: FrozenImageEncoder,
    images: Path,
    names: Sequence[str],
    folder: Path,
    progress: Progress = silent,
    change: Callable[[Image, str], Image] = unchanged,
) -> Vectors:
    """Return features of pictures, kept in `folder` in pieces: an interrupted run goes on where it was.

    `change` may turn an opened picture, known by its name, into another.
    """

    def compute(part: list[str], start: int) -> Arrays:
        rows: list[Vectors] = []
        decoded = ahead(lambda name: frozen.pixels(change(open_image(images / name), name)), part, depth=16)
        while batch := list(islice(decoded, PICTURES_AT_ONCE)):
            rows.append(frozen.image_features(np.stack(batch)))
            progress("features of pictures", start + PICTURES_AT_ONCE * (len(rows) - 1) + len(batch), len(names))
        return {"features": np.concatenate(rows).astype(np.float16)}

    parts = []
    for start in range(0, len(names), PICTURES_PER_FILE):
        progress("features of pictures", start, len(names))
        part = list(names[start : start + PICTURES_PER_FILE])
        makers = [frozen.tower_identity, frozen.preprocessing, change]
        identity = Identity.of([*makers, pictures_identity(images, part)])
        kept = kept_features(folder / f"{start:06d}.safetensors", identity, partial(compute, part, start))
        parts.append(kept["features"].astype(np.float32))
    progress("features of pictures", len(names), len(names))
    return np.concatenate(parts)


def caption_states(
    towers: Backbones, texts: Sequence[str], tuned_layers: int, path: Path, progress: Progress = silent
) -> dict[str, Vectors]:
    """Return the token states of distinct captions below the layers that are tuned, kept in `path`."""
    distinct = sorted(set(texts))
    layer = towers.bert.layers - tuned_layers

    def compute() -> Arrays:
        states: list[Vectors] = []
        for start in range(0, len(distinct), 1024):
            ids = [towers.tokenize(text)[0] for text in distinct[start : start + 1024]]
            states += [found.astype(np.float16) for found in towers.text_states(ids, layer)]
            progress("states of captions", len(states), len(distinct))
        return {"states": np.concatenate(states), "lengths": np.array([len(found) for found in states])}

    kept = kept_features(path, Identity.of([towers.tower_identity, layer, distinct]), compute)
    ends = np.cumsum(kept["lengths"])[:-1]
    return dict(zip(distinct, np.split(kept["states"], ends), strict=True))


def caption_features(
    frozen: FrozenEncoder, texts: Sequence[str], path: Path, progress: Progress = silent
) -> dict[str, Vectors]:
    """Return features of distinct captions, encoded in order of length and kept in `path`."""
    distinct = sorted(set(texts))

    def compute() -> Arrays:
        ids = [tuple(frozen.tokenize(text)[0]) for text in distinct]
        vectors: dict[tuple[int, ...], Vectors] = {}
        for batch in length_batches(sorted(set(ids), key=lambda tokens: (len(tokens), tokens))):
            vectors.update(zip(batch, frozen.caption_features(batch), strict=True))
            progress("features of captions", len(vectors), len(distinct))
        return {"features": np.stack([vectors[tokens] for tokens in ids]).astype(np.float16)}

    progress("features of captions", 0, len(distinct))
    features = kept_features(path, Identity.of([frozen.tower_identity, distinct]), compute)["features"]
    progress("features of captions", len(distinct), len(distinct))
    return dict(zip(distinct, features.astype(np.float32), strict=True))
