"""Positive-augmented contrastive learning (PAC-S, eq. 2 and 3): tune the final projections of an image-text encoder.

    L = L(V, T) + λv · L(V', T) + λt · L(V, T')

V, T: pictures and the captions people wrote; V': generated pictures; T': generated captions. The towers stay frozen, so
their features are computed once and a run takes minutes. Training stops when the loss on the validation pictures has
not fallen for 1,500 steps; the best projections are kept, the untouched ones among them. Under torchrun every process
takes its share of each batch; the result is that of one process (up to dropout, which only our heads have).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors
from caplens.encoders.clip import ClipEncoder, load_clip
from caplens.encoders.clip_layouts import from_hub
from caplens.encoders.devices import CPU, Placement, encoder_place
from caplens.encoders.embedded import EDITIONS, Head, Heads, JoinedHeads, heads_path, read_heads
from caplens.storage.atomic import atomic_path
from caplens.training.contrastive import TrainableHead, TrainableHeads, symmetric_loss
from caplens.training.distributed import Processes, join_processes
from caplens.training.encoder import EncoderConfig, Features, draw_caption, load_features, save_heads
from caplens.training.pairs import FrozenEncoder, Pairs, caption_features, picture_features, read_pairs
from caplens.training.positives import changed_picture, read_generated, retrieved_captions
from caplens.training.run import TrainingRun
from caplens.training.trainer import Plan, Step, Task, Trainer


@dataclass(frozen=True)
class PacConfig:
    """The paper's values (sec. 4.1)."""

    seed: int = 0
    learning_rate: float = 1e-4
    batch: int = 256
    lambda_v: float = 0.05
    lambda_t: float = 0.1
    steps: int = 20_000
    """At most."""
    validate_every: int = 100
    patience: int = 1500
    """Steps without a lower validation loss before it stops."""


@dataclass(frozen=True)
class Generated:
    """Features of what was generated, one row per training picture, NaN where nothing was (a picture that the safety
    checker held back). None: that loss term is left out."""

    pictures: Vectors | None = None
    captions: Vectors | None = None


def clip_projections(encoder: ClipEncoder) -> dict[str, nn.Linear]:
    """Return copies of CLIP's two final projections, ready to be trained."""
    copies = {}
    for side, layer in (("image", encoder.model.visual_projection), ("text", encoder.model.text_projection)):
        copies[side] = nn.Linear(layer.in_features, layer.out_features, bias=False)
        copies[side].load_state_dict(layer.state_dict())
    return copies


def head_projections(image: Head | JoinedHeads, text: Head | JoinedHeads) -> dict[str, TrainableHead | TrainableHeads]:
    """Return the embedded encoder's heads; only the maps into the joint space are trained, the hidden layer stays.

    The dropout they were trained with stays on: they know the training pairs by heart, and without it they move towards
    those within 25 steps and away from people's ratings.
    """
    return {"image": _trainable(image), "text": _trainable(text)}


def _trainable(head: Head | JoinedHeads) -> TrainableHead | TrainableHeads:
    if isinstance(head, JoinedHeads):
        return TrainableHeads([_trainable_part(part) for part in head.parts])
    return _trainable_part(head)


def _trainable_part(head: Head) -> TrainableHead:
    hidden, dimension = len(head.tensors["up.bias"]), head.dimension
    copy = TrainableHead(
        torch.from_numpy(head.shift), torch.from_numpy(head.scale), hidden, dimension, EncoderConfig.dropout
    )
    copy.load_state_dict(
        {"shift": copy.shift, "scale": copy.scale} | {key: torch.from_numpy(a) for key, a in head.tensors.items()}
    )
    copy.up.requires_grad_(False)
    return copy


