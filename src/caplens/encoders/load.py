"""From what a user writes to an encoder: `embedded`, a CLIP backbone, a path, or the best that is here."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from caplens.core.errors import InputError
from caplens.core.optional import check
from caplens.encoders.base import Encoder
from caplens.encoders.clip import BACKBONES, RESNETS, load_clip
from caplens.encoders.devices import Placement, check_device, place_onnx, place_torch
from caplens.encoders.embedded import EDITIONS, load_embedded
from caplens.storage import weights

CHOICES = ("auto", *EDITIONS, *(f"{edition}-int8" for edition in EDITIONS), *BACKBONES, *RESNETS)


def load_encoder(
    encoder: str | Encoder = "auto",
    source: str | os.PathLike[str] | None = None,
    *,
    heads: str = "contrastive",
    allow_pickle: bool = False,
    device: str = "auto",
    dtype: str = "float32",
    batch_size: int | None = None,
    keep: Path | None = None,
) -> Encoder:
    """An encoder by name.

    Args:
        encoder: ``embedded`` (caplens's own), ``embedded-strong`` (slower, sees more), either with ``-int8`` behind it
            (quicker, a little off; the strong one where 8-bit products are exact), a CLIP backbone such as
            ``ViT-B-32``, an `Encoder`, or ``auto``: CLIP ViT-B/32 where its weights are on this machine (or `source`
            gives some), else ``embedded``.
        source: weights for the encoder: a path, a name of `caplens weights`, a hub name.
        heads: which of the embedded encoder's shipped projections: ``contrastive``, or ``pac`` for PAC-S.
        allow_pickle: read pickled weight files, with weights_only.
        device: where it computes: cpu, cuda, cuda:1, mps; auto is a GPU where there is one.
        dtype: float32, bfloat16 or float16; the embedded encoder has float32 only.
        batch_size: pictures at a time.
        keep: a folder where a large image tower keeps what it gives of pictures, for trainings.
    """
    check_device(device, dtype, batch_size)
    if isinstance(encoder, Encoder):
        return encoder
    if encoder == "auto":
        encoder = automatic(source, heads)
    path = None if source is None else os.fspath(source)
    embedded = encoder.startswith("embedded") or encoder not in (*BACKBONES, *RESNETS)
    if encoder in BACKBONES:
        check("torch", "transformers", "tokenizers", "ftfy", purpose="CLIP")
    place = (place_onnx if embedded else place_torch)(device, dtype, batch_size)
    return _load(encoder, path, "" if path is None else weights.model_digest(path), heads, allow_pickle, place, keep)


def automatic(source: str | os.PathLike[str] | None = None, heads: str = "contrastive") -> str:
    """What ``auto`` stands for here and now. Only published weights that are already on this machine count."""
    if source is not None:
        return "ViT-B-32"
    if heads == "contrastive" and weights.find_published(BACKBONES["ViT-B-32"].hub) is not None:
        return "ViT-B-32"
    return "embedded"


@functools.lru_cache(maxsize=4)
def _load(
    encoder: str, source: str | None, _: str, heads: str, allow_pickle: bool, place: Placement, keep: Path | None
) -> Encoder:
    """The encoder, read again when the content of its weights has changed."""
    edition = encoder.removesuffix("-int8")
    if edition in EDITIONS and encoder in CHOICES:
        return load_embedded(source or heads, edition, int8=encoder != edition, place=place, keep=keep)
    if encoder in BACKBONES or encoder in RESNETS:
        return load_clip(encoder, source, allow_pickle=allow_pickle, place=place)
    raise InputError(f"no encoder is called {encoder!r}", remedy=f"use one of: {', '.join(CHOICES)}")
