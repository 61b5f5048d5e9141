"""CLIP's ResNet backbones, through open_clip where it is installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.core.errors import InputError, MissingData
from caplens.core.optional import require
from caplens.core.types import Vectors
from caplens.encoders.base import Encoder, TokenVectors
from caplens.encoders.clip import MEAN, PROMPT, STD, centre_crop
from caplens.encoders.clip_layouts import read_state
from caplens.encoders.clip_tokens import ClipTokenizer
from caplens.encoders.devices import CPU, Placement, to_array
from caplens.storage import weights

if TYPE_CHECKING:
    from PIL.Image import Image


class ResNetEncoder(Encoder):
    """An open_clip model with a ResNet image tower."""

    prompt = PROMPT

    def __init__(self, model: Any, name: str, weights_hash: str, place: Placement = CPU) -> None:
        self.place = place
        self._model = place.put(model)
        self.name, self.weights_hash = name, weights_hash
        self.dimension = int(model.text_projection.shape[1])
        self.context_length = int(model.positional_embedding.shape[0])
        self._tokenizer = ClipTokenizer.published(self.context_length)
        self.tokenizer_hash = self._tokenizer.fingerprint
        self.size = int(np.max(model.visual.image_size))
        self.preprocessing = f"bicubic-centre-{self.size}"

    def pixels(self, image: Image) -> Vectors:
        return centre_crop(image, self.size, MEAN, STD)

    def image_features(self, batch: Vectors) -> Vectors:
        """The vectors themselves: the tower ends in a pooling that projects as it goes."""
        import torch

        with torch.inference_mode():
            return to_array(self._model.encode_image(self.place.tensor(batch)))

    def project_images(self, features: Vectors) -> Vectors:
        return features

    def tokenize(self, text: str) -> tuple[list[int], bool]:
        return self._tokenizer(text)

    def encode_ids(self, batch: Sequence[Sequence[int]]) -> list[TokenVectors]:
        import torch

        model = self._model
        length = self.context_length  # open_clip's mask is made for the full length
        padded = self.place.tensor([[*ids, *[0] * (length - len(ids))] for ids in batch])
        with torch.inference_mode():
            states = model.token_embedding(padded) + model.positional_embedding
            states = model.transformer(states, attn_mask=model.attn_mask)
            rows = to_array(model.ln_final(states) @ model.text_projection)
        return [
            TokenVectors(tuple(ids), row[: len(ids)].copy(), row[len(ids) - 1].copy())
            for ids, row in zip(batch, rows, strict=True)
        ]

    def caption_features(self, batch: Sequence[Sequence[int]]) -> Vectors:
        return np.stack([text.whole for text in self.encode_ids(batch)])

    def project_texts(self, features: Vectors) -> Vectors:
        return features


def load_resnet(
    backbone: str, source: str | os.PathLike[str] | None, *, allow_pickle: bool, place: Placement = CPU
) -> ResNetEncoder:
    """A ResNet CLIP from a weight file."""
    if source is None:
        raise MissingData(f"{backbone} is not on the hub in safetensors: pass weights=FILE with its weights")
    create_model = require("open_clip:create_model", purpose=backbone)
    path: Path = weights.require(source, purpose=backbone)
    model = create_model(f"{backbone}-quickgelu", pretrained=None)
    state = read_state(path, allow_pickle=allow_pickle)
    try:
        model.load_state_dict({key: value for key, value in state.items() if key in model.state_dict()})
    except RuntimeError as error:
        raise InputError(f"the weights do not fit {backbone} ({error})", where=os.fspath(path)) from None
    return ResNetEncoder(model, f"clip-{backbone}:{path.stem}", weights.digest(path)[:12], place)
