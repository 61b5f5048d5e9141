"""Positive-augmented contrastive learning (PAC-S, eq. 2 and 3): tune the final projections of an image-text encoder.

    L = L(V, T) + λv · L(V', T) + λt · L(V, T')

V, T: pictures and the captions people wrote; V': generated pictures; T': generated captions. The towers stay frozen, so
their features are computed once and a run takes minutes. Training stops when the loss on the validation pictures has
not fallen for 1,500 iterations; the best projections are kept, the untouched ones among them. Under torchrun every
process takes its share of each batch; the result is that of one process (up to dropout, which only our heads have).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from caplens.core.types import Vectors
from caplens.training.contrastive import TrainableHead, symmetric_loss
from caplens.training.encoder import EncoderConfig, Features
from caplens.training.pairs import Progress
from caplens.training.trainer import TrainingRun, optimizer_tensors, restore_optimizer

if TYPE_CHECKING:
    from caplens.encoders.clip import ClipEncoder
    from caplens.encoders.embedded import Head


@dataclass(frozen=True)
class PacConfig:
    """The paper's values (sec. 4.1)."""

    seed: int = 0
    learning_rate: float = 1e-4
    batch: int = 256
    lambda_v: float = 0.05
    lambda_t: float = 0.1
    patience: int = 1500
    check_every: int = 100
    most_iterations: int = 20_000


@dataclass(frozen=True)
class Generated:
    """Features of what was generated, one row per training picture, NaN where nothing was (a picture that the safety
    checker held back). None: that loss term is left out."""

    pictures: Vectors | None = None
    captions: Vectors | None = None


def clip_projections(encoder: ClipEncoder) -> dict[str, nn.Module]:
    """CLIP's two final projections, ready to be trained."""
    made: dict[str, nn.Module] = {}
    for side, layer in (("image", encoder.model.visual_projection), ("text", encoder.model.text_projection)):
        copy = nn.Linear(layer.in_features, layer.out_features, bias=False)
        copy.load_state_dict(layer.state_dict())
        made[side] = copy
    return made


def head_projections(image: Head, text: Head) -> dict[str, TrainableHead]:
    """The embedded encoder's heads; only the maps into the joint space are trained, the hidden layer stays.

    The dropout they were trained with stays on: they know the training pairs by heart, and without it they move towards
    those within 25 iterations and away from people's ratings.
    """
    made = {}
    for side, head in (("image", image), ("text", text)):
        hidden, dimension = len(head.tensors["up.bias"]), head.dimension
        copy = TrainableHead(
            torch.from_numpy(head.shift), torch.from_numpy(head.scale), hidden, dimension, EncoderConfig.dropout
        )
        copy.load_state_dict(
            {"shift": copy.shift, "scale": copy.scale} | {key: torch.from_numpy(a) for key, a in head.tensors.items()}
        )
        copy.up.requires_grad_(False)
        made[side] = copy
    return made


def tune(
    projections: Mapping[str, nn.Module],
    train: Features,
    val: Features,
    generated: Generated,
    scale: float,
    config: PacConfig,
    run: TrainingRun,
    progress: Progress,
) -> dict[str, Any]:
    """Train the projections in place, to the best validation loss; goes on from the run's checkpoint."""
    processes = _join()
    torch.manual_seed(config.seed)
    modules = nn.ModuleDict(dict(projections))
    parameters = [parameter for parameter in modules.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate)
    data = {name: torch.from_numpy(rows) for name, rows in _inputs(train, generated).items() if rows is not None}
    best = {name: value.clone() for name, value in modules.state_dict().items()}
    lowest, found_at, first = validation_loss(modules, val, scale, config.batch), 0, 0
    saved = run.resume()
    if saved is not None:
        tensors, values = saved
        first, lowest, found_at = values["iteration"], values["lowest"], values["found at"]
        modules.load_state_dict(
            {name.removeprefix("now."): t for name, t in tensors.items() if name.startswith("now.")}
        )
        best = {name.removeprefix("best."): t for name, t in tensors.items() if name.startswith("best.")}
        restore_optimizer(optimizer, tensors)
        torch.set_rng_state(tensors["generator"])
    iteration, total = first, 0.0
    while iteration < config.most_iterations and iteration - found_at < config.patience:
        rows = torch.randperm(len(train.names))[: config.batch - config.batch % processes.count]
        captions = torch.tensor(
            [int(train.captions[row][int(torch.randint(len(train.captions[row]), ()))]) for row in rows]
        )
        loss = _loss(modules, data, rows, captions, scale, config, processes)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        _average_gradients(parameters, processes)
        optimizer.step()
        total += float(loss.detach())
        iteration += 1
        if iteration % config.check_every:
            continue
        current = validation_loss(modules, val, scale, config.batch)
        if current < lowest:
            lowest, found_at = current, iteration
            best = {name: value.clone() for name, value in modules.state_dict().items()}
        if processes.first:
            run.log(iteration=iteration, loss=total / config.check_every, validation_loss=current)
            kept = {f"now.{name}": value for name, value in modules.state_dict().items()}
            kept |= {f"best.{name}": value for name, value in best.items()}
            kept |= {"generator": torch.get_rng_state(), **optimizer_tensors(optimizer)}
            run.save(kept, {"iteration": iteration, "lowest": lowest, "found at": found_at})
            progress("iterations without a better loss", iteration - found_at, config.patience)
        total = 0.0
    modules.load_state_dict(best)
    modules.eval()
    return {"iterations": iteration, "best iteration": found_at, "validation loss": lowest}