class PacTask(Task):
    """Projections under eq. 3, validated by eq. 2 on the validation pictures."""

    def __init__(
        self,
        projections: Mapping[str, nn.Module],
        train: Features,
        val: Features,
        generated: Generated,
        scale: float,
        config: PacConfig,
        processes: Processes,
        place: Placement = CPU,
    ) -> None:
        torch.manual_seed(config.seed)
        self.place = place
        self.model: nn.ModuleDict = nn.ModuleDict(dict(projections)).to(place.device)
        self.train, self.val, self.scale, self.config, self.processes = train, val, scale, config, processes
        self.pictures, self.texts = self.placed(train.pictures), self.placed(train.texts)
        self.new_pictures, self.new_captions = (
            None
            if rows is None
            else (self.placed(np.nan_to_num(rows)), torch.from_numpy(np.isfinite(rows).all(axis=1)))
            for rows in (generated.pictures, generated.captions)
        )

    def step(self, number: int) -> Step:
        size = self.config.batch - self.config.batch % self.processes.count
        rows = torch.randperm(len(self.train.names))[:size]
        captions = torch.tensor([draw_caption(self.train.captions[row]) for row in rows])
        loss = self.loss(rows, captions)
        return Step(loss, {"loss": loss.detach()})

    def loss(self, rows: Tensor, captions: Tensor) -> Tensor:
        """Return eq. 3 over the whole batch, of which every process encodes its share.

        A generated positive that is missing drops its pair only.
        """
        pictures, texts = self._encode("image", self.pictures[rows]), self._encode("text", self.texts[captions])
        loss = symmetric_loss(pictures, texts, self.scale)
        for generated, side, partners, weight in (
            (self.new_pictures, "image", texts, self.config.lambda_v),
            (self.new_captions, "text", pictures, self.config.lambda_t),
        ):
            if generated is None:
                continue
            features, is_present = generated
            present = is_present[rows].nonzero()[:, 0]  # on the CPU: nothing waits for the device
            if len(present) > 1:
                positives = self._encode(side, features[rows])
                loss = loss + weight * symmetric_loss(positives[present], partners[present], self.scale)
        return loss

    def _encode(self, side: str, features: Tensor) -> Tensor:
        return self.processes.gather(self.model[side](self.processes.share(features)))

    def validate(self) -> dict[str, float]:
        """Return eq. 2, each picture with its first caption, in batches of the training size."""
        losses, sizes = [], []
        for start in range(0, len(self.val.names), self.config.batch):
            rows = np.arange(start, min(start + self.config.batch, len(self.val.names)))
            texts = np.array([self.val.captions[row][0] for row in rows])
            pictures = self.model["image"](self.placed(self.val.pictures[rows]))
            captions = self.model["text"](self.placed(self.val.texts[texts]))
            losses.append(float(symmetric_loss(pictures, captions, self.scale)))
            sizes.append(len(rows))
        return {"validation_loss": float(np.average(losses, weights=sizes))}


def fit(
    projections: Mapping[str, nn.Module],
    train: Features,
    val: Features,
    generated: Generated,
    scale: float,
    config: PacConfig,
    run: TrainingRun,
    progress: Progress = silent,
    place: Placement = CPU,
) -> dict[str, Any]:
    """Train the projections in place, to the lowest validation loss; goes on from the run's checkpoint."""
    processes = join_processes()
    task = PacTask(projections, train, val, generated, scale, config, processes, place)
    parameters = [parameter for parameter in task.model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate)
    plan = Plan(
        name="training PAC-S",
        steps=config.steps,
        validate_every=config.validate_every,
        monitor="validation_loss",
        patience=config.patience,
        keep_untrained=True,
    )
    fitted = Trainer(task, optimizer, run, plan, progress=progress, processes=processes).fit()
    return {"steps": fitted.steps, "best step": fitted.best_step, "validation loss": fitted.best}


