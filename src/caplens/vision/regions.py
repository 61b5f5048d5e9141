"""Regions of a picture, as InfoMetIC looks at them: proposed, cleared of near-duplicates, clustered to twenty.

A proposer turns a picture into `Regions`. There are four: `DetectorProposer` (default; weights from the package index),
`TransformersProposer` (any detector of that library), `GridProposer` (no weights), `FileProposer` (boxes you have).
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from caplens.core import optional
from caplens.core.errors import InputError
from caplens.storage import weights
from caplens.storage.digests import content_digest

if TYPE_CHECKING:
    from PIL.Image import Image

    from caplens.vision.detector import Detector

Boxes = NDArray[np.float64]
MOST_BOXES = 100
CLUSTERS = 20
SAME_BOX = 0.7
"""Overlap (intersection over union) from which two boxes show the same thing."""


@dataclass(frozen=True)
class Regions:
    """Boxes (x1, y1, x2, y2 in 0..1), the most confident first."""

    boxes: Boxes
    confidences: NDArray[np.float64]
    labels: tuple[str, ...]
    """The detector's name for each; empty where it has none."""

    def __len__(self) -> int:
        return len(self.boxes)

    def take(self, rows: NDArray[np.intp]) -> Regions:
        return Regions(self.boxes[rows], self.confidences[rows], tuple(self.labels[row] for row in rows))

    @classmethod
    def of(cls, boxes: Any, confidences: Any, labels: Any = None) -> Regions:
        """Sorted by confidence; ties keep their order."""
        boxes = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
        confidences = np.asarray(confidences, dtype=np.float64)
        names = tuple(labels) if labels is not None else ("",) * len(boxes)
        return cls(boxes, confidences, names).take(np.argsort(-confidences, kind="stable"))


class Proposer(Protocol):
    """Where regions come from; the name goes into signatures."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str:
        """Everything that its regions depend on: what they are kept under."""
        ...

    def __call__(self, image: Image, image_id: str) -> Regions: ...


def choose_regions(regions: Regions, most: int = MOST_BOXES, clusters: int = CLUSTERS) -> Regions:
    """The `most` confident regions, near-duplicates merged, then the best of each of `clusters` k-means clusters.

    The paper clusters without merging first and names the leftover duplicates as its open problem.
    """
    merged = merge_duplicates(regions.take(np.arange(min(most, len(regions)))))
    if len(merged) <= clusters:
        return merged
    nearest = _k_means(merged.boxes, clusters)
    best = [int(np.flatnonzero(nearest == cluster)[0]) for cluster in np.unique(nearest)]
    return merged.take(np.sort(np.array(best)))


def merge_duplicates(regions: Regions, same: float = SAME_BOX) -> Regions:
    """Drop every box that overlaps a more confident one almost wholly."""
    overlap = overlaps(regions.boxes, regions.boxes)
    kept: list[int] = []
    for row in range(len(regions)):
        if not kept or overlap[row, kept].max() < same:
            kept.append(row)
    return regions.take(np.array(kept, dtype=np.intp))


def overlaps(a: Boxes, b: Boxes) -> Boxes:
    """Intersection over union of every box of a with every box of b."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    common = np.clip(high - low, 0, None).prod(axis=-1)
    area_a, area_b = ((box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]) for box in (a, b))
    joint: Boxes = common / np.maximum(area_a[:, None] + area_b[None, :] - common, 1e-12)
    return joint


def _k_means(points: Boxes, clusters: int, rounds: int = 50) -> NDArray[np.intp]:
    """Cluster number of each point. The start is fixed (each next centre the farthest point), so is the result."""
    centres = points[:1]
    for _ in range(clusters - 1):
        distance = ((points[:, None] - centres[None]) ** 2).sum(-1).min(axis=1)
        centres = np.concatenate([centres, points[[int(distance.argmax())]]])
    nearest = np.zeros(len(points), dtype=np.intp)
    for round_number in range(rounds):
        assigned = ((points[:, None] - centres[None]) ** 2).sum(-1).argmin(axis=1)
        if round_number and (assigned == nearest).all():
            break
        nearest = assigned
        for cluster in range(clusters):
            if (nearest == cluster).any():
                centres[cluster] = points[nearest == cluster].mean(axis=0)
    return nearest


