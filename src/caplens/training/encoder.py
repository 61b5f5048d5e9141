"""Train the heads of the embedded encoder: image towers stay as they are, symmetric contrastive loss.

Four additions, off unless asked for: targets may be softened by how near a caption is to the other pictures'
captions, so that a caption of a similar picture is less wrong than any other; captions of pictures that are not at hand
may keep words in their place that the training pictures lack; captions that are gamed (lists of what is there, words
said twice) may have to lose against honest ones; and the upper layers of the text tower may be tuned together with the
heads (locked-image tuning, Zhai et al. 2022).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors
from caplens.encoders.backbones import TEXT, Backbones
from caplens.encoders.bert import BertEncoder
from caplens.encoders.devices import CPU, Placement, encoder_place, to_array
from caplens.encoders.embedded import EDITIONS
from caplens.readers import read_references
from caplens.storage import weights
from caplens.storage.atomic import write_atomically
from caplens.storage.tensors import write_tensors
from caplens.training.contrastive import TrainableHead, TrainableHeads, parts_of, recall, symmetric_loss
from caplens.training.gamed import CORRUPTIONS
from caplens.training.low_rank import TunableLayers
from caplens.training.pairs import (
    FrozenEncoder,
    Pairs,
    caption_features,
    caption_states,
    picture_features,
    read_pairs,
)
from caplens.training.run import TrainingRun
from caplens.training.trainer import Plan, Step, Task, Trainer, warm_up_cosine

Modules = dict[str, nn.Module]
"""What is trained, by name: the heads `image` and `text`, and `additions` to the text tower where it is tuned."""


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
    soft: float = 0.0
    """The share of the targets that goes to all pictures by how near their captions are."""
    soft_temperature: float = 0.1
    consistency: float = 0.0
    """Weight of the same loss between two captions of a picture that is not at hand, where such captions are given."""
    gamed: float = 0.0
    """Weight of a picture being nearer to a caption of its own than to one that is gamed: made of the same words, but
    listed, repeated or shuffled, one that suits many pictures, or one that goes on and on."""
    columns_beside: int = 0
    """Where positive, a second pair of heads is trained that sees only so many columns of a picture's features (CLIP's
    own vector is the first 512); the vectors of both pairs stand beside each other."""
    tuned_layers: int = 0
    """Upper layers of the text tower that are tuned by additions of low rank."""
    rank: int = 32
    tuned_learning_rate: float = 1e-3
    bfloat16: bool = False
    """Whether tuned layers compute in bfloat16 while they learn, which is twice as fast on recent processors."""


@dataclass(frozen=True)
class Features:
    """Pictures and captions as features; `captions[i]` are the rows of picture i's captions in `texts`."""

    names: list[str]
    pictures: Vectors
    texts: Vectors
    captions: list[NDArray[np.int64]]
    states: list[Vectors] | None = None
    """Every text's token states below the layers that are tuned."""
    unseen: Vectors | None = None
    """(pictures, 2, width): two captions of each of some pictures that are not at hand."""
    gamed: Vectors | None = None
    """(pictures, kinds, width): captions made of a picture's own, gamed in each way."""

    @property
    def owner(self) -> NDArray[np.int64]:
        """The picture of every caption, captions in order."""
        return np.concatenate([np.full(len(rows), number) for number, rows in enumerate(self.captions)])

    @property
    def ordered(self) -> NDArray[np.int64]:
        """The row of every caption, in order."""
        return np.concatenate(self.captions)

    @property
    def ordered_texts(self) -> Vectors:
        """The features of every caption, in order."""
        return self.texts[self.ordered]


def split_features(
    captions: Mapping[str, Sequence[str]],
    pictures: Mapping[str, Vectors],
    texts: Mapping[str, Vectors],
    states: Mapping[str, Vectors] | None = None,
) -> Features:
    """Return the features of one split."""
    row_of: dict[str, int] = {}
    rows = [np.array([row_of.setdefault(text, len(row_of)) for text in listed]) for listed in captions.values()]
    return Features(
        list(captions),
        np.stack([pictures[name] for name in captions]),
        np.stack([texts[text] for text in row_of]),
        rows,
        None if states is None else [states[text] for text in row_of],
    )