def train(
    images: Path,
    captions: Path,
    more_captions: Sequence[Path],
    output: Path,
    config: PacConfig,
    *,
    encoder: str = "embedded",
    weights: str | None = None,
    new_captions: str | None = None,
    new_images: str | None = None,
    features: Path | None = None,
    allow_pickle: bool = False,
    progress: Progress = silent,
    place: Placement = CPU,
) -> dict[str, Any]:
    """Tune an encoder's projections and write `pac.safetensors` into the output folder."""
    pairs = read_pairs(captions, more_captions)
    facts = {"encoder": encoder, "weights": weights, "new captions": new_captions, "new images": new_images}
    run = TrainingRun(output, {**asdict(config), **facts, "training pictures": len(pairs.train), **dict(place.parts)})
    clip: ClipEncoder | None = None
    projections: Mapping[str, nn.Module]
    start: Heads | None = None
    if encoder in EDITIONS:
        start = read_heads(heads_path(weights or "contrastive", encoder))
        projections = heads = head_projections(start.image, start.text)
        scale = start.scale
    else:
        loaded = load_clip(encoder, weights, allow_pickle=allow_pickle, place=encoder_place(encoder, place))
        if not isinstance(loaded, ClipEncoder):
            raise InputError(f"{encoder} cannot be tuned here", remedy="use embedded or a ViT backbone")
        clip, projections, scale = loaded, clip_projections(loaded), float(loaded.model.logit_scale.exp())
    folder = features or output / "features"
    frozen: FrozenEncoder = clip or EDITIONS[encoder](
        place=encoder_place(encoder, place), additions=start.additions if start else None, keep=folder
    )
    splits = load_features(frozen, pairs, images, folder, progress)
    generated = Generated(
        None if new_images is None else _new_pictures(frozen, pairs, images, folder, new_images, splits, progress),
        None if new_captions is None else _new_captions(frozen, folder, new_captions, splits["train"], progress),
    )
    result = fit(projections, splits["train"], splits["val"], generated, scale, config, run, progress, place)
    target = output / "pac.safetensors"
    if clip is not None:
        _save_clip(clip, projections, target)
    elif start is not None:
        kept = {"edition": start.edition, "scale": start.scale}
        save_heads(heads, target, "pac", {"config": asdict(config), **facts, **kept}, start.additions)
    return {"weights": str(target), **result}


def _new_pictures(
    frozen: FrozenEncoder,
    pairs: Pairs,
    images: Path,
    folder: Path,
    source: str,
    splits: Mapping[str, Features],
    progress: Progress,
) -> Vectors:
    """Return v' of every training picture: a changed crop, or the picture that was drawn for one of its captions."""
    names = splits["train"].names
    vectors = np.full_like(splits["train"].pictures, np.nan)
    kind, _, number = source.partition("-")
    if kind == "crops" and (number.isdigit() or not number):
        cropped = names[: int(number)] if number else names
        vectors[: len(cropped)] = picture_features(frozen, images, cropped, folder / "crops", progress, changed_picture)
        return vectors
    drawn = read_generated(Path(source) / "pictures.jsonl", "image")
    files = [next((drawn[text] for text in pairs.train[name] if drawn.get(text)), "") for name in names]
    rows = [row for row, file in enumerate(files) if file]
    if not rows:
        raise InputError("holds no picture drawn for a training caption", where=source)
    vectors[rows] = picture_features(frozen, Path(source), [files[row] for row in rows], folder / "drawn", progress)
    return vectors


def _new_captions(frozen: FrozenEncoder, folder: Path, source: str, train: Features, progress: Progress) -> Vectors:
    """Return t' of every training picture: a caption retrieved from the other half, or the captioner's."""
    if source == "retrieved":
        return train.texts[retrieved_captions(train.pictures, train.texts, train.captions, train.names)]
    written = read_generated(Path(source), "caption")
    missing = next((name for name in train.names if name not in written), None)
    if missing is not None:
        raise InputError(f"has no caption of {missing}", where=source)
    texts = caption_features(frozen, list(written.values()), folder / "new-captions.safetensors", progress)
    return np.stack([texts[written[name]] for name in train.names])


def _save_clip(clip: ClipEncoder, projections: Mapping[str, nn.Module], path: Path) -> None:
    """Write the whole model with its new projections, in the key layout of the published PAC-S checkpoints."""
    state = dict(clip.model.state_dict())
    for side, name in (("image", "visual_projection"), ("text", "text_projection")):
        state[f"{name}.weight"] = projections[side].state_dict()["weight"].cpu()
    openai = from_hub({key: value for key, value in state.items() if not key.endswith("position_ids")}, "openai")
    with atomic_path(path) as temporary:
        save_file({key: value.cpu().contiguous().clone() for key, value in openai.items()}, temporary)