@dataclass
class DetectorProposer:
    """EfficientDet-Lite0 for things; parts of the picture where it sees none come from the grid."""

    least_confidence: float = 0.05
    name: str = "efficientdet-lite0"
    _detector: Detector | None = field(default=None, repr=False)

    @property
    def identity(self) -> str:
        return f"{self.name} {weights.model_digest(self.name)} {self.least_confidence}"

    def __call__(self, image: Image, image_id: str) -> Regions:
        from caplens.storage.weights import require
        from caplens.vision.detector import Detector

        self._detector = self._detector or Detector(require("efficientdet-lite0"))
        boxes, confidences, classes = self._detector.raw(image)
        rows = np.flatnonzero(confidences >= self.least_confidence)
        names = [self._detector.labels[number] for number in classes[rows]]
        objects = Regions.of(boxes[rows], confidences[rows], names).take(np.arange(min(len(rows), 4 * MOST_BOXES)))
        objects = merge_duplicates(objects, same=0.5)  # an object detector's usual suppression
        if len(objects) >= CLUSTERS:
            return objects
        cells = GridProposer()(image, image_id)
        # Grid cells rank below every detected object.
        return Regions.of(
            np.concatenate([objects.boxes, cells.boxes]),
            np.concatenate([objects.confidences, cells.confidences * self.least_confidence]),
            objects.labels + cells.labels,
        )


@dataclass
class GridProposer:
    """Overlapping windows of three sizes; confidence is how much of the picture's contrast a window holds."""

    name: str = "grid"

    @property
    def identity(self) -> str:
        return self.name

    def __call__(self, image: Image, image_id: str) -> Regions:
        grey = np.asarray(image.convert("L").resize((96, 96)), dtype=np.float64)
        down, right = np.abs(np.diff(grey, axis=0))[:, :-1], np.abs(np.diff(grey, axis=1))[:-1]
        summed = np.zeros((96, 96))
        summed[1:, 1:] = (down + right).cumsum(axis=0).cumsum(axis=1)
        boxes = np.array(
            [
                (x / steps, y / steps, (x + span) / steps, (y + span) / steps)
                for steps, span in ((2, 1), (3, 2), (4, 2), (4, 1))
                for y in range(steps - span + 1)
                for x in range(steps - span + 1)
            ]
        )
        x1, y1, x2, y2 = np.round(boxes * 95).astype(int).T
        held = summed[y2, x2] - summed[y1, x2] - summed[y2, x1] + summed[y1, x1]
        area = (x2 - x1) * (y2 - y1)
        density = held / np.sqrt(area)  # between total contrast (favours large) and mean contrast (favours small)
        return Regions.of(boxes, density / max(density.max(), 1e-12))


@dataclass
class TransformersProposer:
    """Any object detector that the transformers library loads from a folder or the hub."""

    weights: str
    least_confidence: float = 0.05
    _model: Any = field(default=None, repr=False)
    _processor: Any = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return f"{Path(self.weights).name}@{weights.model_digest(self.weights)[:12]}"

    @property
    def identity(self) -> str:
        return f"{self.weights} {weights.model_digest(self.weights)} {self.least_confidence}"

    def __call__(self, image: Image, image_id: str) -> Regions:
        purpose = f"the detector {Path(self.weights).name}"
        torch = optional.require("torch", "transformers", purpose=purpose)
        if self._model is None:
            processor = optional.require("transformers:AutoImageProcessor", purpose=purpose)
            model = optional.require("transformers:AutoModelForObjectDetection", purpose=purpose)
            folder = str(weights.require(self.weights, purpose=purpose))
            self._processor = processor.from_pretrained(folder)
            self._model = model.from_pretrained(folder).eval()
        inputs = self._processor(images=image.convert("RGB"), return_tensors="pt")
        with torch.no_grad():
            outputs = self._model(**inputs)
        detections = self._processor.post_process_object_detection(
            outputs, threshold=self.least_confidence, target_sizes=[(1, 1)]
        )[0]
        names = [self._model.config.id2label[int(label)] for label in detections["labels"]]
        return Regions.of(
            np.clip(detections["boxes"].double().numpy(), 0, 1), detections["scores"].double().numpy(), names
        )


