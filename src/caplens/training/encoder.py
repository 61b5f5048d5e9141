"""Train the heads of the embedded encoder: frozen backbones, symmetric contrastive loss, minutes on two cores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors
from caplens.encoders.devices import CPU, Placement, encoder_place, to_array
from caplens.encoders.embedded import Backbones
from caplens.storage.atomic import write_atomically
from caplens.storage.tensors import write_tensors
from caplens.training.contrastive import TrainableHead, recall, symmetric_loss
from caplens.training.pairs import FrozenEncoder, Pairs, caption_features, picture_features, read_pairs
from caplens.training.run import TrainingRun
from caplens.training.trainer import Plan, Step, Task, Trainer, warm_up_cosine


@dataclass(frozen=True)
class EncoderConfig:
    """Everything that changes the result."""

    seed: int = 0
    dimension: int = 512
    hidden: int = 1024
    dropout: float = 0.5
    epochs: int = 40
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    batch: int = 512
    captions_per_picture: int = 3
    warm_up: int = 50
    scale: float = 20.0
    """1/τ at the start; it is learned."""


@dataclass(frozen=True)
class Features:
    """Pictures and captions as features; `captions[i]` are the rows of picture i's captions in `texts`."""

    names: list[str]
    pictures: Vectors
    texts: Vectors
    captions: list[NDArray[np.int64]]

    @property
    def owner(self) -> NDArray[np.int64]:
        """The picture of every caption, captions in order."""
        return np.concatenate([np.full(len(rows), number) for number, rows in enumerate(self.captions)])

    @property
    def ordered_texts(self) -> Vectors:
        """The features of every caption, in order."""
        return self.texts[np.concatenate(self.captions)]


def split_features(
    captions: Mapping[str, Sequence[str]], pictures: Mapping[str, Vectors], texts: Mapping[str, Vectors]
) -> Features:
    """Return the features of one split."""
    row_of: dict[str, int] = {}
    rows = [np.array([row_of.setdefault(text, len(row_of)) for text in listed]) for listed in captions.values()]
    return Features(
        list(captions),
        np.stack([pictures[name] for name in captions]),
        np.stack([texts[text] for text in row_of]),
        rows,
    )


def load_features(
    frozen: FrozenEncoder, pairs: Pairs, images: Path, folder: Path, progress: Progress = silent
) -> dict[str, Features]:
    """Return the features of all splits, read from the folder or computed and kept there."""
    splits = {"train": pairs.train, "val": pairs.val, "test": pairs.test}
    names = [name for split in splits.values() for name in split]
    vectors = picture_features(frozen, images, names, folder / "pictures", progress)
    pictures = dict(zip(names, vectors, strict=True))
    every = [text for split in splits.values() for listed in split.values() for text in listed]
    texts = caption_features(frozen, every, folder / "captions.safetensors", progress)
    return {name: split_features(split, pictures, texts) for name, split in splits.items() if split}


class EncoderTask(Task):
    """Both heads and the temperature, trained on pictures with some of their captions; validated by recall."""

    def __init__(self, train: Features, val: Features, config: EncoderConfig, place: Placement = CPU) -> None:
        self.config, self.train, self.val, self.place = config, train, val, place
        self.pictures, self.texts = self.placed(train.pictures), self.placed(train.texts)
        self.steps_per_epoch = math.ceil(len(train.names) / config.batch)
        torch.manual_seed(config.seed)
        self.heads = {side: head.to(place.device) for side, head in self._new_heads().items()}
        self.log_scale = nn.Parameter(torch.tensor(math.log(config.scale), device=place.device))
        self.model = nn.ModuleDict({**self.heads, "temperature": nn.ParameterDict({"log_scale": self.log_scale})})

    def _new_heads(self) -> dict[str, TrainableHead]:
        """Return untrained heads; pictures are standardized by the training set, texts only scaled."""
        width = self.texts.shape[1]
        size = (self.config.hidden, self.config.dimension, self.config.dropout)
        return {
            "image": TrainableHead(self.pictures.mean(0), 1 / (self.pictures.std(0) + 1e-6), *size),
            "text": TrainableHead(torch.zeros(width), torch.full((width,), math.sqrt(width)), *size),
        }

    def step(self, number: int) -> Step:
        batch = number % self.steps_per_epoch
        if batch == 0:
            self._order = torch.randperm(len(self.train.names))
        chosen = self._order[batch * self.config.batch : (batch + 1) * self.config.batch]
        encoded = self.heads["image"](self.pictures[chosen])
        loss = torch.zeros((), device=self.place.device)
        for _ in range(self.config.captions_per_picture):
            rows = [draw_caption(self.train.captions[index]) for index in chosen.tolist()]
            scale = self.log_scale.exp().clamp(max=100)
            loss = loss + symmetric_loss(encoded, self.heads["text"](self.texts[rows]), scale)
        loss = loss / (2 * self.config.captions_per_picture)
        return Step(loss, {"loss": loss.detach()}, len(chosen))

    def validate(self) -> dict[str, float]:
        to_picture, to_caption = recall(*encode(self.heads, self.val), self.val.owner)
        return {"text_to_image": to_picture, "image_to_text": to_caption}