def _inputs(train: Features, generated: Generated) -> dict[str, Vectors | None]:
    return {
        "pictures": train.pictures,
        "texts": train.texts,
        "new pictures": generated.pictures,
        "new captions": generated.captions,
    }


def _loss(
    modules: nn.ModuleDict,
    data: Mapping[str, Tensor],
    rows: Tensor,
    captions: Tensor,
    scale: float,
    config: PacConfig,
    processes: _Processes,
) -> Tensor:
    """Eq. 3 over the whole batch; every process encodes its share of it. A missing positive drops its pair only."""

    def encoded(side: str, features: Tensor) -> Tensor:
        mine = torch.arange(len(features)).tensor_split(processes.count)[processes.rank]
        return processes.gather(modules[side](features[mine]))

    pictures, texts = encoded("image", data["pictures"][rows]), encoded("text", data["texts"][captions])
    loss = symmetric_loss(pictures, texts, scale)
    for name, side, partners, weight in (
        ("new pictures", "image", texts, config.lambda_v),
        ("new captions", "text", pictures, config.lambda_t),
    ):
        if name in data:
            features = data[name][rows]
            there = features.isfinite().all(dim=1)
            if there.sum() > 1:
                made = encoded(side, torch.where(there[:, None], features, 0))
                loss = loss + weight * symmetric_loss(made[there], partners[there], scale)
    return loss


def validation_loss(modules: nn.ModuleDict, val: Features, scale: float, batch: int) -> float:
    """Eq. 2 on the validation pictures, each with its first caption, in batches of the training size."""
    losses, sizes = [], []
    mode = modules.training
    modules.eval()
    with torch.no_grad():
        for start in range(0, len(val.names), batch):
            rows = np.arange(start, min(start + batch, len(val.names)))
            texts = np.array([val.captions[row][0] for row in rows])
            pictures = modules["image"](torch.from_numpy(val.pictures[rows]))
            losses.append(float(symmetric_loss(pictures, modules["text"](torch.from_numpy(val.texts[texts])), scale)))
            sizes.append(len(rows))
    modules.train(mode)
    return float(np.average(losses, weights=sizes))


@dataclass(frozen=True)
class _Processes:
    """The processes that torchrun started, or this one alone."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def gather(self, part: Tensor) -> Tensor:
        """Every process's rows in order; gradients flow back to those who made them."""
        if self.count == 1:
            return part
        from torch.distributed.nn.functional import all_gather

        return torch.cat(all_gather(part))  # type: ignore[no-untyped-call]


def _join() -> _Processes:
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return _Processes()
    from torch import distributed

    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return _Processes(distributed.get_rank(), distributed.get_world_size())


def _average_gradients(parameters: list[nn.Parameter], processes: _Processes) -> None:
    """Each process holds the gradient through its own rows, counted once per process: sum and divide."""
    if processes.count == 1:
        return
    from torch import distributed

    for parameter in parameters:
        if parameter.grad is not None:
            distributed.all_reduce(parameter.grad)
            parameter.grad /= processes.count
