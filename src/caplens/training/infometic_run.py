"""`caplens train infometic` from pictures and captions to weights: features are made once, the rest is minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from caplens.core.types import Vectors, unit
from caplens.encoders.base import Encoder
from caplens.encoders.load import load_encoder
from caplens.storage import weights
from caplens.text.object_labels import ObjectLabels
from caplens.text.wordnet import WORDNET
from caplens.training.grounded import (
    Captions,
    Pictures,
    frequent_words,
    lone_tokens,
    make_captions,
    mentioned,
    pollute_all,
    region_features,
    tagged,
)
from caplens.training.infometic import InfoMeticConfig, new_fusion, train_fusion, write_weights
from caplens.training.infometic_tensors import SplitTensors, make_split_tensors, principal_projection
from caplens.training.pairs import Progress, read_pairs
from caplens.training.trainer import TrainingRun
from caplens.vision.regions import CLUSTERS, make_proposer

POLLUTED = {"train": 2, "val": 1, "test": 1}
"""Polluted captions per picture."""


@dataclass(frozen=True)
class Split:
    """One split: pictures, captions, polluted captions, and which regions each caption mentions."""

    pictures: Pictures
    captions: Captions
    polluted: Captions
    mentioned: np.ndarray[Any, np.dtype[np.bool_]]
    named: np.ndarray[Any, np.dtype[np.bool_]]
    """(captions, 1 + regions + 1) both: by weak label; regions without a name are in neither."""


def load_splits(
    encoder: Encoder,
    images: Path,
    captions: Path,
    more_captions: Sequence[Path],
    regions: str,
    folder: Path,
    progress: Progress,
    wanted: Sequence[str] = ("train", "val"),
    seed: int = 0,
) -> dict[str, Split]:
    """Splits with everything that is learned from; features are kept in `folder`."""
    pairs = read_pairs(captions, more_captions)
    proposer, things = make_proposer(regions), ObjectLabels(weights.require(WORDNET))
    made: dict[str, Split] = {}
    frequent: dict[str, list[str]] = {}
    for name in ("train", *(split for split in wanted if split != "train")):
        listed: Mapping[str, list[str]] = getattr(pairs, name)
        texts = [text for found in listed.values() for text in found]
        words = tagged(texts)
        owner = [number for number, found in enumerate(listed.values()) for _ in found]
        if name == "train":  # what is frequent is learned from training captions
            frequent = frequent_words(words)
            if name not in wanted:
                continue
        looks = region_features(encoder, proposer, images, list(listed), folder / f"regions-{name}", progress)
        pictures = Pictures.of(list(listed), looks, encoder.dimension)
        whole = make_captions(encoder, texts, words, owner, None, folder / f"captions-{name}.safetensors", progress)
        by_picture: dict[int, list[list[Any]]] = {}
        for number, found in zip(owner, words, strict=True):
            by_picture.setdefault(number, []).append(found)
        wrong, wrong_owner, changed = pollute_all(by_picture, frequent, POLLUTED[name], seed)
        polluted = make_captions(
            encoder,
            [" ".join(word.text for word in found) for found in wrong],
            wrong,
            wrong_owner,
            changed,
            folder / f"polluted-{name}-{seed}.safetensors",
            progress,
        )
        said = np.zeros((len(texts), 1 + CLUSTERS + 1), bool)
        named = np.zeros_like(said)
        for row, (found, number) in enumerate(zip(words, owner, strict=True)):
            has_name, is_said = mentioned(found, looks[number].regions, things)
            named[row, 1 : 1 + len(has_name)] = has_name
            said[row, 1 : 1 + len(is_said)] = is_said
        made[name] = Split(pictures, whole, polluted, said, named)
    return made


def projection_samples(train: Split, tokens: Vectors) -> Vectors:
    """Vectors of all kinds that the projection has to keep apart, as many of each."""
    kinds = [train.pictures.vectors[:, 0], train.pictures.vectors[:, 1:-1].reshape(-1, tokens.shape[1])]
    kinds += [train.captions.vectors, tokens]
    return np.concatenate([unit(kind[:: max(1, len(kind) // 4000)]).astype(np.float32) for kind in kinds])


def train_infometic(
    images: Path,
    captions: Path,
    more_captions: Sequence[Path],
    output: Path,
    config: InfoMeticConfig,
    *,
    encoder: str = "embedded",
    regions: str = "detector",
    features: Path | None = None,
    progress: Progress,
) -> dict[str, Any]:
    """Train and write `infometic.safetensors`; an interrupted run goes on where it was."""
    loaded = load_encoder(encoder)
    output.mkdir(parents=True, exist_ok=True)
    folder = features or output / "features"
    folder.mkdir(parents=True, exist_ok=True)
    splits = load_splits(loaded, images, captions, more_captions, regions, folder, progress, seed=config.seed)
    about = {"encoder": loaded.identity, "regions": make_proposer(regions).name, **asdict(config)}
    run = TrainingRun(output, about)
    groups = [group for split in splits.values() for group in (split.captions, split.polluted)]
    tokens, rows = lone_tokens(loaded, *groups)
    narrow = config.width < loaded.dimension
    projection = principal_projection(projection_samples(splits["train"], tokens), config.width) if narrow else None
    fusion = new_fusion(projection, config.width if narrow else loaded.dimension, config, loaded.scale)
    sides: dict[str, SplitTensors] = {}
    for place, (name, split) in enumerate(splits.items()):
        plain, wrong = rows[2 * place : 2 * place + 2]
        sides[name] = make_split_tensors(
            split.pictures,
            split.captions,
            plain,
            split.polluted,
            wrong,
            split.mentioned,
            fusion,
            config,
        )
    reached = train_fusion(fusion, tokens, sides["train"], sides["val"], config, loaded.scale, run, progress)
    path = output / "infometic.safetensors"
    write_weights(fusion, path, {"kind": "infometic", **about, "reached": reached})
    return {"weights": str(path), **reached}
