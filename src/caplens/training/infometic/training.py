"""Train InfoMetIC's network over a frozen encoder, from pictures and captions to weights.

Features are computed once and kept; the rest takes minutes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors
from caplens.encoders.devices import CPU, Placement, encoder_place
from caplens.encoders.load import load_encoder
from caplens.metrics.infometic.explained import LEAST_ALPHA
from caplens.metrics.infometic.network import heads_of
from caplens.storage.tensors import write_tensors
from caplens.training.infometic.config import InfoMeticConfig
from caplens.training.infometic.data import load_splits, token_vectors
from caplens.training.infometic.losses import Losses, Sampler, pearson_loss
from caplens.training.infometic.network import InfoMeticNetwork
from caplens.training.infometic.tensors import (
    CaptionTensors,
    SplitTensors,
    principal_projection,
    projection_samples,
    split_tensors,
)
from caplens.training.run import TrainingRun
from caplens.training.trainer import Plan, Step, Task, Trainer, warm_up_cosine
from caplens.vision.regions import make_proposer

SCALE_FACTORS = tuple(2.0 ** (step / 4) for step in range(-8, 13))
"""Scales of the learned scores that are tried at the end, as multiples of what was learned."""
LARGEST_SCALE = 100


def new_network(projection: Tensor | None, width: int, config: InfoMeticConfig, scale: float) -> InfoMeticNetwork:
    """Return an untrained network near InfoCLIP: attention as the encoder's cosines, blocks that add little."""
    torch.manual_seed(config.seed)
    network = InfoMeticNetwork(width, heads_of(width), config.intra_layers, config.inter_layers, projection)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith(("out_proj.weight", "c_proj.weight")):
                parameter.mul_(0.1)
        for side, share in (("img", 1.0), ("text", 0.5)):  # a caption has fewer words than a picture has regions
            getattr(network, f"{side}_att_query").copy_(torch.eye(width) * scale * share / width)
            getattr(network, f"{side}_att_key").copy_(torch.eye(width))
        network.logit_scale.fill_(math.log(config.scale))
    return network


class InfoMeticTask(Task):
    """Coarse steps and, every so often, a fine one; validated on the same losses."""

    def __init__(
        self,
        network: InfoMeticNetwork,
        tokens: Vectors,
        train: SplitTensors,
        val: SplitTensors,
        config: InfoMeticConfig,
        scale: float,
        place: Placement = CPU,
    ) -> None:
        self.place = place
        table = network.project(torch.from_numpy(tokens)).to(place.device)
        self.model: InfoMeticNetwork = network.to(place.device)
        self.generator = torch.Generator().manual_seed(config.seed)
        self.config, self.sampler = config, Sampler(train, config, self.generator)
        self.losses, self.held_out = (
            Losses(network, table, split.to(place.device), config, scale) for split in (train, val)
        )

    def step(self, number: int) -> Step:
        cycle = self.config.coarse_per_fine + 1
        if self.config.fine_grained and number % cycle == cycle - 1:
            losses = self.losses.fine(*self.sampler.fine())
        else:
            losses = self.losses.coarse(*self.sampler.coarse())
        loss = torch.stack(list(losses.values())).sum()
        return Step(loss, {"train": loss.detach()})

    def constrain(self) -> None:
        with torch.no_grad():
            self.model.logit_scale.clamp_(max=math.log(LARGEST_SCALE))

    def validate(self) -> dict[str, float]:
        return validate(self.held_out, self.config)


def fit(
    network: InfoMeticNetwork,
    tokens: Vectors,
    train: SplitTensors,
    val: SplitTensors,
    config: InfoMeticConfig,
    scale: float,
    run: TrainingRun,
    progress: Progress = silent,
    place: Placement = CPU,
) -> dict[str, float]:
    """Train the network in place up to its best validation loss; return what it reaches there."""
    task = InfoMeticTask(network, tokens, train, val, config, scale, place)
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    plan = Plan(
        name="training InfoMetIC",
        steps=config.steps,
        validate_every=config.validate_every,
        monitor="loss",
        patience=config.patience * config.validate_every,
        clip_norm=1.0,
    )
    scheduler = warm_up_cosine(optimizer, config.warm_up, config.steps)
    fitted = Trainer(task, optimizer, run, plan, scheduler=scheduler, progress=progress).fit()
    if config.graded:
        calibrate_scale(task.held_out, config)
    return {"steps": fitted.steps, "best step": fitted.best_step, **validate(task.held_out, config)}


