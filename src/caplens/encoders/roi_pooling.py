"""Parts of a picture as vectors: means over the cells of a grid that lie under a box."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caplens.core.types import Vectors


def pool_boxes(grid: Vectors, boxes: NDArray[np.floating]) -> Vectors:
    """Mean of a grid (rows, columns, width) under each box (x1, y1, x2, y2 in 0..1), cells by the area they share.

    >>> grid = np.arange(4, dtype=np.float32).reshape(2, 2, 1)
    >>> pool_boxes(grid, np.array([[0, 0, 0.5, 0.5], [0, 0, 1, 1], [0.25, 0, 0.75, 0.5]]))[:, 0].round(3).tolist()
    [0.0, 1.5, 0.5]
    """
    down = _shares(boxes[:, 1], boxes[:, 3], grid.shape[0])
    across = _shares(boxes[:, 0], boxes[:, 2], grid.shape[1])
    weights = (down[:, :, None] * across[:, None, :]).reshape(len(boxes), -1)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights @ grid.reshape(-1, grid.shape[-1]), np.float32)


def _shares(low: NDArray[np.floating], high: NDArray[np.floating], cells: int) -> NDArray[np.float64]:
    """How much of each cell a span covers."""
    edges = np.arange(cells) / cells
    covered = np.minimum(high[:, None], edges + 1 / cells) - np.maximum(low[:, None], edges)
    shares: NDArray[np.float64] = np.clip(covered, 1e-9, None)  # a box without area is as its surroundings
    return shares
