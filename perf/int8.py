"""The embedded encoder in 8-bit numbers against float32, both editions: CPU seconds per picture, drift of scores.

    python -m perf.int8 [FOLDER [PICTURES]]     # without a folder: the photos of scikit-image

Drift: the cosine of both vectors of a picture, and CLIP-S of every picture with 200 COCO captions under both. Rounding
to 8 bits turns a difference in the last bit of a float into one as large as that: the same is printed for pixels that
differ by float32's rounding, as another processor's sums would.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from perf.coco import captions
from perf.measure import measure
from PIL import Image
from scipy.stats import spearmanr

from caplens.core.errors import MissingData
from caplens.core.types import Vectors, unit
from caplens.encoders.base import Encoder
from caplens.encoders.embedded import EDITIONS, load_embedded
from caplens.metrics.clip_score import ClipScore
from caplens.vision.images import open_image

BUNDLED = ("astronaut", "camera", "chelsea", "coffee", "coins", "rocket", "hubble_deep_field", "grass", "brick")


def read_pictures(folder: str | None, count: int) -> list[Image.Image]:
    if folder is not None:
        return [open_image(path) for path in sorted(Path(folder).glob("*.jpg"))[:count]]
    from skimage import data

    return [Image.fromarray(getattr(data, name)()).convert("RGB") for name in BUNDLED]


def encode(encoder: Encoder, pixels: list[Vectors]) -> NDArray[np.float64]:
    return unit(encoder.project_images(np.stack(list(encoder.prepared_features(pixels)))))


def report(what: str, one: NDArray[np.float64], other: NDArray[np.float64], texts: NDArray[np.float64]) -> None:
    """How far two sets of vectors of the same pictures are apart."""
    cosine = np.einsum("ij,ij->i", one, other)
    before, after = (ClipScore.scale * np.maximum(vectors @ texts.T, 0) for vectors in (one, other))
    drift = np.abs(after - before)
    order = np.mean([spearmanr(*rows).statistic for rows in zip(before, after, strict=True)])
    print(f"  {what}: cosine {cosine.mean():.4f} (least {cosine.min():.4f})")
    print(
        f"    CLIP-S moves by {drift.mean():.4f} on average and {drift.max():.3f} at most, while it spreads by "
        f"{before.std():.3f}; the order of a picture's captions: Spearman {order:.3f}"
    )


def main(folder: str | None = None, count: int = 100) -> None:
    shown = read_pictures(folder, count)
    captions_of = [listed[0] for listed in captions().values()][:200]
    rng = np.random.default_rng(0)
    for edition in EDITIONS:
        seconds, vectors = [], []
        for int8 in (False, True):
            try:
                encoder = load_embedded(edition=edition, int8=int8)
            except MissingData as missing:
                print(missing)
                break
            pixels = [encoder.pixels(picture) for picture in shown]
            encode(encoder, pixels[:4])  # loads, and makes the 8-bit weights
            taken, made = measure(partial(encode, encoder, pixels))
            seconds.append(taken / len(shown))
            vectors.append(made)
            print(f"{encoder.identity}: {seconds[-1]:.3f} CPU seconds per picture, pixels in memory")
        else:
            texts = unit(encoder.encode_texts(captions_of))
            noise = [each * (1 + rng.uniform(-2e-7, 2e-7, each.shape)).astype(np.float32) for each in pixels]
            print(f"{edition}, {len(shown)} pictures: {seconds[0] / seconds[1]:.2f}x")
            report("8 bits against float", vectors[0], vectors[1], texts)
            report("8 bits, pixels off by rounding", vectors[1], encode(encoder, noise), texts)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None, *map(int, sys.argv[2:3]))