def load_features(
    frozen: FrozenEncoder, pairs: Pairs, images: Path, folder: Path, progress: Progress = silent, tuned_layers: int = 0
) -> dict[str, Features]:
    """Return the features of all splits, read from the folder or computed and kept there.

    Where layers of the text tower are tuned, `frozen` is an edition of the embedded encoder.
    """
    splits = {"train": pairs.train, "val": pairs.val, "test": pairs.test}
    names = [name for split in splits.values() for name in split]
    vectors = picture_features(frozen, images, names, folder / "pictures", progress)
    pictures = dict(zip(names, vectors, strict=True))
    every = [text for split in splits.values() for listed in split.values() for text in listed]
    texts = caption_features(frozen, every, folder / "captions.safetensors", progress)
    states = None
    if tuned_layers:
        assert isinstance(frozen, Backbones)
        states = caption_states(frozen, every, tuned_layers, folder / "states.safetensors", progress)
    return {name: split_features(split, pictures, texts, states) for name, split in splits.items() if split}


class EncoderTask(Task):
    """Both heads and the temperature, trained on pictures with some of their captions; validated by recall."""

    def __init__(self, train: Features, val: Features, config: EncoderConfig, place: Placement = CPU) -> None:
        self.config, self.train, self.val, self.place = config, train, val, place
        self.pictures, self.texts = self.placed(train.pictures), self.placed(train.texts)
        self.unseen = None if train.unseen is None or not config.consistency else self.placed(train.unseen)
        self.gamed = None if train.gamed is None or not config.gamed else self.placed(train.gamed)
        self.steps_per_epoch = math.ceil(len(train.names) / config.batch)
        torch.manual_seed(config.seed)
        self.heads = {name: module.to(place.device) for name, module in self._new_heads().items()}
        self.teacher = Teacher(train, place) if config.soft else None
        self.log_scale = nn.Parameter(torch.tensor(math.log(config.scale), device=place.device))
        self.model = nn.ModuleDict({**self.heads, "temperature": nn.ParameterDict({"log_scale": self.log_scale})})

    def _new_heads(self) -> Modules:
        """Return untrained heads; pictures are standardized by the training set, texts only scaled."""
        width = self.texts.shape[1]
        size = (self.config.hidden, self.config.dimension, self.config.dropout)
        shift, scale = self.pictures.mean(0), 1 / (self.pictures.std(0) + 1e-6)
        images, texts = [], []
        for columns in (len(shift), *filter(None, [self.config.columns_beside])):
            images.append(TrainableHead(shift[:columns], scale[:columns], *size))
            texts.append(TrainableHead(torch.zeros(width), torch.full((width,), math.sqrt(width)), *size))
        heads: Modules = {
            "image": TrainableHeads(images) if self.config.columns_beside else images[0],
            "text": TrainableHeads(texts) if self.config.columns_beside else texts[0],
        }
        if self.config.tuned_layers:
            tower = BertEncoder(weights.require(TEXT))
            heads["additions"] = TunableLayers(tower, self.config.tuned_layers, self.config.rank)
        return heads

    def step(self, number: int) -> Step:
        batch = number % self.steps_per_epoch
        if batch == 0:
            self._order = torch.randperm(len(self.train.names))
        chosen = self._order[batch * self.config.batch : (batch + 1) * self.config.batch]
        pairs = list(zip(parts_of(self.heads["image"]), parts_of(self.heads["text"]), strict=True))
        encoded = [image(self.pictures[chosen]) for image, _ in pairs]
        loss = torch.zeros((), device=self.place.device)
        scale = self.log_scale.exp().clamp(max=100)
        for _ in range(self.config.captions_per_picture):
            rows = np.array([draw_caption(self.train.captions[index]) for index in chosen.tolist()])
            with torch.autocast("cpu", torch.bfloat16, enabled=self.config.bfloat16):
                texts = text_inputs(self.heads, self.train, rows).to(self.place.device)
            targets = None
            if self.teacher is not None:
                nearness = self.teacher.nearness(chosen, rows) / self.config.soft_temperature
                targets = (self.config.soft, nearness)
            read = [text(texts.float()) for _, text in pairs]
            for pictures, honest in zip(encoded, read, strict=True):
                loss = loss + symmetric_loss(pictures, honest, scale, targets)
        loss = loss / (2 * self.config.captions_per_picture)
        if self.gamed is not None:
            kinds = torch.randint(self.gamed.shape[1], (len(chosen),))
            loss = loss + self.config.gamed * self._gamed_loss(encoded, read, self.gamed[chosen, kinds], scale)
        if self.unseen is not None:
            loss = loss + self.config.consistency * self._unseen_loss(self.unseen, scale)
        return Step(loss, {"loss": loss.detach()}, len(chosen))

    def _unseen_loss(self, unseen: Tensor, scale: Tensor) -> Tensor:
        """Return the loss between two captions of the same picture, for a batch of pictures nobody sees."""
        chosen = torch.randperm(len(unseen))[: self.config.batch].to(unseen.device)
        first, second = unseen[chosen].unbind(dim=1)
        nearness = first @ second.T / self.config.soft_temperature
        targets = (self.config.soft, nearness) if self.config.soft else None
        losses = [symmetric_loss(head(first), head(second), scale, targets) for head in parts_of(self.heads["text"])]
        return torch.stack(losses).sum() / 2

    def _gamed_loss(self, pictures: Sequence[Tensor], honest: Sequence[Tensor], gamed: Tensor, scale: Tensor) -> Tensor:
        """Return how little nearer pictures are to honest captions (both per pair of heads) than to gamed ones."""
        losses = []
        for seen, read, head in zip(pictures, honest, parts_of(self.heads["text"]), strict=True):
            ahead = functional.cosine_similarity(seen, read) - functional.cosine_similarity(seen, head(gamed))
            losses.append(functional.softplus(-scale * ahead).mean())
        return torch.stack(losses).sum()

    def validate(self) -> dict[str, float]:
        to_picture, to_caption = recall(*encode(self.heads, self.val), self.val.owner)
        return {"text_to_image": to_picture, "image_to_text": to_caption}


