"""Layers that several networks share, in numpy: a shipped model needs no torch to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.core.types import Vectors

FEWEST_ROWS = 16
"""From so many on, OpenBLAS takes no other kernel for fewer; tests/attack/test_stable_scores.py holds it."""


def check_shapes(arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ValueError unless these arrays are there in these shapes, and no others.

    >>> check_shapes({"bias": np.zeros(3)}, {"bias": (4,)})
    Traceback (most recent call last):
    ValueError: bias is missing, unknown or of another size
    """
    strange = sorted(arrays.keys() ^ shapes.keys()) or [name for name in shapes if arrays[name].shape != shapes[name]]
    if strange:
        raise ValueError(f"{strange[0]} is missing, unknown or of another size")


def product(rows: Vectors, matrix: Vectors) -> Vectors:
    """Return rows times a matrix; what a row gives does not depend on how many stand beside it.

    Few rows get zeros for company: for them BLAS has kernels that add up in another order.
    """
    if len(rows) >= FEWEST_ROWS:
        made: Vectors = rows @ matrix
        return made
    padded = np.zeros((FEWEST_ROWS, rows.shape[1]), rows.dtype)
    padded[: len(rows)] = rows
    return product(padded, matrix)[: len(rows)]


def linear(values: Vectors, weight: Vectors, bias: Vectors) -> Vectors:
    """Return rows times a matrix (inputs, outputs), plus a bias; rows may stand in any number of axes."""
    outputs = product(values.reshape(-1, values.shape[-1]), weight)  # one product: numpy would make one per batch
    outputs += bias
    return outputs.reshape(*values.shape[:-1], -1)


def layer_norm(values: Vectors, weight: Vectors, bias: Vectors, epsilon: float = 1e-5) -> Vectors:
    """Normalize over the last axis, then scale and shift."""
    centered: Vectors = values - values.mean(axis=-1, keepdims=True)
    variance = np.einsum("...i,...i->...", centered, centered)[..., None] / np.float32(values.shape[-1])
    centered /= np.sqrt(variance + np.float32(epsilon))
    centered *= weight
    centered += bias
    return centered


def softmax(scores: Vectors) -> Vectors:
    """Turn scores into shares that add up to one along the last axis, in place.

    >>> softmax(np.log(np.array([1.0, 3.0], np.float32))).tolist()
    [0.25, 0.75]
    """
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def sigmoid(values: Vectors) -> Vectors:
    """Return 1 / (1 + e⁻ˣ).

    >>> sigmoid(np.array([-200.0, 0.0], np.float32)).tolist()
    [0.0, 0.5]
    """
    with np.errstate(over="ignore"):  # far below zero it is zero
        shares: Vectors = np.exp(-values)
    shares += 1
    return np.reciprocal(shares, out=shares)


def gelu(values: Vectors) -> Vectors:
    """Turn values into x·Φ(x), in place.

    Φ is that of Abramowitz & Stegun 7.1.26 (error below 1.5e-7): scipy's erf would take half the time of a layer.
    Blocks of rows stay in the processor's cache.

    >>> gelu(np.array([[-1.0, 0.0, 2.0]], np.float32)).round(4).tolist()
    [[-0.15870000422000885, 0.0, 1.9544999599456787]]
    """
    for start in range(0, len(values), 32):
        block = values[start : start + 32]
        size = np.abs(block)
        inverse = 1 / (1 + np.float32(0.3275911 * 0.5**0.5) * size)
        tail = np.full_like(size, 1.061405429 / 2)
        for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            tail *= inverse
            tail += np.float32(coefficient / 2)
        tail *= inverse
        tail *= size
        size *= size
        size *= np.float32(-0.5)
        tail *= np.exp(size, out=size)
        np.maximum(block, 0, out=block)
        block -= tail  # max(x, 0) − |x|·(1 − Φ(|x|))
    return values


def split_heads(values: Vectors, heads: int) -> Vectors:
    """View (batch, length, width) as (batch, heads, length, width / heads)."""
    batch, length, width = values.shape
    return values.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def attend(query: Vectors, key: Vectors, value: Vectors, bias: Vectors | None = None) -> Vectors:
    """Return what each query reads of the values, all heads joined again: (batch, length, width).

    All three are split into heads; queries are already divided by the root of a head's width.
    """
    scores = query @ key.swapaxes(2, 3)
    if bias is not None:
        scores += bias
    mixed: Vectors = (softmax(scores) @ value).transpose(0, 2, 1, 3)
    return mixed.reshape(*mixed.shape[:2], -1)
