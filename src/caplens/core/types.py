"""Array types that many rooms share, and unit vectors."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Number = TypeVar("Number", np.float32, np.float64)


def unit(vectors: NDArray[np.floating]) -> Floats:
    """Scale rows to length one, in float64; a zero row stays zero, NaN stays NaN."""
    return _unit(np.asarray(vectors, np.float64))


def narrow_unit(vectors: Vectors) -> Vectors:
    """Scale rows to length one in float32, for what is kept or fed to a network."""
    return _unit(np.asarray(vectors, np.float32))


def _unit(vectors: NDArray[Number]) -> NDArray[Number]:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[Number] = np.divide(vectors, length, out=np.zeros_like(vectors), where=length != 0)
    return scaled
