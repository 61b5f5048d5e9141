"""Train the captioner: cross entropy first, then the metric itself as the teacher (Rennie et al. 2017; CIDEr-R §4)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_sequence
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LinearLR, LRScheduler, SequentialLR

from caplens.captioning.reward import Reward
from caplens.captioning.vocabulary import END, Vocabulary
from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors
from caplens.encoders.base import Encoder
from caplens.encoders.devices import CPU, Placement, encoder_place
from caplens.encoders.load import load_encoder
from caplens.evaluation.evaluate import evaluate
from caplens.metrics import load_metric
from caplens.storage.atomic import write_atomically
from caplens.training.captioner_network import AoANet, AoANetConfig, Captioner, FeatureSpec, greedy, sample
from caplens.training.pairs import picture_features, read_pairs
from caplens.training.run import TrainingRun
from caplens.training.trainer import Plan, Step, Task, Trainer

if TYPE_CHECKING:
    from PIL.Image import Image

METRICS = ("cider-r", "cider-d", "rouge-l", "bleu-4")
"""What a captioner is evaluated with at the end."""


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

    @property
    def epochs(self) -> int:
        """Of both phases."""
        return self.cross_entropy_epochs + self.self_critical_epochs


@dataclass(frozen=True)
class Pictures:
    """Pictures to learn from: their features and what people said about them."""

    ids: list[str]
    features: Tensor
    """(pictures, regions, size), half precision to save memory."""
    references: list[list[str]]


class CaptionerTask(Task):
    """Epochs of cross entropy, then epochs in which sampled captions earn the metric's reward."""

    def __init__(
        self, captioner: Captioner, pictures: Pictures, config: CaptionerConfig, path: Path, place: Placement = CPU
    ) -> None:
        self.captioner, self.pictures, self.config, self.path, self.place = captioner, pictures, config, path, place
        self.model: AoANet = captioner.model.to(place.device)
        self.steps_per_epoch = math.ceil(len(pictures.ids) / config.batch)
        self.encoded = [captioner.vocabulary.encode(texts, config.longest) for texts in pictures.references]
        self._reward: Reward | None = None

    def step(self, number: int) -> Step:
        epoch, batch = divmod(number, self.steps_per_epoch)
        if batch == 0:
            self._random = np.random.default_rng((self.config.seed, epoch))
            self._order = self._random.permutation(len(self.encoded))
        rows = self._order[batch * self.config.batch : (batch + 1) * self.config.batch].tolist()
        return self._cross_entropy(rows) if epoch < self.config.cross_entropy_epochs else self._self_critical(rows)

    def _cross_entropy(self, rows: Sequence[int]) -> Step:
        """Every reference of these pictures; a picture is encoded once for all its references."""
        captions = [(number, words) for number, row in enumerate(rows) for words in self.encoded[row]]
        captions.sort(key=lambda caption: -len(caption[1]))
        memory = self.model.encode(self._features(rows))
        memory = memory.select(torch.tensor([number for number, _ in captions]))
        inputs = pack_sequence([torch.tensor([END, *words]) for _, words in captions])
        inputs = PackedSequence(inputs.data.to(self.place.device), inputs.batch_sizes)
        targets = pack_sequence([torch.tensor([*words, END]) for _, words in captions]).data.to(self.place.device)
        loss = functional.nll_loss(self.model(memory, inputs), targets)
        return Step(loss, {"cross_entropy": loss.detach()}, len(captions))

    def _features(self, rows: Sequence[int]) -> Tensor:
        return self.pictures.features[rows].to(self.place.device).float()

    def _self_critical(self, rows: Sequence[int]) -> Step:
        """Draw captions, and make those more likely that score above the baseline: ∇L ≈ −(r(w) − b) ∇ log p(w)."""
        config, reward = self.config, self._get_reward()
        ids = [self.pictures.ids[row] for row in rows]
        features = self._features(rows)
        generator = torch.Generator().manual_seed(int(self._random.integers(2**62)))
        drawn = sample(self.model, self.model.encode(features).repeat(config.samples), config.longest, generator)
        if config.baseline == "greedy":
            self.model.eval()
            with torch.no_grad():
                plain = greedy(self.model, self.model.encode(features), config.longest)
            self.model.train()
            advantage = reward.self_critical(ids, drawn.words, plain.words)
        else:
            advantage = reward.leave_one_out(ids, drawn.words)
        loss = -(advantage[:, None] * drawn.log_probabilities).sum() / drawn.spoken.sum()
        mean = float(reward(ids, drawn.words).sum()) / len(drawn.words)
        return Step(loss, {"reward": mean}, len(rows))

    def _get_reward(self) -> Reward:
        """Return the reward, whose references are indexed only when the second phase begins."""
        if self._reward is None:
            self._reward = Reward(
                self.config.reward,
                dict(zip(self.pictures.ids, self.pictures.references, strict=True)),
                vocabulary=self.captioner.vocabulary.words,
                end=END,
                end_counts=True,
            )
        return self._reward

    def validate(self) -> dict[str, float]:
        """Nothing is chosen by a validation; the captioner so far can be used while it goes on learning."""
        self.captioner.save(self.path)
        return {}