class FileProposer:
    """Boxes from a file: json ``{id: {"boxes": [[x1, y1, x2, y2]], "width", "height"}}`` with ``"confidences"`` and
    ``"labels"`` if there are any, or the tsv of bottom-up features (image_id, image_w, image_h, num_boxes, boxes as
    base64 float32).
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError("there is no such file of boxes", where=str(self.path), remedy="check the path")
        digest = content_digest(self.path)
        self.name, self.identity = f"{self.path.stem}@{digest[:12]}", f"file of boxes {digest}"
        self._records = self._tsv() if self.path.suffix == ".tsv" else self._json()

    def __call__(self, image: Image, image_id: str) -> Regions:
        return self.boxes_of(image_id)

    def boxes_of(self, image_id: str) -> Regions:
        """The boxes of a picture, which need not be looked at."""
        record = self._records.get(image_id)
        if record is None:
            raise InputError(f"no boxes for id {image_id!r}", where=str(self.path))
        return record

    def _json(self) -> dict[str, Regions]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            return {str(key): self._regions(key, record) for key, record in content.items()}
        except (json.JSONDecodeError, AttributeError) as error:
            raise InputError(f"not json of boxes by id ({error})", where=str(self.path)) from None

    def _tsv(self) -> dict[str, Regions]:
        """The boxes of a bottom-up file: id, width, height, count, boxes and features; the last two in base64."""
        records = {}
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    key, width, height, _, packed, *_ = line.decode("utf-8").rstrip("\r\n").split("\t")
                    boxes = np.frombuffer(base64.b64decode(packed, validate=True), dtype=np.float32)
                    size = {"width": float(width), "height": float(height)}
                except ValueError as error:
                    raise InputError(
                        f"not a line of boxes ({error})",
                        where=f"{self.path}, line {number}",
                        remedy="give bottom-up's tsv",
                    ) from None
                records[key] = self._regions(key, {"boxes": boxes, **size})
        return records

    def _regions(self, key: str, record: Mapping[str, Any]) -> Regions:
        try:
            boxes = np.asarray(record["boxes"], dtype=np.float64).reshape(-1, 4)
            size = np.array([record["width"], record["height"]] * 2, dtype=np.float64)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"boxes of id {key!r} cannot be used ({error})",
                where=str(self.path),
                remedy="give boxes, width and height",
            ) from None
        # Bottom-up files are sorted by confidence without saying it.
        confidences = record.get("confidences", np.linspace(1, 0.5, len(boxes)))
        labels = [str(label) for label in record.get("labels", [""] * len(boxes))]
        if len(confidences) != len(boxes) or len(labels) != len(boxes):
            counts = f"{len(boxes)} boxes, {len(confidences)} confidences and {len(labels)} labels"
            raise InputError(f"id {key!r} has {counts}", where=str(self.path), remedy="give as many of each")
        return Regions.of(np.clip(boxes / size, 0, 1), confidences, labels)


def make_proposer(regions: str) -> Proposer:
    """By name: "detector", "grid", a file of boxes, or a transformers detector's folder or hub name."""
    if regions in ("detector", "efficientdet-lite0"):
        return DetectorProposer()
    if regions == "grid":
        return GridProposer()
    if regions.endswith((".json", ".tsv")):
        return _read_boxes(regions, weights.model_digest(regions))
    return TransformersProposer(regions)


@functools.lru_cache(maxsize=1)
def _read_boxes(path: str, _: str) -> FileProposer:
    """A file of boxes, which may be large, read again when its content has changed."""
    return FileProposer(path)
