"""The whole of `caplens train pac-s`: features, positives, tuning, and weights that the metrics load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from caplens.core.errors import InputError
from caplens.core.types import Vectors
from caplens.encoders.clip import ClipEncoder, load_clip
from caplens.encoders.clip_layouts import from_hub
from caplens.encoders.embedded import SHIPPED, Backbones, EmbeddedEncoder, heads_path, read_heads
from caplens.storage.atomic import atomic_path
from caplens.training.encoder import Features, load_features, save_heads
from caplens.training.pac import Generated, PacConfig, clip_projections, head_projections, tune
from caplens.training.pairs import Frozen, Progress, caption_features, picture_features, read_pairs
from caplens.training.positives import changed_picture, read_generated, retrieved_captions
from caplens.training.trainer import TrainingRun


def train_pac(
    images: Path,
    captions: Path,
    more: Sequence[Path],
    output: Path,
    config: PacConfig,
    *,
    encoder: str = "embedded",
    weights: str | None = None,
    new_captions: str | None = None,
    new_images: str | None = None,
    features: Path | None = None,
    allow_pickle: bool = False,
    progress: Progress = lambda task, done, total: None,
) -> dict[str, Any]:
    """Tune an encoder's projections; the weights are in the output folder."""
    pairs = read_pairs(captions, more)
    kept = features or output / "features"
    facts = {"encoder": encoder, "weights": weights, "new captions": new_captions, "new images": new_images}
    run = TrainingRun(output, {**asdict(config), **facts, "training pictures": len(pairs.train)})
    target = output / "pac.safetensors"
    if encoder == "embedded":
        image, text, _ = read_heads(heads_path(weights or SHIPPED[0]))
        heads = head_projections(image, text)
        made, generated = _learn_from(Backbones(), pairs, images, kept, new_captions, new_images, progress)
        result = tune(heads, made["train"], made["val"], generated, EmbeddedEncoder.scale, config, run, progress)
        save_heads(heads, target, "pac", {"config": asdict(config), **facts})
    else:
        clip = load_clip(encoder, weights, allow_pickle=allow_pickle)
        if not isinstance(clip, ClipEncoder):
            raise InputError(f"{encoder} cannot be tuned here", remedy="use embedded or a ViT backbone")
        projections = clip_projections(clip)
        made, generated = _learn_from(clip, pairs, images, kept, new_captions, new_images, progress)
        scale = float(clip.model.logit_scale.exp())
        result = tune(projections, made["train"], made["val"], generated, scale, config, run, progress)
        _save_clip(clip, projections, target)
    run.finish("iteration")
    return {**result, "weights": str(target)}


def _learn_from(
    frozen: Frozen,
    pairs: Any,
    images: Path,
    kept: Path,
    new_captions: str | None,
    new_images: str | None,
    progress: Progress,
) -> tuple[dict[str, Features], Generated]:
    made = load_features(frozen, pairs, images, kept, progress)
    train = made["train"]
    pictures = None if new_images is None else _new_pictures(frozen, pairs, images, kept, new_images, train, progress)
    texts = None if new_captions is None else _new_captions(frozen, kept, new_captions, train, progress)
    return made, Generated(pictures, texts)


def _new_pictures(
    frozen: Frozen, pairs: Any, images: Path, kept: Path, source: str, train: Features, progress: Progress
) -> Vectors:
    """v' of every training picture: a changed crop, or the picture that was drawn for one of its captions."""
    made = np.full_like(train.pictures, np.nan)
    kind, _, number = source.partition("-")
    if kind == "crops" and (number.isdigit() or not number):
        names = train.names[: int(number)] if number else train.names
        made[: len(names)] = picture_features(frozen, images, names, kept / "crops", progress, changed_picture)
        return made
    folder = Path(source)
    drawn = read_generated(folder / "pictures.jsonl", "image")
    found = {name: next((drawn[text] for text in pairs.train[name] if drawn.get(text)), "") for name in train.names}
    there = [name for name in train.names if found[name]]
    if not there:
        raise InputError("holds no picture drawn for a training caption", where=str(folder))
    rows = [row for row, name in enumerate(train.names) if found[name]]
    made[rows] = picture_features(frozen, folder, [found[name] for name in there], kept / "drawn", progress)
    return made


def _new_captions(frozen: Frozen, kept: Path, source: str, train: Features, progress: Progress) -> Vectors:
    """t' of every training picture: a caption retrieved from the other half, or the captioner's."""
    if source == "retrieved":
        return train.texts[retrieved_captions(train.pictures, train.texts, train.captions, train.names)]
    written = read_generated(Path(source), "caption")
    missing = next((name for name in train.names if name not in written), None)
    if missing is not None:
        raise InputError(f"has no caption of {missing}", where=source)
    texts = caption_features(frozen, list(written.values()), kept / "new-captions.safetensors", progress)
    return np.stack([texts[written[name]] for name in train.names])


def _save_clip(clip: ClipEncoder, projections: Any, path: Path) -> None:
    """The whole model with its new projections, in the key layout of the published PAC-S checkpoints."""
    from safetensors.torch import save_file

    state = dict(clip.model.state_dict())
    state["visual_projection.weight"] = projections["image"].weight.detach()
    state["text_projection.weight"] = projections["text"].weight.detach()
    openai = from_hub({key: value for key, value in state.items() if not key.endswith("position_ids")}, "openai")
    with atomic_path(path) as temporary:
        save_file({key: value.contiguous().clone() for key, value in openai.items()}, temporary)