def fit(
    pictures: Pictures,
    config: CaptionerConfig,
    spec: FeatureSpec,
    folder: str | os.PathLike[str],
    progress: Progress = silent,
    start: Captioner | None = None,
    place: Placement = CPU,
) -> Captioner:
    """Train, or go on where the folder's checkpoint stands, and write `captioner.safetensors` into the folder.

    With `start`, its network and words are trained further; the sizes in `config` do not matter then.
    """
    load_metric(config.reward)  # an unknown one is known now, not after hours of cross entropy
    torch.manual_seed(config.seed)
    captioner = _new_captioner(pictures, config, spec) if start is None else replace(start, longest=config.longest)
    run = TrainingRun(folder, {**asdict(config), **asdict(spec), "pictures": len(pictures.ids), **dict(place.parts)})
    path = run.folder / "captioner.safetensors"
    task = CaptionerTask(captioner, pictures, config, path, place)
    optimizer = torch.optim.Adam(captioner.model.parameters(), lr=config.learning_rate)
    plan = Plan(
        name="training the captioner",
        steps=config.epochs * task.steps_per_epoch,
        validate_every=task.steps_per_epoch,
        epochs=True,
        clip_norm=1.0,
        schedule_every=task.steps_per_epoch,
    )
    Trainer(task, optimizer, run, plan, scheduler=_schedule(optimizer, config), progress=progress).fit()
    captioner.save(path)
    return captioner


def _new_captioner(pictures: Pictures, config: CaptionerConfig, spec: FeatureSpec) -> Captioner:
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
    return Captioner(model, vocabulary, spec, config.longest)


def _schedule(optimizer: Optimizer, config: CaptionerConfig) -> LRScheduler:
    """Cross entropy slows down evenly, epoch by epoch; the self-critical phase has one rate of its own."""
    factor = config.self_critical_learning_rate / config.learning_rate
    if not config.cross_entropy_epochs:
        return LambdaLR(optimizer, lambda epoch: factor)
    falling = LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=config.cross_entropy_epochs)
    constant = LambdaLR(optimizer, lambda epoch: factor)
    return SequentialLR(optimizer, [falling, constant], milestones=[config.cross_entropy_epochs])


class GridFeatures:
    """An encoder's grids as features to train on."""

    def __init__(self, encoder: Encoder, side: int) -> None:
        self.encoder, self.side = encoder, side
        self.tower_identity, self.preprocessing = f"{encoder.grid_identity} {side}", encoder.preprocessing

    def pixels(self, image: Image) -> Vectors:
        """Return a picture as the encoder takes it."""
        return self.encoder.pixels(image)

    def image_features(self, batch: Vectors) -> Vectors:
        """Return (pictures, cells, width)."""
        grid = self.encoder.encode_grid(batch, self.side)
        return grid.reshape(len(batch), self.side**2, -1)


def grid_features(
    encoder: Encoder, side: int, images: Path, names: Sequence[str], folder: Path, progress: Progress = silent
) -> Tensor:
    """Return grids of these pictures in half precision, read from the folder or computed and kept there."""
    kept = folder / f"grid-{side}"
    grids = torch.from_numpy(picture_features(GridFeatures(encoder, side), images, names, kept, progress)).half()
    if grids.ndim != 3 or grids.shape[1] != side**2:
        raise InputError(f"holds no grids of {side} by {side} cells", where=str(kept), remedy="give another --features")
    return grids


def train(
    images: Path,
    captions: Path,
    output: Path,
    config: CaptionerConfig,
    *,
    encoder: str = "embedded",
    features: Path | None = None,
    weights: Path | None = None,
    progress: Progress = silent,
    place: Placement = CPU,
) -> dict[str, Any]:
    """Train on the pictures of split train; what val and test reach is reported, nothing is chosen on them."""
    pairs = read_pairs(captions)
    start = None if weights is None else Captioner.load(weights)
    folder = features or output / "features"
    image_encoder = load_encoder(encoder, device=encoder_place(encoder, place).device, keep=folder)
    side = config.grid if start is None else start.spec.side
    spec = FeatureSpec(encoder, image_encoder.grid_identity, side)
    if start is not None and start.spec.identity != spec.identity:
        raise InputError(
            f"was trained on {start.spec.identity}, not on {spec.identity}",
            where=str(weights),
            remedy=f"give --encoder {start.spec.encoder}",
        )
    splits = {"train": pairs.train, "val": pairs.val, "test": pairs.test}
    names = [name for split in splits.values() for name in split]
    grids = grid_features(image_encoder, side, images, names, folder, progress)
    row_of = {name: row for row, name in enumerate(names)}

    def part(split: Mapping[str, list[str]]) -> Pictures:
        return Pictures(list(split), grids[[row_of[name] for name in split]], list(split.values()))

    captioner = fit(part(pairs.train), config, spec, output, progress, start, place)
    reached: dict[str, Any] = {"training pictures": len(pairs.train), "config": asdict(config)}
    for name in ("val", "test"):
        if splits[name]:
            reached[name] = evaluate_captioner(captioner, part(splits[name]))
    write_atomically(output / "result.json", json.dumps(reached, indent=2) + "\n")
    return {"weights": str(output / "captioner.safetensors"), **reached}


def evaluate_captioner(captioner: Captioner, pictures: Pictures, metrics: Sequence[str] = METRICS) -> dict[str, float]:
    """Return the scores of the captioner's captions of these pictures."""
    report = evaluate(captioner.caption(pictures.features), pictures.references, metrics=metrics)
    return {result.name: result.score for result in report}
