"""What InfoMetIC's losses read, as tensors: pictures, captions, polluted captions and labels of one split."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from caplens.core.types import Vectors, unit

if TYPE_CHECKING:
    from caplens.training.grounded import Captions, Ints, Pictures
    from caplens.training.infometic import InfoMeticConfig
    from caplens.training.infometic_network import InfoMeticNetwork

MOST_WORDS = 32
CONSTANT = 2.0


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
    encoded: Tensor
    owner: Tensor
    semantic_counts: Tensor


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
    polluted: CaptionTensors
    mentioned: Tensor
    """(captions, 1 + regions + 1): regions that a caption mentions, by weak label."""
    listed: list[Ints]
    """Rows of every picture's captions."""
    said: Tensor
    """(pictures, width of the encoder): the sum of its captions' unit vectors."""
    neighbors: Ints
    """(pictures, nearest): similar pictures."""


def caption_tensors(captions: Captions, rows: Ints, fusion: InfoMeticNetwork) -> CaptionTensors:
    """As tensors, whole vectors projected."""
    words = np.full(rows.shape, MOST_WORDS)
    right = np.zeros((len(rows), MOST_WORDS), bool)
    wrong = np.zeros_like(right)
    for row, (text, found, changed) in enumerate(zip(captions.pieces, captions.words, captions.changed, strict=True)):
        places = np.array(text.words)
        words[row, : len(places)] = np.where((places >= 0) & (places < MOST_WORDS), places, MOST_WORDS)
        kept = {int(place) for place in places if 0 <= place < MOST_WORDS}
        right[row, [place for place in kept if found[place].semantic and place != changed]] = True
        wrong[row, [place for place in kept if place == changed]] = True
    return CaptionTensors(
        torch.from_numpy(rows),
        torch.from_numpy(captions.masks()),
        torch.from_numpy(words),
        torch.from_numpy(right),
        torch.from_numpy(wrong),
        fusion.project(torch.from_numpy(captions.vectors)),
        torch.from_numpy(captions.vectors),
        torch.from_numpy(captions.owner),
        torch.from_numpy(captions.semantic_counts),
    )


def make_split_tensors(
    pictures: Pictures,
    captions: Captions,
    rows: Ints,
    polluted: Captions,
    polluted_rows: Ints,
    mentioned: np.ndarray[Any, np.dtype[np.bool_]],
    fusion: InfoMeticNetwork,
    config: InfoMeticConfig,
) -> SplitTensors:
    """Everything the losses read, projected once: the projection is fixed."""
    vectors = fusion.project(torch.from_numpy(pictures.vectors))
    regions = vectors.clone()
    if not config.whole_image:
        regions[:, 0] = 0
    return SplitTensors(
        regions,
        torch.from_numpy(pictures.boxes),
        torch.from_numpy(pictures.regions),
        vectors[:, 0],
        torch.from_numpy(pictures.vectors[:, 0]),
        caption_tensors(captions, rows, fusion),
        caption_tensors(polluted, polluted_rows, fusion),
        torch.from_numpy(mentioned),
        [np.flatnonzero(captions.owner == number) for number in range(len(pictures.names))],
        torch.zeros(len(pictures.names), captions.vectors.shape[1]).index_add_(
            0, torch.from_numpy(captions.owner), functional.normalize(torch.from_numpy(captions.vectors), dim=-1)
        ),
        nearest(pictures.vectors[:, 0], config.neighbors),
    )


def nearest(vectors: Vectors, most: int) -> Ints:
    """The most similar others of every vector."""
    rows = unit(vectors).astype(np.float32)
    found = []
    for start in range(0, len(rows), 1024):
        similar = rows[start : start + 1024] @ rows.T
        similar[np.arange(len(similar)), start + np.arange(len(similar))] = -2
        found.append(np.argsort(-similar, axis=1, kind="stable")[:, :most])
    return np.concatenate(found)


def principal_projection(vectors: Vectors, width: int) -> Tensor:
    """The directions in which unit vectors lie most (no centring: cosines are to survive), and one constant.

    Scaled so that a vector's numbers are of size one. Attention has no bias, so without a constant it could not prefer
    the null region, or nouns, whatever the picture; CLIP's vectors have one in them, the embedded encoder's have not.
    """
    rows = unit(vectors)
    _, directions = np.linalg.eigh(rows.T @ rows)
    chosen = directions[:, ::-1][:, : width - 1]
    chosen = chosen * np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(width - 1)])
    made = np.zeros((vectors.shape[1] + 1, width), np.float32)
    made[:-1, :-1] = chosen * math.sqrt(width)
    made[-1, -1] = CONSTANT
    return torch.from_numpy(made)
