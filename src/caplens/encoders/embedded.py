"""caplens's own image-text encoders: they work offline, without torch, from weights that install as packages.

Published towers stay as they are (`encoders.backbones`); `caplens train encoder` trains the heads that bring pictures
and texts into one space. There are two editions: `embedded` is quick and has small towers, `embedded-strong` looks
through CLIP's image tower. Neither is CLIP: they learned from Flickr8k's captions, and every signature names them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError, MissingData
from caplens.core.layers import gelu, product
from caplens.core.types import Vectors, narrow_unit
from caplens.encoders.backbones import Backbones, ClipBackbones, SmallBackbones, text_features
from caplens.encoders.base import Encoder, TokenVectors, pool_grid
from caplens.encoders.devices import CPU, Placement
from caplens.storage import weights
from caplens.storage.tensors import read_tensors

if TYPE_CHECKING:
    from PIL.Image import Image

EDITIONS: dict[str, type[Backbones]] = {found.edition: found for found in (SmallBackbones, ClipBackbones)}
SHIPPED = {"embedded": ("contrastive", "pac"), "embedded-strong": ("contrastive",)}
"""Heads that come with caplens."""


def edition_of(name: str) -> str | None:
    """The edition that an encoder's name begins with; None for other encoders.

    >>> edition_of("embedded-strong-contrastive@0123"), edition_of("embedded-int8"), edition_of("ViT-B-32")
    ('embedded-strong', 'embedded', None)
    """
    return max((edition for edition in EDITIONS if name.startswith(edition)), key=len, default=None)


@dataclass(frozen=True)
class Head:
    """x ↦ A x̂ + C gelu(B x̂), where x̂ is x, standardised: a linear map and a small network beside it.

    A head may be made for the first columns of the features only.
    """

    shift: Vectors
    scale: Vectors
    tensors: Mapping[str, Vectors]

    @property
    def dimension(self) -> int:
        return len(self.tensors["linear.bias"])

    def __call__(self, features: Vectors) -> Vectors:
        # In pieces: the hidden layer of a hundred thousand texts would fill a gigabyte.
        return np.concatenate([self._map(features[start : start + 4096]) for start in range(0, len(features), 4096)])

    def _map(self, features: Vectors) -> Vectors:
        x = (features[:, : len(self.shift)] - self.shift) * self.scale
        hidden = gelu(product(x, self.tensors["up.weight"].T) + self.tensors["up.bias"])
        straight = product(x, self.tensors["linear.weight"].T) + self.tensors["linear.bias"]
        return np.asarray(
            straight + product(hidden, self.tensors["down.weight"].T) + self.tensors["down.bias"], np.float32
        )


@dataclass(frozen=True)
class JoinedHeads:
    """Several heads whose vectors stand beside each other, each at unit length: cosines are the means of theirs."""

    parts: tuple[Head, ...]

    @property
    def dimension(self) -> int:
        return sum(part.dimension for part in self.parts)

    def __call__(self, features: Vectors) -> Vectors:
        return np.concatenate([narrow_unit(part(features)) for part in self.parts], axis=1)


@dataclass(frozen=True)
class Heads:
    """What was trained on one edition's towers."""

    image: Head | JoinedHeads
    text: Head | JoinedHeads
    name: str
    """What they were trained under, such as contrastive."""
    edition: str = "embedded"
    scale: float = 23.86
    """1/τ at the end of their training."""
    additions: Mapping[str, Vectors] | None = None
    """What was added to the text tower's upper layers, where those were tuned."""


def read_heads(path: Path) -> Heads:
    """Read the heads that `caplens train encoder` or `caplens train pac-s` wrote."""
    tensors, about = read_tensors(path, "heads of the embedded encoder")
    arrays = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
    values = json.loads(about.get("caplens", "{}"))
    if values.get("kind") != "embedded heads":
        raise InputError(
            "holds no heads of the embedded encoder", where=str(path), remedy="`caplens train encoder` makes them"
        )

    def part(name: str) -> dict[str, Vectors]:
        return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}

    def single(tensors: dict[str, Vectors]) -> Head:
        return Head(tensors.pop("shift"), tensors.pop("scale"), tensors)

    def head(side: str) -> Head | JoinedHeads:
        tensors = part(side)
        if "shift" in tensors:
            return single(tensors)
        numbers = {key.split(".")[1] for key in tensors}
        return JoinedHeads(tuple(single(part(f"{side}.parts.{number}")) for number in sorted(numbers)))

    return Heads(
        head("image"),
        head("text"),
        str(values["name"]),
        str(values.get("edition", Heads.edition)),
        float(values.get("scale", Heads.scale)),
        part("additions") or None,
    )


