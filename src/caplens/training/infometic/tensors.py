"""What InfoMetIC's losses read, as tensors: pictures, captions, corrupted captions and labels of one split."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from caplens.core.types import Vectors, unit
from caplens.training.infometic.config import InfoMeticConfig
from caplens.training.infometic.data import Captions, Ints, Split
from caplens.training.infometic.network import InfoMeticNetwork

MOST_WORDS = 32
CONSTANT = 2.0
"""The size of the projection's constant column."""
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class CaptionTensors:
    """Captions of one split."""

    rows: Tensor
    """(captions, tokens): rows of the token table."""
    masks: Tensor
    words: Tensor
    """(captions, tokens): the word of each piece, or one more than the last word."""
    right: Tensor
    """(captions, words): semantic words that are right."""
    wrong: Tensor
    """(captions, words): the word that was put in another's place."""
    wholes: Tensor
    """Vectors of whole captions, projected."""
    encoded: Tensor
    """The same as the encoder gives them."""
    owner: Tensor
    semantic_counts: Ints

    def to(self, device: str) -> CaptionTensors:
        """Return the same with all tensors on a device."""
        return replace(self, **_moved(self, device))


@dataclass(frozen=True)
class SplitTensors:
    """One split as tensors."""

    regions: Tensor
    boxes: Tensor
    region_masks: Tensor
    whole_images: Tensor
    encoded_images: Tensor
    """Whole pictures as the encoder gives them, for its cosine."""
    captions: CaptionTensors
    corrupted: CaptionTensors
    mentioned: Tensor
    """(captions, 1 + regions + 1): regions that a caption mentions, by weak label."""
    captions_of: list[Ints]
    """Rows of every picture's captions."""
    caption_sums: Tensor
    """(pictures, width of the encoder): the sum of its captions' unit vectors."""
    neighbors: Ints
    """(pictures, nearest): similar pictures."""

    def to(self, device: str) -> SplitTensors:
        """Return the same with all tensors on a device."""
        return replace(self, **_moved(self, device))


def _moved(tensors: CaptionTensors | SplitTensors, device: str) -> dict[str, Any]:
    values = {field.name: getattr(tensors, field.name) for field in fields(tensors)}
    return {name: value.to(device) for name, value in values.items() if isinstance(value, Tensor | CaptionTensors)}


def caption_tensors(captions: Captions, rows: Ints, network: InfoMeticNetwork) -> CaptionTensors:
    """Return captions as tensors; `rows` are those of their tokens in the token table."""
    words = np.full(rows.shape, MOST_WORDS)
    right = np.zeros((len(rows), MOST_WORDS), bool)
    wrong = np.zeros_like(right)
    for row, (pieces, tagged, changed) in enumerate(
        zip(captions.pieces, captions.words, captions.changed, strict=True)
    ):
        places = np.array(pieces.words)
        words[row, : len(places)] = np.where((places >= 0) & (places < MOST_WORDS), places, MOST_WORDS)
        kept = {int(position) for position in places if 0 <= position < MOST_WORDS}
        right[row, [position for position in kept if tagged[position].semantic and position != changed]] = True
        wrong[row, [position for position in kept if position == changed]] = True
    return CaptionTensors(
        torch.from_numpy(rows),
        torch.from_numpy(captions.masks()),
        torch.from_numpy(words),
        torch.from_numpy(right),
        torch.from_numpy(wrong),
        network.project(torch.from_numpy(captions.vectors)),
        torch.from_numpy(captions.vectors),
        torch.from_numpy(captions.owner),
        captions.semantic_counts,
    )


def split_tensors(
    split: Split, rows: Ints, corrupted_rows: Ints, network: InfoMeticNetwork, config: InfoMeticConfig
) -> SplitTensors:
    """Return everything the losses read, projected once: the projection is fixed."""
    pictures, captions = split.pictures, split.captions
    vectors = network.project(torch.from_numpy(pictures.vectors))
    regions = vectors.clone()
    if not config.whole_image:
        regions[:, 0] = 0
    return SplitTensors(
        regions,
        torch.from_numpy(pictures.boxes),
        torch.from_numpy(pictures.regions),
        vectors[:, 0],
        torch.from_numpy(pictures.vectors[:, 0]),
        caption_tensors(captions, rows, network),
        caption_tensors(split.corrupted, corrupted_rows, network),
        torch.from_numpy(split.mentioned),
        [np.flatnonzero(captions.owner == number) for number in range(len(pictures.names))],
        torch.zeros(len(pictures.names), captions.vectors.shape[1]).index_add_(
            0, torch.from_numpy(captions.owner), functional.normalize(torch.from_numpy(captions.vectors), dim=-1)
        ),
        nearest(pictures.vectors[:, 0], config.neighbors),
    )


def nearest(vectors: Vectors, most: int) -> Ints:
    """Return the most similar others of every vector."""
    rows = unit(vectors).astype(np.float32)
    neighbors = []
    for start in range(0, len(rows), ROWS_AT_ONCE):
        similarity = rows[start : start + ROWS_AT_ONCE] @ rows.T
        similarity[np.arange(len(similarity)), start + np.arange(len(similarity))] = -2
        neighbors.append(np.argsort(-similarity, axis=1, kind="stable")[:, :most])
    return np.concatenate(neighbors)


def principal_projection(vectors: Vectors, width: int) -> Tensor:
    """Return the directions in which unit vectors lie most (no centering: cosines are to survive), and one constant.

    Scaled so that a vector's numbers are of size one. Attention has no bias, so without a constant it could not prefer
    the null region, or nouns, whatever the picture; CLIP's vectors have one in them, the embedded encoder's have not.
    """
    rows = unit(vectors)
    _, directions = np.linalg.eigh(rows.T @ rows)
    chosen = directions[:, ::-1][:, : width - 1]
    chosen = chosen * np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(width - 1)])
    projection = np.zeros((vectors.shape[1] + 1, width), np.float32)
    projection[:-1, :-1] = chosen * math.sqrt(width)
    projection[-1, -1] = CONSTANT
    return torch.from_numpy(projection)


def projection_samples(train: Split, tokens: Vectors) -> Vectors:
    """Return vectors of all kinds that the projection has to keep apart, as many of each."""
    kinds = [train.pictures.vectors[:, 0], train.pictures.vectors[:, 1:-1].reshape(-1, tokens.shape[1])]
    kinds += [train.captions.vectors, tokens]
    return np.concatenate([unit(kind[:: max(1, len(kind) // 4000)]).astype(np.float32) for kind in kinds])
