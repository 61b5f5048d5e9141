"""The embedded encoder in 8-bit numbers against float32: CPU seconds per picture, and how far its scores drift.

    python perf/int8.py [FOLDER [PICTURES]]     # without a folder: the photos of scikit-image

Drift: the cosine of both vectors of a picture, and CLIP-S of every picture with 200 COCO captions under both.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
from perf.coco import captions
from perf.measure import measure
from PIL import Image
from scipy.stats import spearmanr

from caplens.core.types import unit
from caplens.encoders.embedded import load_embedded
from caplens.metrics.clip_score import ClipScore
from caplens.vision.images import open_image

BUNDLED = ("astronaut", "camera", "chelsea", "coffee", "coins", "rocket", "hubble_deep_field", "grass", "brick")


def pictures(folder: str | None, count: int) -> list[Image.Image]:
    if folder is not None:
        return [open_image(path) for path in sorted(Path(folder).glob("*.jpg"))[:count]]
    from skimage import data

    return [Image.fromarray(getattr(data, name)()).convert("RGB") for name in BUNDLED]


def main(folder: str | None = None, count: int = 100) -> None:
    shown = pictures(folder, count)
    texts = [listed[0] for listed in captions().values()][:200]
    seconds, vectors, scores = [], [], []
    for int8 in (False, True):
        encoder = load_embedded(int8=int8)
        encoder.encode_images(shown[:4])  # loads, and makes the 8-bit weights
        taken, seen = measure(partial(encoder.encode_images, shown))
        seconds.append(taken / len(shown))
        vectors.append(unit(seen))
        scores.append(ClipScore.scale * np.maximum(unit(seen) @ unit(encoder.encode_texts(texts)).T, 0))
        print(f"{encoder.identity}: {seconds[-1]:.3f} CPU seconds per picture")
    cosine = np.einsum("ij,ij->i", *vectors)
    drift = np.abs(scores[1] - scores[0])
    order = np.mean([spearmanr(one, other).statistic for one, other in zip(*scores, strict=True)])
    print(
        f"{len(shown)} pictures: {seconds[0] / seconds[1]:.2f}x, cosine {cosine.mean():.4f} (least {cosine.min():.4f})"
    )
    print(
        f"CLIP-S moves by {drift.mean():.4f} on average and {drift.max():.3f} at most, while it spreads by "
        f"{scores[0].std():.3f}; the order of a picture's captions: Spearman {order:.3f}"
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None, *map(int, sys.argv[2:3]))
