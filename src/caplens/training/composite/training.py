"""Train the composite on collections of captions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from caplens.core.progress import Progress, silent
from caplens.training.composite.config import CompositeConfig
from caplens.training.composite.data import FEWEST, Captions, load_data
from caplens.training.composite.model import fit, held_out
from caplens.training.run import TrainingRun


def train(
    human: Sequence[Captions],
    machine: Captions,
    background: Captions,
    images: str | os.PathLike[str] | None,
    output: str | os.PathLike[str],
    config: CompositeConfig | None = None,
    *,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Fit the model; writes `caplens.safetensors` and the learning curve into the folder.

    The first caption of every picture in `background`, none of which is in the collections, says what is usual.
    `images` is a folder with pictures under the names that the captions have; without any, the picture counts nothing.
    Interrupted and started again, it goes on with the features that the cache holds.
    """
    config = config or CompositeConfig()
    data = load_data(human, machine, background, images, config, progress)
    run = TrainingRun(output, {**asdict(config), **data.facts})
    run.resume()  # the curve starts anew
    sizes = curve_sizes(int(data.facts["images"]))
    for done, count in enumerate(sizes):
        progress("learning curve", done, len(sizes))
        loss, orders = held_out(data.trials, config, count)
        run.log(pictures=count, held_out_loss=loss, held_out_right_order=float(np.mean(orders)))
    progress("learning curve", len(sizes), len(sizes))
    network = fit(data, config)
    weights = run.folder / "caplens.safetensors"
    network.save(weights)
    run.draw_curve("pictures")
    columns = network.layers[0][0][:, 0].tolist()
    return {
        "weights": str(weights),
        **network.about,
        "feature weights": dict(zip(network.features, columns, strict=True)),
    }


def curve_sizes(images: int) -> list[int]:
    """Return how many pictures the learning curve trains on: all, half, a quarter … of them.

    >>> curve_sizes(964)
    [30, 60, 120, 241, 482, 964]
    """
    return [images // 2**step for step in reversed(range(images.bit_length())) if images // 2**step >= FEWEST]
