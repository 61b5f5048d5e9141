"""Regions of pictures to learn from, kept in a folder: their boxes, and their vectors under an encoder.

The two are kept apart: whoever trains over another encoder need not look for things in the same pictures again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors
from caplens.encoders.base import Encoder, ahead
from caplens.metrics.infometic.region_features import ImageRegions
from caplens.storage.identity import Identity
from caplens.training.features import Arrays, kept_features, pictures_identity
from caplens.training.pairs import PICTURES_PER_FILE
from caplens.vision.images import open_image
from caplens.vision.regions import Proposer, Regions, choose_regions

if TYPE_CHECKING:
    from PIL.Image import Image


def region_features(
    encoder: Encoder, proposer: Proposer, images: Path, names: Sequence[str], folder: Path, progress: Progress = silent
) -> list[ImageRegions]:
    """Return the regions of every picture, kept in `folder` in pieces: an interrupted run goes on where it was."""

    def opened(part: list[str]) -> Iterator[tuple[str, Image]]:
        return zip(part, ahead(lambda name: open_image(images / name), part, depth=8), strict=True)

    def propose(part: list[str], report: Callable[[int], None]) -> Arrays:
        found: list[Regions] = []
        report(0)
        for name, image in opened(part):
            found.append(choose_regions(proposer(image, Path(name).stem)))
            report(len(found))
        return pack_regions(found)

    def encode(part: list[str], regions: Sequence[Regions], report: Callable[[int], None]) -> Arrays:
        vectors: list[Vectors] = []
        report(0)
        for found, (_, image) in zip(regions, opened(part), strict=True):
            vectors.append(encoder.encode_regions(image, found.boxes))
            report(len(vectors))
        return {"vectors": np.concatenate(vectors).astype(np.float16)}

    def report(task: str, start: int, done: int) -> None:
        progress(task, start + done, len(names))

    every: list[ImageRegions] = []
    for start in range(0, len(names), PICTURES_PER_FILE):
        part = list(names[start : start + PICTURES_PER_FILE])
        file, pictures = f"{start:06d}.safetensors", pictures_identity(images, part)

        boxes = kept_features(
            folder / "boxes" / file,
            Identity.of([proposer.identity, pictures]),
            partial(propose, part, partial(report, "regions of pictures", start)),
        )
        regions = unpack_regions(boxes)
        vectors = kept_features(
            folder / file,
            Identity.of([encoder.fingerprint, proposer.identity, pictures]),
            partial(encode, part, regions, partial(report, "vectors of regions", start)),
        )["vectors"]
        ends = np.cumsum([1 + len(found) for found in regions])
        every += [
            ImageRegions(found, rows.astype(np.float32))
            for found, rows in zip(regions, np.split(vectors, ends[:-1]), strict=True)
        ]
    progress("vectors of regions", len(names), len(names))
    return every


def pack_regions(images: Sequence[Regions]) -> Arrays:
    """Return arrays end to end, labels as the bytes of a json text."""
    return {
        "labels": np.frombuffer(json.dumps([regions.labels for regions in images]).encode(), np.uint8),
        "counts": np.array([len(regions) for regions in images]),
        "boxes": np.concatenate([regions.boxes for regions in images]).astype(np.float32),
        "confidences": np.concatenate([regions.confidences for regions in images]).astype(np.float32),
    }


def unpack_regions(arrays: Arrays) -> list[Regions]:
    """Return what was packed, picture by picture."""
    labels = json.loads(arrays["labels"].tobytes())
    ends = np.cumsum(arrays["counts"].astype(int))[:-1]
    boxes = np.split(arrays["boxes"].astype(np.float64), ends)
    confidences = np.split(arrays["confidences"].astype(np.float64), ends)
    return [Regions(found, sure, tuple(names)) for found, sure, names in zip(boxes, confidences, labels, strict=True)]
