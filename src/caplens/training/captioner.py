"""Train the captioner: cross entropy first, then the metric itself as the teacher (Rennie et al. 2017; CIDEr-R §4)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pack_sequence

from caplens.captioning.reward import Reward
from caplens.captioning.vocabulary import END, Vocabulary
from caplens.core.progress import Progress, silent
from caplens.metrics import load_metric
from caplens.training.captioner_network import AoANet, AoANetConfig, Captioner, FeatureSpec, greedy, sample
from caplens.training.trainer import TrainingRun, optimizer_tensors, restore_optimizer


@dataclass(frozen=True)
class CaptionerConfig:
    """Everything that changes the outcome. The paper trains 2 epochs of cross entropy and 15 self-critical ones."""

    width: int = 512
    heads: int = 8
    refining_layers: int = 3
    dropout: float = 0.3
    grid: int = 4
    """Cells along a side of the grid that the captioner looks at."""
    least_count: int = 5
    longest: int = 20
    batch: int = 32
    """Pictures at a time, each with all its references or all its samples."""
    cross_entropy_epochs: int = 8
    learning_rate: float = 5e-4
    self_critical_epochs: int = 5
    self_critical_learning_rate: float = 5e-5
    samples: int = 5
    """Captions drawn per picture in the self-critical phase."""
    baseline: Literal["greedy", "leave-one-out"] = "leave-one-out"
    reward: str = "cider-r"
    seed: int = 1


@dataclass(frozen=True)
class Pictures:
    """Pictures to learn from: their features and what people said about them."""

    ids: list[str]
    features: Tensor
    """(pictures, regions, size), half precision to save memory."""
    references: list[list[str]]


def train_captioner(
    pictures: Pictures,
    config: CaptionerConfig,
    sight: FeatureSpec,
    folder: str | os.PathLike[str],
    progress: Progress = silent,
    start: Captioner | None = None,
) -> Captioner:
    """Train, or go on where the folder's checkpoint stands, and write `captioner.safetensors` into the folder.

    With `start`, its network and words are trained further; the sizes in `config` do not matter then.
    """
    load_metric(config.reward)  # an unknown one is known now, not after hours of cross entropy
    torch.manual_seed(config.seed)
    captioner = _new(pictures, config, sight) if start is None else replace(start, longest=config.longest)
    model, vocabulary = captioner.model, captioner.vocabulary
    run = TrainingRun(folder, {**asdict(config), **asdict(sight), "pictures": len(pictures.ids)})
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    first = 0
    if (saved := run.resume()) is not None:
        tensors, values = saved
        first = values["epoch"]
        model.load_state_dict({name: tensors[f"model.{name}"] for name in model.state_dict()})
        restore_optimizer(optimizer, tensors)
        torch.set_rng_state(tensors["random"])
    total = config.cross_entropy_epochs + config.self_critical_epochs
    reward: Reward | None = None
    for epoch in range(first, total):
        model.train()
        shuffle = np.random.default_rng((config.seed, epoch))
        _set_rate(optimizer, config, epoch)
        if epoch < config.cross_entropy_epochs:
            loss = _cross_entropy_epoch(model, vocabulary, pictures, optimizer, shuffle, config, progress)
            run.log(epoch=epoch + 1, cross_entropy=loss)
        else:
            reward = reward or Reward(
                config.reward,
                dict(zip(pictures.ids, pictures.references, strict=True)),
                vocabulary=vocabulary.words,
                end=END,
                end_counts=True,
            )
            mean = _self_critical_epoch(model, pictures, optimizer, shuffle, config, reward, progress)
            run.log(epoch=epoch + 1, reward=mean)
        captioner.save(run.folder / "captioner.safetensors")  # first: a stop in between repeats the epoch
        run.save(
            {
                **{f"model.{name}": tensor for name, tensor in model.state_dict().items()},
                **optimizer_tensors(optimizer),
                "random": torch.get_rng_state(),
            },
            {"epoch": epoch + 1},
        )
    run.finish(x="epoch")
    return captioner


def _new(pictures: Pictures, config: CaptionerConfig, sight: FeatureSpec) -> Captioner:
    vocabulary = Vocabulary.from_captions((text for texts in pictures.references for text in texts), config.least_count)
    model = AoANet(
        AoANetConfig(
            features=pictures.features.shape[2],
            vocabulary=len(vocabulary),
            width=config.width,
            heads=config.heads,
            refining_layers=config.refining_layers,
            dropout=config.dropout,
        )
    )
    return Captioner(model, vocabulary, sight, config.longest)


def _set_rate(optimizer: torch.optim.Optimizer, config: CaptionerConfig, epoch: int) -> None:
    """Cross entropy slows down evenly, epoch by epoch; the self-critical phase has one rate."""
    rate = config.self_critical_learning_rate
    if epoch < config.cross_entropy_epochs:
        rate = config.learning_rate * (1 - epoch / config.cross_entropy_epochs)
    for group in optimizer.param_groups:
        group["lr"] = rate


def _batches(count: int, size: int, shuffle: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    order = shuffle.permutation(count)
    for start in range(0, count, size):
        yield order[start : start + size]


def _cross_entropy_epoch(
    model: AoANet,
    vocabulary: Vocabulary,
    pictures: Pictures,
    optimizer: torch.optim.Optimizer,
    shuffle: np.random.Generator,
    config: CaptionerConfig,
    progress: Progress,
) -> float:
    """Every reference of every picture once; a picture is encoded once for all its references."""
    encoded = [vocabulary.encode(texts, config.longest) for texts in pictures.references]
    total, count = 0.0, 0
    for number, rows in enumerate(_batches(len(encoded), config.batch, shuffle)):
        captions = [(place, words) for place, row in enumerate(rows) for words in encoded[row]]
        captions.sort(key=lambda caption: -len(caption[1]))
        memory = model.encode(pictures.features[rows].float())
        memory = memory.select(torch.tensor([place for place, _ in captions]))
        inputs = pack_sequence([torch.tensor([END, *words]) for _, words in captions])
        targets = pack_sequence([torch.tensor([*words, END]) for _, words in captions])
        loss = functional.nll_loss(model(memory, inputs), targets.data)
        _update(model, optimizer, loss)
        total, count = total + loss.item() * len(captions), count + len(captions)
        progress("cross entropy", number * config.batch, len(encoded))
    return total / count


def _self_critical_epoch(
    model: AoANet,
    pictures: Pictures,
    optimizer: torch.optim.Optimizer,
    shuffle: np.random.Generator,
    config: CaptionerConfig,
    reward: Reward,
    progress: Progress,
) -> float:
    """Draw captions, and make those more likely that score above the baseline: ∇L ≈ −(r(w) − b) ∇ log p(w)."""
    total = 0.0
    for number, rows in enumerate(_batches(len(pictures.ids), config.batch, shuffle)):
        ids = [pictures.ids[row] for row in rows]
        features = pictures.features[rows].float()
        generator = torch.Generator().manual_seed(int(shuffle.integers(2**62)))
        drawn = sample(model, model.encode(features).repeat(config.samples), config.longest, generator)
        if config.baseline == "greedy":
            model.eval()
            with torch.no_grad():
                plain = greedy(model, model.encode(features), config.longest)
            model.train()
            advantage = reward.self_critical(ids, drawn.words, plain.words)
        else:
            advantage = reward.leave_one_out(ids, drawn.words)
        _update(model, optimizer, -(advantage[:, None] * drawn.log_probabilities).sum() / drawn.spoken.sum())
        total += float(reward(ids, drawn.words).sum()) / config.samples
        progress("self-critical", number * config.batch, len(pictures.ids))
    return total / len(pictures.ids)


def _update(model: AoANet, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
