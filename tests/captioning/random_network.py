"""A captioner's network with random weights, and opinions strong enough to tell beams apart."""

from __future__ import annotations

import numpy as np

from caplens.captioning.aoanet import AoANetConfig, CaptionNetwork


def random_network(seed: int, features: int, vocabulary: int, refining_layers: int) -> CaptionNetwork:
    """Return a small network; the same seed gives the same."""
    config = AoANetConfig(features, vocabulary, width=16, heads=2, refining_layers=refining_layers)
    random = np.random.default_rng(seed)

    def drawn(name: str, shape: tuple[int, ...]) -> np.ndarray:
        spread = 1.5 if name == "predict.weight" else shape[-1] ** -0.5
        return random.normal(scale=spread, size=shape).astype(np.float32)

    return CaptionNetwork(config, {name: drawn(name, shape) for name, shape in config.shapes().items()})
