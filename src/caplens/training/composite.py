"""Train the composite: captions of the picture above captions of other pictures, honest captions above gamed ones.

No rating is used. What a caption deserves follows from how it was made: a person wrote it for this picture, a machine
did, a person wrote it for a similar or for another picture, or it was corrupted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from caplens.captions import CaptionSet
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics.base import Floats, Progress, Workspace, silent
from caplens.metrics.composite import ENCODER, FEATURES, composite_features
from caplens.metrics.network import Network
from caplens.training.corruptions import CORRUPTIONS
from caplens.training.features import cached_features
from caplens.training.run import TrainingRun, optimiser_tensors, restore_optimiser

SIMILAR = {"very similar picture": 1, "similar picture": 5, "somewhat similar picture": 25}
"""Whose caption: the nearest picture's, the fifth or the twenty-fifth nearest's, by what people say about them."""

# What a caption of each origin deserves.
GRADES = {
    "person": 0.95,
    "machine": 0.8,
    "over-long caption": 0.35,
    "repeated words": 0.3,
    "shuffled words": 0.3,
    "list of objects": 0.3,
    "very similar picture": 0.4,
    "similar picture": 0.25,
    "generic caption": 0.15,
    "somewhat similar picture": 0.12,
    "other picture": 0.03,
}


@dataclass(frozen=True)
class CompositeConfig:
    """Everything that changes the outcome."""

    machine_per_image: int = 2
    hidden: int = 24
    batch: int = 64
    """Images per step; all captions of an image are ranked against each other."""
    learning_rate: float = 0.05
    decay: float = 1e-4
    ranking: float = 1.0
    """Weight of the ranking loss beside the cross entropy with the grades."""
    epochs: int = 200
    held_out: float = 0.15
    seed: int = 1


@dataclass(frozen=True)
class Graded:
    """Captions with the grade each deserves, grouped by image: the same number of captions for every image."""

    captions: CaptionSet
    grades: Floats
    """(images, captions per image)"""


def graded_set(
    human: Mapping[str, Sequence[str]], machine: Mapping[str, Sequence[str]], config: CompositeConfig
) -> Graded:
    """Every image's captions of all origins, each against four references that people wrote."""
    random = np.random.default_rng(config.seed)
    images = [image for image in sorted(human) if len(human[image]) >= 5 and machine.get(image)]
    written = [list(human[image])[:5] for image in images]
    nearest = _by_similarity([texts[0] for texts in written])
    candidates, references, grades = [], [], []
    for place, image in enumerate(images):
        honest, others = written[place][0], written[place][1:]
        made = list(dict.fromkeys(machine[image]))
        elsewhere = (place + int(random.integers(1, len(images)))) % len(images)
        row = [(honest, "person")]
        row += [(str(text), "machine") for text in random.choice(made, size=config.machine_per_image)]
        row += [(written[nearest[place, rank - 1]][0], origin) for origin, rank in SIMILAR.items()]
        row += [(written[elsewhere][0], "other picture")]
        row += [(corrupt(honest, others, random), name) for name, corrupt in CORRUPTIONS.items()]
        candidates += [text for text, _ in row]
        references += [others] * len(row)
        grades.append([GRADES[origin] for _, origin in row])
    return Graded(CaptionSet.of(candidates, references), np.array(grades))


def _by_similarity(texts: list[str]) -> NDArray[np.int64]:
    """For each text the others, nearest first; what is said of two pictures tells how much alike they are."""
    vectors = load_sentence_encoder(ENCODER).encode(texts)
    close = vectors @ vectors.T
    np.fill_diagonal(close, -2)
    return np.argsort(-close, axis=1)


def train_composite(
    human: Mapping[str, Sequence[str]],
    machine: Mapping[str, Sequence[str]],
    folder: str | os.PathLike[str],
    config: CompositeConfig | None = None,
    progress: Progress = silent,
) -> Network:
    """Train, or go on where the folder's checkpoint stands; writes `caplens.safetensors` into the folder."""
    config = config or CompositeConfig()
    graded = graded_set(human, machine, config)
    features = cached_features(
        graded.captions, "composite 3", lambda captions: composite_features(Workspace(captions, progress))
    )
    about = {"images": str(len(graded.grades)), "captions": str(len(features)), "seed": str(config.seed)}
    run = TrainingRun(folder, {**asdict(config), **about})
    network = fit(features.reshape(*graded.grades.shape, -1), graded.grades, run, config, progress)
    network.about.update(about)
    network.save(run.folder / "caplens.safetensors")
    run.finish(x="epoch")
    return network