def draw_caption(rows: NDArray[np.int64]) -> int:
    """Return the row of one of a picture's captions, drawn by torch's own generator."""
    return int(rows[int(torch.randint(len(rows), ()))])


class Teacher:
    """How near captions are to pictures, by the frozen text tower: the mean cosine with a picture's own captions."""

    def __init__(self, train: Features, place: Placement = CPU) -> None:
        sums = np.stack([train.texts[rows].sum(axis=0) for rows in train.captions])
        counts = np.array([len(rows) for rows in train.captions], np.float32)
        self.texts, self.sums, self.counts = (
            torch.from_numpy(array).to(place.device) for array in (train.texts, sums, counts)
        )

    def nearness(self, pictures: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """Return (pictures, captions), caption i being one of picture i's: with itself it is not compared."""
        own = torch.eye(len(rows), device=self.texts.device)
        total = self.sums[pictures] @ self.texts[rows].T - own
        return total / (self.counts[pictures][:, None] - own).clamp(min=1)


def text_inputs(heads: Modules, features: Features, rows: NDArray[np.int64]) -> Tensor:
    """Return what the text head is given of some captions."""
    if "additions" not in heads:
        return torch.from_numpy(features.texts[rows])
    if features.states is None:
        raise InputError("layers are to be tuned, but the features were made without their states")
    tuned: Tensor = heads["additions"]([features.states[row] for row in rows])
    return tuned


def encode(heads: Modules, features: Features) -> tuple[Vectors, Vectors]:
    """Return the vectors of all pictures, and of all captions in order."""
    ordered = features.ordered
    device = next(heads["image"].parameters()).device
    with torch.inference_mode():
        for module in heads.values():
            module.eval()
        pictures = to_array(heads["image"](torch.from_numpy(features.pictures).to(device)))
        captions = [
            to_array(heads["text"](text_inputs(heads, features, ordered[start : start + 512]).to(device)))
            for start in range(0, len(ordered), 512)
        ]
    return pictures, np.concatenate(captions)


def unseen_features(
    frozen: FrozenEncoder, files: Sequence[Path], folder: Path, progress: Progress = silent
) -> Vectors | None:
    """Return two captions of every picture in files of references, as features kept in the folder."""
    captions = [texts[:2] for path in files for texts in read_references(path).values() if len(texts) > 1]
    if not captions:
        return None
    texts = [text for pair in captions for text in pair]
    features = caption_features(frozen, texts, folder / "unseen.safetensors", progress)
    return np.stack([np.stack([features[text] for text in pair]) for pair in captions])


def gamed_features(
    frozen: FrozenEncoder,
    captions: Mapping[str, Sequence[str]],
    folder: Path,
    seed: int,
    progress: Progress = silent,
) -> Vectors:
    """Return one caption gamed in each way for every picture, made of captions of its own, as features."""
    random = np.random.default_rng(seed)
    texts = []
    for listed in captions.values():
        for corrupt in CORRUPTIONS.values():
            honest, *others = (listed[row] for row in random.permutation(len(listed))[:5])
            texts.append(corrupt(honest, others, random))
    features = caption_features(frozen, texts, folder / f"gamed-{seed}.safetensors", progress)
    return np.stack([features[text] for text in texts]).reshape(len(captions), len(CORRUPTIONS), -1)


def fit(
    features: Mapping[str, Features],
    config: EncoderConfig,
    run: TrainingRun,
    progress: Progress = silent,
    place: Placement = CPU,
) -> tuple[Modules, float]:
    """Return trained heads by side, and 1/τ; the last epoch is kept."""
    task = EncoderTask(features["train"], features["val"], config, place)
    steps = config.epochs * task.steps_per_epoch
    groups = [
        {
            "params": list(module.parameters()),
            "lr": config.tuned_learning_rate if name == "additions" else config.learning_rate,
        }
        for name, module in task.model.named_children()
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=config.weight_decay)
    plan = Plan(name="training the encoder", steps=steps, validate_every=task.steps_per_epoch, epochs=True)
    scheduler = warm_up_cosine(optimizer, config.warm_up, steps)
    Trainer(task, optimizer, run, plan, scheduler=scheduler, progress=progress).fit()
    return task.heads, float(task.log_scale.detach().exp().clamp(max=100))


def save_heads(
    heads: Mapping[str, nn.Module],
    path: Path,
    name: str,
    facts: Mapping[str, Any],
    additions: Mapping[str, Vectors] | None = None,
) -> None:
    """Write heads as float16 safetensors for `caplens.encoders.embedded`, with additions that were made before."""
    tensors = {
        f"{side}.{key}": value.half().cpu().numpy()
        for side, head in heads.items()
        for key, value in (head.additions() if isinstance(head, TunableLayers) else head.state_dict()).items()
    }
    tensors |= {f"additions.{key}": array.astype(np.float16) for key, array in (additions or {}).items()}
    values = {"kind": "embedded heads", "name": name, **facts}
    write_tensors(path, tensors, {"caplens": json.dumps(values, sort_keys=True)})


def train(
    images: Path,
    captions: Path,
    more_captions: Sequence[Path],
    output: Path,
    config: EncoderConfig,
    *,
    encoder: str = "embedded",
    unseen: Sequence[Path] = (),
    features: Path | None = None,
    progress: Progress = silent,
    place: Placement = CPU,
) -> dict[str, Any]:
    """Compute features, train, write `heads.safetensors` and return what the heads reach; nothing is chosen on test."""
    if encoder not in EDITIONS:
        raise InputError(f"{encoder} has no heads to train", remedy=f"use one of: {', '.join(EDITIONS)}")
    pairs = read_pairs(captions, more_captions)
    facts = {"encoder": encoder, "training pictures": len(pairs.train), **dict(place.parts)}
    if config.consistency and not unseen:
        raise InputError("consistency is learned from captions without pictures", remedy="give --text-only FILE")
    run = TrainingRun(output, {**asdict(config), **facts})
    folder = features or output / "features"
    towers = EDITIONS[encoder](place=encoder_place(encoder, place), keep=folder)
    splits = load_features(towers, pairs, images, folder, progress, config.tuned_layers)
    if unseen and config.consistency:
        splits["train"] = replace(splits["train"], unseen=unseen_features(towers, unseen, folder, progress))
    if config.gamed:
        made = gamed_features(towers, pairs.train, folder, config.seed, progress)
        splits["train"] = replace(splits["train"], gamed=made)
    heads, scale = fit(splits, config, run, progress, place)
    target = output / "heads.safetensors"
    save_heads(heads, target, "contrastive", {"config": asdict(config), "edition": encoder, "scale": round(scale, 2)})
    reached: dict[str, Any] = {"training pictures": len(pairs.train)}
    for split in ("val", "test"):
        if split in splits:
            to_picture, to_caption = recall(*encode(heads, splits[split]), splits[split].owner)
            reached[split] = {"text to image R@1": to_picture, "image to text R@1": to_caption}
    write_atomically(output / "result.json", json.dumps(reached, indent=2) + "\n")
    return {"weights": str(target), **reached}