def calibrate_scale(losses: Losses, config: InfoMeticConfig, batches: int = 40) -> None:
    """Set the scale of the learned scores to what agrees best with grades on validation photos, beside the cosine.

    The encoder knows its training pictures too well: there its cosine needs less help than on others.
    """
    sampler = Sampler(losses.split, config, torch.Generator().manual_seed(2))
    with torch.inference_mode():
        tables = [losses.graded_tables(*sampler.coarse()[:2]) for _ in range(batches)]
        by_factor = {
            factor: sum(float(pearson_loss(factor * sums + cosines, grades)) for sums, cosines, grades in tables)
            for factor in SCALE_FACTORS
        }
        losses.network.logit_scale.add_(math.log(min(by_factor, key=by_factor.__getitem__)))


def validate(losses: Losses, config: InfoMeticConfig, batches: int = 8) -> dict[str, float]:
    """Return the same losses on fixed draws of the validation split, and what they mean for people."""
    sampler = Sampler(losses.split, config, torch.Generator().manual_seed(1))
    drawn: dict[str, list[float]] = {}
    with torch.inference_mode():
        for _ in range(batches):
            for name, value in losses.coarse(*sampler.coarse()).items():
                drawn.setdefault(name, []).append(float(value))
        corrupted = torch.arange(len(losses.split.corrupted.rows))[:256]
        by_word, words = losses.words(corrupted)
        _, regions = losses.regions(torch.from_numpy(sampler.with_regions)[:256])
    figures = {name: float(np.mean(values)) for name, values in drawn.items()}
    loss = sum(figures.values())
    if config.fine_grained:
        figures |= {"words": float(words), "regions": float(regions)}
        loss += (float(words) + float(regions)) / config.coarse_per_fine
    return {"loss": loss, **figures, **word_figures(by_word, losses.split.corrupted, corrupted)}


def word_figures(by_word: Tensor, captions: CaptionTensors, rows: Tensor) -> dict[str, float]:
    """Return how often the replaced word has the least α of all semantic words, and how many words β judges rightly.

    A replaced word that was cut off the end counts as not found.
    """
    right, wrong = captions.right[rows], captions.wrong[rows]
    replaced_lowest = wrong.any(dim=1) & (
        torch.where(wrong, by_word, torch.inf).amin(dim=1) < torch.where(right, by_word, torch.inf).amin(dim=1)
    )
    agreed = torch.where(right, by_word >= LEAST_ALPHA, by_word < LEAST_ALPHA) & (right | wrong)
    return {
        "replaced word lowest": float(replaced_lowest.float().mean()),
        "words right at β": float(agreed.sum() / (right | wrong).sum()),
    }


def write_weights(network: InfoMeticNetwork, path: Path, about: dict[str, Any]) -> None:
    """Write the network in float16, in the released layout, with what has to be known about it."""
    tensors = {name: tensor.half().cpu().numpy() for name, tensor in network.state_dict().items()}
    write_tensors(path, tensors, {"caplens": json.dumps(about)})


def train(
    images: Path,
    captions: Path,
    more_captions: Sequence[Path],
    output: Path,
    config: InfoMeticConfig,
    *,
    encoder: str = "embedded",
    regions: str = "detector",
    features: Path | None = None,
    progress: Progress = silent,
    place: Placement = CPU,
) -> dict[str, Any]:
    """Train and write `infometic.safetensors` into the output folder; an interrupted run goes on where it was."""
    folder, proposer = features or output / "features", make_proposer(regions)
    loaded = load_encoder(encoder, device=encoder_place(encoder, place).device, keep=folder)
    facts = {"encoder": loaded.identity, "regions": proposer.name, **asdict(config), **dict(place.parts)}
    run = TrainingRun(output, facts)
    splits = load_splits(
        loaded,
        proposer,
        images,
        captions,
        more_captions,
        folder,
        progress,
        seed=config.seed,
        corrupted=config.corrupted,
    )
    groups = [group for split in splits.values() for group in (split.captions, split.corrupted)]
    progress("vectors of tokens", 0, 1)
    tokens, rows = token_vectors(loaded, groups)
    progress("vectors of tokens", 1, 1)
    narrow = config.width < loaded.dimension
    projection = principal_projection(projection_samples(splits["train"], tokens), config.width) if narrow else None
    network = new_network(projection, config.width if narrow else loaded.dimension, config, loaded.scale)
    tensors = {
        name: split_tensors(split, rows[2 * number], rows[2 * number + 1], network, config)
        for number, (name, split) in enumerate(splits.items())
    }
    reached = fit(network, tokens, tensors["train"], tensors["val"], config, loaded.scale, run, progress, place)
    weights = output / "infometic.safetensors"
    write_weights(network, weights, {"kind": "infometic", **facts, "reached": reached})
    return {"weights": str(weights), **reached}
