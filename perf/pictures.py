"""Pictures from files through an encoder and an empty cache, against the raw encoder on pixels in memory.

By the clock, the encoder on one thread: files are decoded on another core meanwhile, so on a machine with one core, or
a busy one, ratios say nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from caplens.encoders.base import Encoder
from caplens.encoders.embedder import Embedder
from caplens.storage.cache import EmbeddingCache

BAR = 0.95
"""The least share of the raw encoder's throughput."""
ROUNDS = 2


@dataclass(frozen=True)
class Seconds:
    """Of all pictures: raw by batch size, from files, and from files once more. The least of some rounds."""

    raw: dict[int, float]
    first: float
    again: float


def write_pictures(folder: Path, count: int) -> list[Path]:
    """Write pictures of 640 × 480, about as hard to decode as photos."""
    rng = np.random.default_rng(0)
    paths = [folder / f"{number}.jpg" for number in range(count)]
    for path in paths:
        noise = Image.fromarray(rng.integers(0, 255, (60, 80, 3), np.uint8))
        noise.resize((640, 480), Image.Resampling.BICUBIC).save(path, quality=90)
    return paths


def time_pictures(encoder: Encoder, paths: Sequence[Path], folder: Path, batches: Iterable[int]) -> Seconds:
    """Time an encoder by turns with itself, so that all ways meet the machine in the same moods."""
    pixels = np.stack([encoder.pixels(Image.open(path).convert("RGB")) for path in paths])
    encoder.encode_pixels(pixels[: encoder.image_batch])  # loads

    def raw(batch: int) -> None:
        for start in range(0, len(pixels), batch):
            encoder.encode_pixels(pixels[start : start + batch])

    def embed(cache: EmbeddingCache) -> object:
        return Embedder(encoder, cache).images(paths)

    found: dict[int | str, list[float]] = {}
    batches = list(dict.fromkeys(batches))
    ways: list[int | str] = [batches[0], "first", "again", *batches[1:]]
    for turn in range(ROUNDS):
        cache = EmbeddingCache(folder / f"{encoder.name}-{turn}.sqlite")
        for way in ways:
            work = partial(raw, way) if isinstance(way, int) else partial(embed, cache)
            found.setdefault(way, []).append(clock(work))
    return Seconds({batch: min(found[batch]) for batch in batches}, min(found["first"]), min(found["again"]))


def clock(work: Callable[[], object]) -> float:
    """Seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
