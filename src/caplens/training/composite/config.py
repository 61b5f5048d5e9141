"""Settings of the composite's training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CompositeConfig:
    """Everything that changes the outcome."""

    edition: str = "embedded"
    """Of the embedded encoder, whose space captions and pictures are compared in."""
    images: int = 1000
    """So many pictures of a collection, its first, have captions judged for them; the others only lend theirs."""
    pictures: int = 300
    """So many of these are looked at, where there are pictures."""
    gamed: int = 300
    """So many of each collection, the background's too, have their captions gamed."""
    given_up: float = 0.01
    """The share of pictures whose gamed captions, kind by kind, may win again so that honest captions pay less."""
    decay: float = 1e-3
    folds: int = 5
    seed: int = 1