def fit(
    features: Floats, grades: Floats, run: TrainingRun, config: CompositeConfig, progress: Progress = silent
) -> Network:
    """Fit a network whose weights are all positive; keep the epoch that ranks the held-out images' captions best."""
    import torch
    from torch.nn import functional

    flat = features.reshape(-1, features.shape[-1])
    low, high = np.quantile(flat, [0.005, 0.995], axis=0)
    high = np.where(high > low, high, low + 1)
    inputs = torch.from_numpy(2 * (features - low) / (high - low) - 1).float()
    wanted = torch.from_numpy(grades).float()
    held = int(len(inputs) * config.held_out)
    generator = torch.Generator().manual_seed(config.seed)
    first = torch.nn.Parameter(torch.randn(inputs.shape[-1], config.hidden, generator=generator) * 0.5 - 2)
    # Thresholds spread over the whole range; the highest unit is never off, so no two captions are tied at the bottom.
    bias = torch.nn.Parameter(torch.cat([torch.linspace(-1, 2, config.hidden - 1), torch.tensor([4.0])]))
    second = torch.nn.Parameter(torch.randn(config.hidden, 1, generator=generator) * 0.5 - 1)
    last = torch.nn.Parameter(torch.zeros(1))
    parameters = {"first": first, "bias": bias, "second": second, "last": last}
    optimiser = torch.optim.AdamW(parameters.values(), lr=config.learning_rate, weight_decay=config.decay)

    def logits(values: torch.Tensor) -> torch.Tensor:
        """softplus makes every weight positive, so the score grows with every feature."""
        hidden = functional.relu(values @ functional.softplus(first) + bias)
        return (hidden @ functional.softplus(second) + last)[..., 0]

    def ranking(scores: torch.Tensor, deserved: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Score differences of all pairs of one image that deserve different grades, and which of them are right."""
        above = deserved[:, :, None] > deserved[:, None, :] + 1e-6
        differences = (scores[:, :, None] - scores[:, None, :])[above]
        return functional.softplus(-differences).mean(), (differences > 0).float().mean()

    start, best_rank, best = 0, -1.0, {name: value.detach().clone() for name, value in parameters.items()}
    if (saved := run.resume()) is not None:
        tensors, values = saved
        start, best_rank = values["epoch"], values["best"]
        for name, parameter in parameters.items():
            parameter.data.copy_(tensors[name])
            best[name] = tensors[f"best.{name}"]
        restore_optimiser(optimiser, tensors)
    for epoch in range(start, config.epochs):
        order = held + torch.from_numpy(np.random.default_rng((config.seed, epoch)).permutation(len(inputs) - held))
        total = 0.0
        for place in range(0, len(order), config.batch):
            rows = order[place : place + config.batch]
            scores = logits(inputs[rows])
            loss = functional.binary_cross_entropy_with_logits(scores, wanted[rows])
            loss = loss + config.ranking * ranking(scores, wanted[rows])[0]
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.item() * len(rows)
        with torch.no_grad():
            right = float(ranking(logits(inputs[:held]), wanted[:held])[1])
        run.log(epoch=epoch + 1, loss=total / max(1, len(order)), right_order=right)
        if right > best_rank:
            best_rank, best = right, {name: value.detach().clone() for name, value in parameters.items()}
        run.save(
            {**parameters, **{f"best.{name}": value for name, value in best.items()}, **optimiser_tensors(optimiser)},
            {"epoch": epoch + 1, "best": best_rank},
        )
        progress("training caplens", epoch + 1, config.epochs)
    wide = {name: value.double() for name, value in best.items()}
    layers = (
        (functional.softplus(wide["first"]).numpy(), wide["bias"].numpy()),
        (functional.softplus(wide["second"]).numpy(), wide["last"].numpy()),
    )
    network = Network(FEATURES, layers, low, high, usual=flat.mean(axis=0))
    network.about.update(right_order=f"{best_rank:.4f}")
    return network
