"""EfficientDet-Lite0 (COCO's 80 classes) on the CPU: boxes, names and confidences of the things in a picture."""

from __future__ import annotations

import functools
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caplens.core.optional import require

if TYPE_CHECKING:
    from PIL.Image import Image

Boxes = NDArray[np.float64]
SIDE = 320
# EfficientDet's anchors (Tan et al., CVPR 2020): 3 octaves × 3 aspect ratios at 5 levels; the Lite models use scale 3.
_GRIDS = (40, 20, 10, 5, 3)
_ANCHOR_SCALE = 3.0
_ASPECTS = (1.0, 2.0, 0.5)


class Detector:
    """Finds things; one instance serves several threads in turn."""

    def __init__(self, weights: Path) -> None:
        interpreter = require("ai_edge_litert.interpreter:Interpreter", purpose="the object detector")
        # It greets once per process on standard error, and has no setting against that. Turning the file descriptor
        # away meanwhile would turn it away for every thread of the process.
        self._interpreter = interpreter(str(weights), num_threads=1)
        self._interpreter.allocate_tensors()
        self._lock = threading.Lock()
        with zipfile.ZipFile(weights) as attached:  # the label list is appended to the model as a zip
            self.labels = attached.read("labels.txt").decode().splitlines()

    def raw(self, image: Image) -> tuple[Boxes, NDArray[np.float32], NDArray[np.int64]]:
        """Every anchor's box (x1, y1, x2, y2 in 0..1), confidence and class, before anything is dropped."""
        from PIL import Image as pillow

        pixels = np.asarray(image.convert("RGB").resize((SIDE, SIDE), pillow.Resampling.BILINEAR), dtype=np.uint8)
        with self._lock:
            self._interpreter.set_tensor(self._interpreter.get_input_details()[0]["index"], pixels[None])
            self._interpreter.invoke()
            outputs: dict[int, Any] = {
                detail["shape"][-1]: self._interpreter.get_tensor(detail["index"])[0]
                for detail in self._interpreter.get_output_details()
            }
        confidences = outputs[len(self.labels)]
        classes = confidences.argmax(axis=1)
        return _decode(outputs[4].astype(np.float64)), confidences.max(axis=1), classes


@functools.cache
def _anchors() -> tuple[Boxes, Boxes]:
    """Centres and sizes (y, x) of all anchors in pixels of the square input."""
    centres, sizes = [], []
    for grid in _GRIDS:
        stride = SIDE / grid
        middle = (np.arange(grid) + 0.5) * stride
        y, x = np.meshgrid(middle, middle, indexing="ij")
        base = [_ANCHOR_SCALE * stride * 2 ** (octave / 3) for octave in range(3)]
        shape = [(size / np.sqrt(aspect), size * np.sqrt(aspect)) for size in base for aspect in _ASPECTS]
        centres.append(np.repeat(np.stack([y.ravel(), x.ravel()], axis=1), len(shape), axis=0))
        sizes.append(np.tile(np.array(shape), (grid * grid, 1)))
    return np.concatenate(centres), np.concatenate(sizes)


def _decode(offsets: Boxes) -> Boxes:
    """The network's (dy, dx, dh, dw) relative to the anchors, as x1, y1, x2, y2 in 0..1."""
    centres, sizes = _anchors()
    centre = centres + offsets[:, :2] * sizes
    half = np.exp(offsets[:, 2:]) * sizes / 2
    corners = np.concatenate([(centre - half)[:, ::-1], (centre + half)[:, ::-1]], axis=1)
    return np.clip(corners / SIDE, 0.0, 1.0)
