"""Train NNEval: people's captions against machines' (sections 4.2 to 4.5 of the paper)."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics._mlp import FeatureMLP
from caplens.metrics.nneval import FEATURES, HIDDEN, features_identity, nneval_features
from caplens.storage.content import content_identity
from caplens.storage.identity import Identity
from caplens.training.features import cached_features
from caplens.training.trainer import TrainingRun, optimizer_tensors, restore_optimizer

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
    """Epochs without a better correlation after which nothing more is expected."""
    monotone: bool = False
    """No weight below 0: no score falls when a feature rises, and what is certainly wrong has one score."""
    seed: int = 1


@dataclass(frozen=True)
class Rated:
    """Captions that people rated, for early stopping."""

    captions: CaptionSet
    ratings: Floats


def training_set(
    human: Mapping[str, Sequence[str]], machine: Mapping[str, Sequence[str]], config: NNEvalConfig
) -> tuple[CaptionSet, Labels]:
    """Equal numbers of captions by people and by machines, each against four references that people wrote.

    A person's caption is held against the other four; a machine's against four of the five, drawn at random.
    """
    random = np.random.default_rng(config.seed)
    candidates, references, labels = [], [], []
    for image in sorted(human):
        written, made = list(human[image])[:5], list(dict.fromkeys(machine.get(image, ())))
        if len(written) < 5 or not made:
            continue
        count = min(config.human_per_image, config.machine_per_image, len(made))
        for place in random.permutation(5)[:count]:
            candidates.append(written[place])
            references.append(written[:place] + written[place + 1 :])
            labels.append(1)
        for place in random.permutation(len(made))[:count]:
            left_out = int(random.integers(5))
            candidates.append(made[place])
            references.append(written[:left_out] + written[left_out + 1 :])
            labels.append(0)
    return CaptionSet.of(candidates, references), np.array(labels, dtype=np.float32)


def read_rated(path: str | os.PathLike[str]) -> Rated:
    """Rated captions from a jsonl file whose rows have `caption`, `references` and `rating`."""
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
    return Rated(CaptionSet.of(candidates, references, source=os.fspath(path)), np.array(ratings))


def train_nneval(
    human: Mapping[str, Sequence[str]],
    machine: Mapping[str, Sequence[str]],
    rated: Rated,
    folder: str | os.PathLike[str],
    config: NNEvalConfig | None = None,
    progress: Progress = silent,
    leave_out: Sequence[str] = (),
) -> FeatureMLP:
    """Train, or go on where the folder's checkpoint stands; writes `nneval.safetensors` into the folder."""
    config = config or NNEvalConfig()
    captions, labels = training_set(human, machine, config)

    def compute(some: CaptionSet) -> Floats:
        return nneval_features(Workspace(some, progress))

    identity = features_identity()
    features = cached_features(captions, identity, compute)
    judged = cached_features(rated.captions, identity, compute)
    for name in leave_out:  # ablation: the feature says nothing
        features[:, FEATURES.index(name)] = 0
        judged[:, FEATURES.index(name)] = 0
    data = Identity.of([identity, content_identity(captions), labels, content_identity(rated.captions), rated.ratings])
    about = {"images": str(len(human)), "captions": str(len(labels)), "leave_out": ",".join(leave_out)}
    about["data"] = data.digest[:16]  # so that a run is never resumed with other data
    run = TrainingRun(folder, {**asdict(config), **about})
    network = fit(features, labels, judged, rated.ratings, run, config, progress)
    network.about.update(about)
    network.save(run.folder / "nneval.safetensors")
    run.finish(x="epoch")
    return network


def fit(
    features: Floats,
    labels: Labels,
    judged: Floats,
    ratings: Floats,
    run: TrainingRun,
    config: NNEvalConfig,
    progress: Progress = silent,
) -> FeatureMLP:
    """Minimize cross entropy; keep the epoch whose scores agree best (Kendall's τ) with the ratings."""
    import torch
    from scipy.stats import kendalltau

    low, high = features.min(axis=0), features.max(axis=0)
    high = np.where(high > low, high, low + 1)
    inputs = torch.from_numpy(2 * (features - low) / (high - low) - 1).float()
    wanted = torch.from_numpy(labels)
    torch.manual_seed(config.seed)
    sizes = (features.shape[1], HIDDEN, HIDDEN, 1)
    linear = [torch.nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
    model = torch.nn.Sequential(linear[0], torch.nn.ReLU(), linear[1], torch.nn.ReLU(), linear[2])
    for layer in linear:
        torch.nn.init.xavier_uniform_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        if config.monotone:
            layer.weight.data.abs_()
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, weight_decay=config.decay)
    best: dict[str, torch.Tensor] = {}
    values: dict[str, Any] = {"epoch": 0, "best": -1.0, "best_epoch": 0}
    if (saved := run.resume()) is not None:
        tensors, values = saved
        model.load_state_dict({name: tensors[f"model.{name}"] for name in model.state_dict()})
        best = {name.removeprefix("best."): value for name, value in tensors.items() if name.startswith("best.")}
        restore_optimizer(optimizer, tensors)

    def as_network(state: Mapping[str, torch.Tensor]) -> FeatureMLP:
        layers = tuple(
            (state[f"{place}.weight"].numpy().T.astype(np.float64), state[f"{place}.bias"].numpy().astype(np.float64))
            for place in (0, 2, 4)
        )
        return FeatureMLP(FEATURES, layers, low, high, usual=features.mean(axis=0))

    for epoch in range(values["epoch"], config.epochs):
        if epoch - values["best_epoch"] > config.patience:
            break
        order = torch.from_numpy(np.random.default_rng((config.seed, epoch)).permutation(len(labels)))
        total = 0.0
        for start in range(0, len(order), config.batch):
            rows = order[start : start + config.batch]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(inputs[rows])[:, 0], wanted[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if config.monotone:
                for layer in linear:
                    layer.weight.data.clamp_(min=0)
            total += loss.item() * len(rows)
        state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        agreement = float(kendalltau(as_network(state).logits(judged), ratings).statistic)
        agreement = agreement if np.isfinite(agreement) else -1.0  # every caption the same score
        run.log(epoch=epoch + 1, cross_entropy=total / len(labels), kendall=agreement)
        if agreement > values["best"]:
            best = state
            values |= {"best": agreement, "best_epoch": epoch + 1}
        values["epoch"] = epoch + 1
        run.save(
            {
                **{f"model.{name}": value for name, value in state.items()},
                **{f"best.{name}": value for name, value in best.items()},
                **optimizer_tensors(optimizer),
            },
            values,
        )
        progress("training nneval", epoch + 1, config.epochs)
    network = as_network(best)
    network.about.update(kendall=f"{values['best']:.4f}", epoch=str(values["best_epoch"]), seed=str(config.seed))
    return network
