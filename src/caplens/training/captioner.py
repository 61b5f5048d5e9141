"""Train the captioner: cross entropy first, then the metric itself as the teacher (Rennie et al. 2017; CIDEr-R §4)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from caplens.captioning.aoanet import AoANet, AoANetConfig
from caplens.captioning.captioner import Captioner
from caplens.captioning.decode import greedy, sample
from caplens.captioning.vocabulary import END, Vocabulary
from caplens.metrics.base import Progress, silent
from caplens.reward import Reward
from caplens.training.run import TrainingRun, optimiser_tensors, restore_optimiser


@dataclass(frozen=True)
class CaptionerConfig:
    """Everything that changes the outcome. The paper trains 2 epochs of cross entropy and 15 self-critical ones."""

    width: int = 512
    heads: int = 8
    refining_layers: int = 3
    dropout: float = 0.3
    least_count: int = 5
    longest: int = 20
    batch: int = 64
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
    encoder: str,
    folder: str | os.PathLike[str],
    progress: Progress = silent,
) -> Captioner:
    """Train, or go on where the folder's checkpoint stands, and write `captioner.safetensors` into the folder."""
    torch.manual_seed(config.seed)
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
    run = TrainingRun(folder, {**asdict(config), "encoder": encoder, "pictures": len(pictures.ids)})
    optimiser = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    first = 0
    if (saved := run.resume()) is not None:
        tensors, values = saved
        first = values["epoch"]
        model.load_state_dict({name: tensors[f"model.{name}"] for name in model.state_dict()})
        restore_optimiser(optimiser, tensors)
        torch.set_rng_state(tensors["random"])
    captioner = Captioner(model, vocabulary, encoder, config.longest)
    total = config.cross_entropy_epochs + config.self_critical_epochs
    reward: Reward | None = None
    for epoch in range(first, total):
        model.train()
        shuffle = np.random.default_rng((config.seed, epoch))
        if epoch < config.cross_entropy_epochs:
            loss = _cross_entropy_epoch(model, vocabulary, pictures, optimiser, shuffle, config, progress)
            run.log(epoch=epoch + 1, cross_entropy=loss)
        else:
            reward = reward or Reward(
                config.reward,
                dict(zip(pictures.ids, pictures.references, strict=True)),
                vocabulary=vocabulary.words,
                end=END,
            )
            for group in optimiser.param_groups:
                group["lr"] = config.self_critical_learning_rate
            mean = _self_critical_epoch(model, pictures, optimiser, shuffle, config, reward, progress)
            run.log(epoch=epoch + 1, reward=mean)
        run.save(
            {
                **{f"model.{name}": tensor for name, tensor in model.state_dict().items()},
                **optimiser_tensors(optimiser),
                "random": torch.get_rng_state(),
            },
            {"epoch": epoch + 1},
        )
        captioner.save(run.folder / "captioner.safetensors")
    run.finish(x="epoch")
    return captioner


def _batches(count: int, size: int, shuffle: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    order = shuffle.permutation(count)
    for start in range(0, count, size):
        yield order[start : start + size]


def _cross_entropy_epoch(
    model: AoANet,
    vocabulary: Vocabulary,
    pictures: Pictures,
    optimiser: torch.optim.Optimizer,
    shuffle: np.random.Generator,
    config: CaptionerConfig,
    progress: Progress,
) -> float:
    """Every reference of every picture once; the picture is encoded once for all its references of the batch."""
    encoded = [vocabulary.encode(texts, config.longest) for texts in pictures.references]
    pairs = [(picture, words) for picture, texts in enumerate(encoded) for words in texts]
    total, count = 0.0, 0
    for number, rows in enumerate(_batches(len(pairs), config.batch, shuffle)):
        chosen = [pairs[row] for row in rows]
        inputs, targets = _teacher_forced([words for _, words in chosen])
        memory = model.encode(pictures.features[[picture for picture, _ in chosen]].float())
        scores = model(memory, inputs)
        loss = functional.nll_loss(scores.flatten(0, 1), targets.flatten(), ignore_index=-1)
        _update(model, optimiser, loss)
        total, count = total + loss.item() * len(rows), count + len(rows)
        progress("cross entropy", number * config.batch, len(pairs))
    return total / count


def _teacher_forced(captions: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Words shifted by one: the input starts with END, the target ends with END and is -1 after it."""
    width = max(len(words) for words in captions) + 1
    inputs = torch.full((len(captions), width), END)
    targets = torch.full((len(captions), width), -1)
    for row, words in enumerate(captions):
        inputs[row, 1 : len(words) + 1] = torch.tensor(words, dtype=torch.long)
        targets[row, : len(words) + 1] = torch.tensor([*words, END], dtype=torch.long)
    return inputs, targets


def _self_critical_epoch(
    model: AoANet,
    pictures: Pictures,
    optimiser: torch.optim.Optimizer,
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
        _update(model, optimiser, -(advantage[:, None] * drawn.log_probabilities).sum() / drawn.spoken.sum())
        total += float(reward(ids, drawn.words).sum()) / config.samples
        progress("self-critical", number * config.batch, len(pictures.ids))
    return total / len(pictures.ids)


def _update(model: AoANet, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
