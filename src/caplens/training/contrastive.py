"""Contrastive learning of a joint space: the symmetric loss, trainable heads, and recall."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from caplens.core.types import Vectors, unit


def symmetric_loss(
    pictures: Tensor, captions: Tensor, scale: Tensor | float, soft: tuple[float, Tensor] | None = None
) -> Tensor:
    """Return InfoNCE in both directions (PAC-S eq. 2): row i of one side belongs to row i of the other.

    With `soft`, that share of the targets follows a softmax over how near pictures (rows) and captions (columns) are.
    """
    logits = scale * functional.normalize(pictures, dim=-1) @ functional.normalize(captions, dim=-1).T
    if soft is None:
        truth = torch.arange(len(logits), device=logits.device)
        return functional.cross_entropy(logits, truth) + functional.cross_entropy(logits.T, truth)
    share, nearness = soft
    truth = torch.eye(len(logits), dtype=logits.dtype, device=logits.device)
    by_picture = torch.lerp(truth, functional.softmax(nearness, dim=1), share)
    by_caption = torch.lerp(truth, functional.softmax(nearness.T, dim=1), share)
    return functional.cross_entropy(logits, by_picture) + functional.cross_entropy(logits.T, by_caption)


class TrainableHead(nn.Module):
    """The head of `caplens.encoders.embedded`, with dropout, as a module; it sees as many columns as it has shifts."""

    shift: Tensor
    scale: Tensor

    def __init__(self, shift: Tensor, scale: Tensor, hidden: int, dimension: int, dropout: float) -> None:
        super().__init__()
        self.register_buffer("shift", shift)
        self.register_buffer("scale", scale)
        self.linear = nn.Linear(len(shift), dimension)
        self.up = nn.Linear(len(shift), hidden)
        self.down = nn.Linear(hidden, dimension)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        x = self.dropout((features[:, : len(self.shift)] - self.shift) * self.scale)
        vectors: Tensor = self.linear(x) + self.down(self.dropout(functional.gelu(self.up(x))))
        return vectors


class TrainableHeads(nn.Module):
    """Heads whose vectors stand beside each other, each at unit length (`JoinedHeads`)."""

    def __init__(self, parts: Iterable[TrainableHead]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat([functional.normalize(part(features), dim=-1) for part in self.parts], dim=-1)


def parts_of(head: nn.Module) -> list[nn.Module]:
    """Return the heads that a head consists of; each is trained by a loss of its own."""
    return list(head.parts) if isinstance(head, TrainableHeads) else [head]


def recall(pictures: Vectors, captions: Vectors, owner: NDArray[np.int64], most: int = 1) -> tuple[float, float]:
    """Return text-to-image and image-to-text R@`most`: how often the right one is among the nearest.

    `owner[j]` is the picture of caption j.

    >>> recall(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)[[1, 0, 0]], np.array([1, 0, 1]))
    (0.6666666666666666, 1.0)
    """
    similarity = unit(captions).astype(np.float32) @ unit(pictures).astype(np.float32).T
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :most]
    to_picture = float((nearest == owner[:, None]).any(axis=1).mean())
    nearest = np.argsort(-similarity.T, axis=1, kind="stable")[:, :most]
    to_caption = float((owner[nearest] == np.arange(len(pictures))[:, None]).any(axis=1).mean())
    return to_picture, to_caption