class EmbeddedEncoder(Encoder):
    """Frozen backbones and trained heads."""

    usual_batch = 4  # larger batches fall out of the cache and are slower

    def __init__(self, heads: Heads, name: str, weights_hash: str, backbones: Backbones) -> None:
        self._image, self._text, self._backbones = heads.image, heads.text, backbones
        self.name, self.weights_hash, self.scale = name, weights_hash, heads.scale
        self.dimension = heads.image.dimension
        self.context_length = backbones.context_length
        self.place = backbones.place
        self.preprocessing = backbones.preprocessing

    def pixels(self, image: Image) -> Vectors:
        return self._backbones.pixels(image)

    @property
    def tower_identity(self) -> str:
        """All heads of an edition stand on the same towers."""
        return self._backbones.tower_identity

    def image_features(self, batch: Vectors) -> Vectors:
        return self._backbones.image_features(batch)

    def project_images(self, features: Vectors) -> Vectors:
        return self._image(features)

    @property
    def grid_identity(self) -> str:
        """Grids come from a frozen backbone: other heads do not change them."""
        return self._backbones.grid_identity

    def encode_grid(self, batch: Vectors, side: int) -> Vectors:
        return pool_grid(self._backbones.patches(batch), side)

    def encode_regions(self, image: Image, boxes: NDArray[np.floating]) -> Vectors:
        """One pass for all: a part's features are means of the towers' patches under its box."""
        return self._image(self._backbones.region_features(self.pixels(image), boxes))

    def tokenize(self, text: str) -> tuple[list[int], bool]:
        return self._backbones.tokenize(text)

    def encode_ids(self, batch: Sequence[Sequence[int]]) -> list[TokenVectors]:
        encoded = []
        for ids, states in zip(batch, self._backbones.text_states(batch), strict=True):
            whole = self._text(text_features(states.mean(axis=0, keepdims=True)))[0]
            encoded.append(TokenVectors(tuple(ids), self._text(text_features(states)), whole))
        return encoded

    def caption_features(self, batch: Sequence[Sequence[int]]) -> Vectors:
        return self._backbones.caption_features(batch)

    def project_texts(self, features: Vectors) -> Vectors:
        return self._text(features)


def heads_path(heads: str, edition: str = "embedded") -> Path:
    """The file of an edition's shipped heads (`contrastive`, `pac`), or the user's own."""
    if edition not in SHIPPED:
        raise InputError(f"the embedded encoder has no edition {edition!r}", remedy=f"use one of: {', '.join(SHIPPED)}")
    path = weights.shipped(f"{edition}-{heads}") if heads in SHIPPED[edition] else Path(heads)
    if not path.is_file():
        known = ", ".join(SHIPPED[edition])
        raise MissingData(f"{edition} has no heads {heads!r}: give a file of `caplens train`, or one of: {known}")
    return path


def load_embedded(
    heads: str = "contrastive",
    edition: str = "embedded",
    *,
    int8: bool = False,
    place: Placement = CPU,
    keep: Path | None = None,
) -> EmbeddedEncoder:
    """The encoder with shipped heads or with those in a file; with `int8`, its larger image tower in 8-bit numbers."""
    path = heads_path(heads, edition)
    found = read_heads(path)
    if found.edition != edition:
        raise InputError(f"has heads for {found.edition}, not for {edition}", where=str(path))
    backbones = EDITIONS[edition](int8=int8, place=place, additions=found.additions, keep=keep)
    digest = hashlib.sha256(f"{weights.digest(path)} {backbones.sums}".encode()).hexdigest()[:12]
    name = f"{edition}-{found.name}-int8" if int8 else f"{edition}-{found.name}"
    return EmbeddedEncoder(found, name, digest, backbones)
