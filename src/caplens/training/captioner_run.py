"""The captioner's whole recipe: grids of pictures, computed once and kept; training; what it reaches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors
from caplens.encoders.base import Encoder
from caplens.encoders.load import load_encoder
from caplens.evaluation.evaluate import evaluate
from caplens.storage.atomic import write_atomically
from caplens.training.captioner import CaptionerConfig, Pictures, train_captioner
from caplens.training.captioner_network import Captioner, FeatureSpec
from caplens.training.pairs import picture_features, read_pairs

if TYPE_CHECKING:
    from PIL.Image import Image

METRICS = ("cider-r", "cider-d", "rouge-l", "bleu-4")


class GridFeatures:
    """An encoder's grids as features to train on."""

    def __init__(self, encoder: Encoder, side: int) -> None:
        self.encoder, self.side = encoder, side

    def pixels(self, image: Image) -> Vectors:
        return self.encoder.pixels(image)

    def image_features(self, batch: Vectors) -> Vectors:
        """(pictures, cells, width)."""
        grid = self.encoder.encode_grid(batch, self.side)
        return grid.reshape(len(batch), self.side**2, -1)


def grid_features(
    encoder: Encoder, side: int, images: Path, names: Sequence[str], folder: Path, progress: Progress = silent
) -> Tensor:
    """Grids of these pictures in half precision, from the folder where they are, else computed and kept there."""
    kept = folder / f"grid-{side}"
    made = torch.from_numpy(picture_features(GridFeatures(encoder, side), images, names, kept, progress)).half()
    if made.ndim != 3 or made.shape[1] != side**2:
        raise InputError(f"holds no grids of {side} by {side} cells", where=str(kept), remedy="give another --features")
    return made


def train_on_files(
    images: Path,
    captions: Path,
    output: Path,
    config: CaptionerConfig,
    *,
    encoder: str = "embedded",
    features: Path | None = None,
    weights: Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Train on the pictures of split train; what val and test reach is reported, nothing is chosen on them."""
    pairs = read_pairs(captions)
    start = None if weights is None else Captioner.load(weights)
    seeing = load_encoder(encoder)
    side = config.grid if start is None else start.sight.side
    sight = FeatureSpec(encoder, seeing.grid_identity, side)
    if start is not None and start.sight.identity != sight.identity:
        raise InputError(
            f"was trained on {start.sight.identity}, not on {sight.identity}",
            where=str(weights),
            remedy=f"give --encoder {start.sight.encoder}",
        )
    splits = {"train": pairs.train, "val": pairs.val, "test": pairs.test}
    names = [name for split in splits.values() for name in split]
    grids = grid_features(seeing, side, images, names, features or output / "features", progress)
    place = {name: row for row, name in enumerate(names)}

    def part(split: Mapping[str, list[str]]) -> Pictures:
        return Pictures(list(split), grids[[place[name] for name in split]], list(split.values()))

    captioner = train_captioner(part(pairs.train), config, sight, output, progress, start)
    reached: dict[str, Any] = {"training pictures": len(pairs.train), "config": asdict(config)}
    for name in ("val", "test"):
        if splits[name]:
            reached[name] = reach(captioner, part(splits[name]))
    write_atomically(output / "result.json", json.dumps(reached, indent=2) + "\n")
    return reached


def reach(captioner: Captioner, pictures: Pictures, metrics: Sequence[str] = METRICS) -> dict[str, float]:
    """Scores of the captioner's captions of these pictures."""
    report = evaluate(captioner.caption(pictures.features), pictures.references, metrics=metrics)
    return {result.name: result.score for result in report}
