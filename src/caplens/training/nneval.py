"""Train NNEval to tell captions by people from captions by machines (Sharif et al. 2018, sections 4.2 to 4.5)."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import kendalltau
from torch import nn
from torch.nn import functional

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.encoders.devices import CPU, Placement, to_array
from caplens.metrics._mlp import FeatureMLP
from caplens.metrics.nneval import FEATURES, HIDDEN, features_identity, nneval_features
from caplens.storage.content import content_identity
from caplens.storage.identity import Identity
from caplens.training.features import cached_features
from caplens.training.run import TrainingRun
from caplens.training.trainer import Plan, Step, Task, Trainer

Labels = NDArray[np.float32]


@dataclass(frozen=True)
class NNEvalConfig:
    """Everything that changes the outcome; the defaults are the paper's where it states them."""

    human_per_image: int = 3
    machine_per_image: int = 3
    batch: int = 75
    learning_rate: float = 0.25
    decay: float = 1e-4
    """Weight of the L2 term."""
    epochs: int = 500
    patience: int = 30
    """More epochs than this without a better correlation end the training."""
    monotone: bool = False
    """No weight below 0: no score falls when a feature rises, and what is certainly wrong has one score."""
    seed: int = 1


@dataclass(frozen=True)
class RatedCaptions:
    """Captions that people rated, for early stopping."""

    captions: CaptionSet
    ratings: Floats


def training_set(
    human: Mapping[str, Sequence[str]], machine: Mapping[str, Sequence[str]], config: NNEvalConfig
) -> tuple[CaptionSet, Labels]:
    """Return equal numbers of captions by people and by machines, each with four references that people wrote.

    A person's caption is held against the other four; a machine's against four of the five, drawn at random.
    """
    random = np.random.default_rng(config.seed)
    candidates, references, labels = [], [], []
    for image in sorted(human):
        by_people, by_machines = list(human[image])[:5], list(dict.fromkeys(machine.get(image, ())))
        if len(by_people) < 5 or not by_machines:
            continue
        count = min(config.human_per_image, config.machine_per_image, len(by_machines))
        for index in random.permutation(5)[:count]:
            candidates.append(by_people[index])
            references.append(by_people[:index] + by_people[index + 1 :])
            labels.append(1)
        for index in random.permutation(len(by_machines))[:count]:
            left_out = int(random.integers(5))
            candidates.append(by_machines[index])
            references.append(by_people[:left_out] + by_people[left_out + 1 :])
            labels.append(0)
    return CaptionSet.of(candidates, references), np.array(labels, dtype=np.float32)


def read_rated_captions(path: str | os.PathLike[str]) -> RatedCaptions:
    """Read rated captions from a jsonl file whose rows have `caption`, `references` and `rating`."""
    candidates, references, ratings = [], [], []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                candidates.append(row["caption"])
                references.append(row["references"])
                ratings.append(float(row["rating"]))
            except (KeyError, TypeError, ValueError) as error:
                remedy = 'a row is {"caption": …, "references": […], "rating": a number}'
                raise InputError(
                    f"not a rated caption ({error!r})", where=f"{path}, row {number}", remedy=remedy
                ) from None
    return RatedCaptions(CaptionSet.of(candidates, references, source=os.fspath(path)), np.array(ratings))


