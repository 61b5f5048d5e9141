"""Array types that many rooms share, and unit vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scale rows to length one, in float64; a zero row stays zero, NaN stays NaN."""
    wide = np.asarray(vectors, np.float64)
    length = np.linalg.norm(wide, axis=-1, keepdims=True)
    scaled: NDArray[np.float64] = np.divide(wide, length, out=np.zeros_like(wide), where=length != 0)
    return scaled