def draw_caption(rows: NDArray[np.int64]) -> int:
    """Return the row of one of a picture's captions, drawn by torch's own generator."""
    return int(rows[int(torch.randint(len(rows), ()))])


def encode(heads: Mapping[str, TrainableHead], features: Features) -> tuple[Vectors, Vectors]:
    """Return the vectors of all pictures, and of all captions in order."""

    def vectors(side: str, rows: Vectors) -> Vectors:
        head = heads[side].eval()
        return to_array(head(torch.from_numpy(rows).to(head.shift.device)))

    with torch.inference_mode():
        return vectors("image", features.pictures), vectors("text", features.ordered_texts)


def fit(
    features: Mapping[str, Features],
    config: EncoderConfig,
    run: TrainingRun,
    progress: Progress = silent,
    place: Placement = CPU,
) -> dict[str, TrainableHead]:
    """Return trained heads by side; the last epoch is kept."""
    task = EncoderTask(features["train"], features["val"], config, place)
    steps = config.epochs * task.steps_per_epoch
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    plan = Plan(name="training the encoder", steps=steps, validate_every=task.steps_per_epoch, epochs=True)
    scheduler = warm_up_cosine(optimizer, config.warm_up, steps)
    Trainer(task, optimizer, run, plan, scheduler=scheduler, progress=progress).fit()
    return task.heads


def save_heads(heads: Mapping[str, TrainableHead], path: Path, name: str, facts: Mapping[str, Any]) -> None:
    """Write heads as float16 safetensors for `caplens.encoders.embedded`."""
    tensors = {
        f"{side}.{key}": value.half().cpu().numpy()
        for side, head in heads.items()
        for key, value in head.state_dict().items()
    }
    values = {"kind": "embedded heads", "name": name, **facts}
    write_tensors(path, tensors, {"caplens": json.dumps(values, sort_keys=True)})


def train(
    images: Path,
    captions: Path,
    more_captions: Sequence[Path],
    output: Path,
    config: EncoderConfig,
    *,
    features: Path | None = None,
    progress: Progress = silent,
    place: Placement = CPU,
) -> dict[str, Any]:
    """Compute features, train, write `heads.safetensors` and return what the heads reach; nothing is chosen on test."""
    pairs = read_pairs(captions, more_captions)
    run = TrainingRun(output, {**asdict(config), "training pictures": len(pairs.train), **dict(place.parts)})
    backbones = Backbones(place=encoder_place("embedded", place))
    splits = load_features(backbones, pairs, images, features or output / "features", progress)
    heads = fit(splits, config, run, progress, place)
    weights = output / "heads.safetensors"
    save_heads(heads, weights, "contrastive", {"config": asdict(config)})
    reached: dict[str, Any] = {"training pictures": len(pairs.train)}
    for split in ("val", "test"):
        if split in splits:
            to_picture, to_caption = recall(*encode(heads, splits[split]), splits[split].owner)
            reached[split] = {"text to image R@1": to_picture, "image to text R@1": to_caption}
    write_atomically(output / "result.json", json.dumps(reached, indent=2) + "\n")
    return {"weights": str(weights), **reached}