class NNEvalTask(Task):
    """Cross entropy of people's captions against machines', validated by Kendall's τ with people's ratings."""

    def __init__(
        self,
        features: Floats,
        labels: Labels,
        rated_features: Floats,
        ratings: Floats,
        config: NNEvalConfig,
        place: Placement = CPU,
    ) -> None:
        self.place = place
        self.config, self.rated_features, self.ratings = config, rated_features, ratings
        self.low, high = features.min(axis=0), features.max(axis=0)
        self.high = np.where(high > self.low, high, self.low + 1)
        self.mean = features.mean(axis=0)
        self.inputs = self.placed((2 * (features - self.low) / (self.high - self.low) - 1).astype(np.float32))
        self.labels = self.placed(labels)
        self.steps_per_epoch = math.ceil(len(labels) / config.batch)
        torch.manual_seed(config.seed)
        sizes = (features.shape[1], HIDDEN, HIDDEN, 1)
        self.layers = [nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
        self.model = nn.Sequential(self.layers[0], nn.ReLU(), self.layers[1], nn.ReLU(), self.layers[2])
        for layer in self.layers:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
            if config.monotone:
                layer.weight.data.abs_()
        self.model.to(place.device)

    def step(self, number: int) -> Step:
        epoch, batch = divmod(number, self.steps_per_epoch)
        if batch == 0:
            self._order = np.random.default_rng((self.config.seed, epoch)).permutation(len(self.labels))
        rows = torch.from_numpy(self._order[batch * self.config.batch : (batch + 1) * self.config.batch])
        loss = functional.binary_cross_entropy_with_logits(self.model(self.inputs[rows])[:, 0], self.labels[rows])
        return Step(loss, {"cross_entropy": loss.detach()}, len(rows))

    def constrain(self) -> None:
        if self.config.monotone:
            for layer in self.layers:
                layer.weight.data.clamp_(min=0)

    def validate(self) -> dict[str, float]:
        agreement = float(kendalltau(self.network().logits(self.rated_features), self.ratings).statistic)
        return {"kendall": agreement if np.isfinite(agreement) else -1.0}  # not finite: all captions score the same

    def network(self) -> FeatureMLP:
        """Return the network as the metric reads it."""
        layers = tuple(
            (to_array(layer.weight.detach()).T.astype(np.float64), to_array(layer.bias.detach()).astype(np.float64))
            for layer in self.layers
        )
        return FeatureMLP(FEATURES, layers, self.low, self.high, usual=self.mean)


def fit(
    features: Floats,
    labels: Labels,
    rated_features: Floats,
    ratings: Floats,
    run: TrainingRun,
    config: NNEvalConfig,
    progress: Progress = silent,
    place: Placement = CPU,
) -> FeatureMLP:
    """Train on these features; the network of the epoch whose scores agree best with the ratings is returned."""
    task = NNEvalTask(features, labels, rated_features, ratings, config, place)
    plan = Plan(
        name="training NNEval",
        steps=config.epochs * task.steps_per_epoch,
        validate_every=task.steps_per_epoch,
        epochs=True,
        monitor="kendall",
        higher_is_better=True,
        patience=(config.patience + 1) * task.steps_per_epoch,
    )
    optimizer = torch.optim.Adam(task.model.parameters(), lr=config.learning_rate, weight_decay=config.decay)
    fitted = Trainer(task, optimizer, run, plan, progress=progress).fit()
    network = task.network()
    best_epoch = fitted.best_step // task.steps_per_epoch
    network.about.update(kendall=f"{fitted.best:.4f}", epoch=str(best_epoch), seed=str(config.seed))
    return network


def train(
    human: Mapping[str, Sequence[str]],
    machine: Mapping[str, Sequence[str]],
    rated: RatedCaptions,
    output: str | os.PathLike[str],
    config: NNEvalConfig | None = None,
    *,
    leave_out: Sequence[str] = (),
    progress: Progress = silent,
    place: Placement = CPU,
) -> dict[str, Any]:
    """Train, or go on where the folder's checkpoint stands; writes `nneval.safetensors` into the folder.

    Features in `leave_out` say nothing: an ablation.
    """
    config = config or NNEvalConfig()
    unknown = next((name for name in leave_out if name not in FEATURES), None)
    if unknown is not None:
        raise InputError(f"NNEval has no feature {unknown!r}", remedy=f"it has {', '.join(FEATURES)}")
    captions, labels = training_set(human, machine, config)
    if not len(labels):
        raise InputError("no image has five captions by people and one by a machine", remedy="compare the two files")

    def compute(some: CaptionSet) -> Floats:
        return nneval_features(Workspace(some, progress))

    identity = features_identity()
    progress("features of captions", 0, 2)
    features = cached_features(captions, identity, compute)
    progress("features of captions", 1, 2)
    rated_features = cached_features(rated.captions, identity, compute)
    progress("features of captions", 2, 2)
    for name in leave_out:
        features[:, FEATURES.index(name)] = 0
        rated_features[:, FEATURES.index(name)] = 0
    data = Identity.of([identity, content_identity(captions), labels, content_identity(rated.captions), rated.ratings])
    facts = {"images": str(len(human)), "captions": str(len(labels)), "leave_out": ",".join(leave_out)}
    facts["data"] = data.digest[:16]  # so that a run is never resumed with other data
    run = TrainingRun(output, {**asdict(config), **facts, **dict(place.parts)})
    network = fit(features, labels, rated_features, rated.ratings, run, config, progress, place)
    network.about.update(facts)
    weights = run.folder / "nneval.safetensors"
    network.save(weights)
    return {"weights": str(weights), **network.about}
