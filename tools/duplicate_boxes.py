"""How many boxes of a picture show the same thing: three ways from a detector's boxes to at most twenty.

    python tools/duplicate_boxes.py FOLDER [PICTURES]

The first PICTURES files of FOLDER by name (300). Each way starts from the boxes as detectors hand them out: those of
EfficientDet-Lite0 from confidence 0.05, suppressed class by class at an overlap of 0.5, and grid cells where few.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from caplens.storage.weights import require
from caplens.vision.detector import Detector
from caplens.vision.images import open_image
from caplens.vision.regions import (
    CLUSTERS,
    MOST_BOXES,
    DetectorProposer,
    GridProposer,
    Regions,
    choose_regions,
    merge_duplicates,
    overlaps,
)
from caplens.vision.regions import _k_means as k_means

LIMITS = (0.5, 0.7, 0.9)


def by_class(detector: Detector, path: Path, least: float) -> Regions:
    """What a detector hands out: its boxes after suppression within each class."""
    image = open_image(path)
    boxes, confidences, classes = detector.raw(image)
    rows = np.flatnonzero(confidences >= least)
    found = Regions.of(boxes[rows], confidences[rows], [detector.labels[number] for number in classes[rows]])
    parts = []
    for label in dict.fromkeys(found.labels):
        inside = np.array([row for row, name in enumerate(found.labels) if name == label], np.intp)
        parts.append(merge_duplicates(found.take(inside), same=0.5))
    if sum(len(part) for part in parts) < CLUSTERS:
        rest = GridProposer()(image, path.stem)
        parts.append(Regions(rest.boxes, rest.confidences * least, rest.labels))
    regions = Regions.of(
        np.concatenate([part.boxes for part in parts]),
        np.concatenate([part.confidences for part in parts]),
        [label for part in parts for label in part.labels],
    )
    return regions.take(np.arange(min(MOST_BOXES, len(regions))))


def clustered(regions: Regions) -> Regions:
    """As the paper: k-means to twenty, the most confident of each."""
    if len(regions) <= CLUSTERS:
        return regions
    nearest = k_means(regions.boxes, CLUSTERS)
    best = [int(np.flatnonzero(nearest == cluster)[0]) for cluster in np.unique(nearest)]
    return regions.take(np.sort(np.array(best)))


def near_pairs(regions: Regions) -> list[int]:
    """Pairs of boxes at every limit, and all pairs."""
    pairs = overlaps(regions.boxes, regions.boxes)[np.triu_indices(len(regions), 1)]
    return [*(int((pairs >= limit).sum()) for limit in LIMITS), len(pairs)]


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))[:count]
    proposer, detector = DetectorProposer(), Detector(require("efficientdet-lite0"))
    found: dict[str, list[list[int]]] = {}
    for path in paths:
        boxes = by_class(detector, path, proposer.least_confidence)
        ways = {
            "the 20 most confident": boxes.take(np.arange(min(CLUSTERS, len(boxes)))),
            "k-means to 20, as the paper": clustered(boxes),
            "caplens": choose_regions(proposer(open_image(path), path.stem)),
        }
        for name, regions in ways.items():
            found.setdefault(name, []).append(near_pairs(regions))
    print(f"{len(paths)} pictures; pairs of boxes per picture with an overlap from:")
    for name, rows in found.items():
        table = np.array(rows)
        cells = "  ".join(
            f"{limit}: {table[:, place].mean():5.2f} ({table[:, place].sum() / table[:, -1].sum():.2%})"
            for place, limit in enumerate(LIMITS)
        )
        some = np.mean(table[:, LIMITS.index(0.7)] > 0)
        print(f"{name:28} {cells}   pictures with a pair from 0.7: {some:.1%}")


if __name__ == "__main__":
    main()
