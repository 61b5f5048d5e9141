"""Train the heads of the embedded encoder: frozen backbones, symmetric contrastive loss, minutes on two cores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caplens.core.types import Vectors
from caplens.storage.atomic import atomic_path, write_atomically
from caplens.training.pairs import Frozen, Pairs, Progress, caption_features, picture_features, read_pairs
from caplens.training.trainer import TrainingRun, optimizer_tensors, restore_optimizer

if TYPE_CHECKING:
    from torch import Tensor

    from caplens.training.contrastive import TrainableHead


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
        return self.texts[np.concatenate(self.captions)]


def split_features(
    captions: Mapping[str, Sequence[str]], pictures: Mapping[str, Vectors], texts: Mapping[str, Vectors]
) -> Features:
    """The features of one split."""
    place: dict[str, int] = {}
    rows = [np.array([place.setdefault(text, len(place)) for text in listed]) for listed in captions.values()]
    return Features(
        list(captions), np.stack([pictures[name] for name in captions]), np.stack([texts[text] for text in place]), rows
    )


def load_features(frozen: Frozen, pairs: Pairs, images: Path, folder: Path, progress: Progress) -> dict[str, Features]:
    """Features of all splits, from the folder where they are, else computed and kept there."""
    splits = {"train": pairs.train, "val": pairs.val, "test": pairs.test}
    names = [name for split in splits.values() for name in split]
    vectors = picture_features(frozen, images, names, folder / "pictures", progress)
    pictures = dict(zip(names, vectors, strict=True))
    every = [text for split in splits.values() for listed in split.values() for text in listed]
    texts = caption_features(frozen, every, folder / "captions.safetensors", progress)
    return {name: split_features(split, pictures, texts) for name, split in splits.items() if split}


def new_heads(train: Features, config: EncoderConfig) -> dict[str, TrainableHead]:
    """Untrained heads; pictures are standardised by the training set, texts only scaled."""
    import torch

    from caplens.training.contrastive import TrainableHead

    pictures = torch.from_numpy(train.pictures)
    width = train.texts.shape[1]
    size = (config.hidden, config.dimension, config.dropout)
    return {
        "image": TrainableHead(pictures.mean(0), 1 / (pictures.std(0) + 1e-6), *size),
        "text": TrainableHead(torch.zeros(width), torch.full((width,), math.sqrt(width)), *size),
    }


def train_heads(
    features: Mapping[str, Features], config: EncoderConfig, run: TrainingRun, progress: Progress
) -> dict[str, TrainableHead]:
    """Contrastive training with a cosine schedule; goes on from the run's checkpoint."""
    import torch

    from caplens.training.contrastive import recall, symmetric_loss

    torch.manual_seed(config.seed)
    train = features["train"]
    heads = new_heads(train, config)
    scale = torch.nn.Parameter(torch.tensor(math.log(config.scale)))
    parameters = [scale, *(p for head in heads.values() for p in head.parameters())]
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    per_epoch = math.ceil(len(train.names) / config.batch)
    steps = config.epochs * per_epoch
    pictures, texts = torch.from_numpy(train.pictures), torch.from_numpy(train.texts)
    first = 0
    saved = run.resume()
    if saved is not None:
        tensors, values = saved
        first = values["epoch"]
        for side, head in heads.items():
            head.load_state_dict(_under(tensors, f"{side}."))
        with torch.no_grad():
            scale.copy_(tensors["logit_scale"])
        restore_optimizer(optimizer, tensors)
        torch.set_rng_state(tensors["generator"])
    for epoch in range(first, config.epochs):
        total = 0.0
        for head in heads.values():
            head.train()
        order = torch.randperm(len(train.names))
        for number, start in enumerate(range(0, len(order), config.batch)):
            chosen = order[start : start + config.batch]
            step = epoch * per_epoch + number
            rate = min(1.0, (step + 1) / config.warm_up) * 0.5 * (1 + math.cos(math.pi * step / steps))
            for group in optimizer.param_groups:
                group["lr"] = config.learning_rate * rate
            seen = heads["image"](pictures[chosen])
            loss = torch.zeros(())
            for _ in range(config.captions_per_picture):
                rows = [_any_of(train.captions[index]) for index in chosen.tolist()]
                loss = loss + symmetric_loss(seen, heads["text"](texts[rows]), scale.exp().clamp(max=100))
            loss = loss / (2 * config.captions_per_picture)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += float(loss.detach()) * len(chosen)
        to_picture, to_caption = recall(*encode(heads, features["val"]), features["val"].owner)
        run.log(epoch=epoch + 1, loss=total / len(order), text_to_image=to_picture, image_to_text=to_caption)
        tensors = {f"{side}.{name}": value for side, head in heads.items() for name, value in head.state_dict().items()}
        tensors |= {"logit_scale": scale, "generator": torch.get_rng_state(), **optimizer_tensors(optimizer)}
        run.save(tensors, {"epoch": epoch + 1})
        progress("epochs", epoch + 1, config.epochs)
    return heads


def _any_of(rows: NDArray[np.int64]) -> int:
    import torch

    return int(rows[int(torch.randint(len(rows), ()))])


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def encode(heads: Mapping[str, TrainableHead], features: Features) -> tuple[Vectors, Vectors]:
    """Vectors of all pictures, and of all captions in order."""
    import torch

    for head in heads.values():
        head.eval()
    with torch.no_grad():
        pictures: Vectors = heads["image"](torch.from_numpy(features.pictures)).numpy()
        captions: Vectors = heads["text"](torch.from_numpy(features.ordered_texts)).numpy()
    return pictures, captions


def save_heads(heads: Mapping[str, TrainableHead], path: Path, name: str, facts: Mapping[str, Any]) -> None:
    """Write heads as float16 safetensors for `caplens.encoders.embedded`."""
    from safetensors.torch import save_file

    tensors = {
        f"{side}.{key}": value.half().contiguous()
        for side, head in heads.items()
        for key, value in head.state_dict().items()
    }
    values = {"kind": "embedded heads", "name": name, **facts}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata={"caplens": json.dumps(values, sort_keys=True)})


def train_encoder(
    images: Path,
    captions: Path,
    more: Sequence[Path],
    output: Path,
    config: EncoderConfig,
    features: Path | None = None,
    progress: Progress = lambda task, done, total: None,
) -> dict[str, Any]:
    """The whole recipe: features, training, heads, what they reach. The last epoch is kept, nothing chosen on test."""
    from caplens.encoders.embedded import Backbones
    from caplens.training.contrastive import recall

    pairs = read_pairs(captions, more)
    run = TrainingRun(output, {**asdict(config), "training pictures": len(pairs.train)})
    made = load_features(Backbones(), pairs, images, features or output / "features", progress)
    heads = train_heads(made, config, run, progress)
    reached: dict[str, Any] = {"training pictures": len(pairs.train)}
    for split in ("val", "test"):
        if split in made:
            reached[split] = dict(
                zip(
                    ("text to image R@1", "image to text R@1"),
                    recall(*encode(heads, made[split]), made[split].owner),
                    strict=True,
                )
            )
    save_heads(heads, output / "heads.safetensors", "contrastive", {"config": asdict(config)})
    write_atomically(output / "result.json", json.dumps(reached, indent=2) + "\n")
    run.finish("epoch")
    return reached
