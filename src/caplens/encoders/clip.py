"""CLIP through transformers: any ViT backbone, from the hub, a folder or a file in any published layout."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.core.types import Vectors
from caplens.encoders.base import Encoder, TokenVectors, pool_grid
from caplens.encoders.clip_layouts import State, read_state, to_hub
from caplens.encoders.clip_tokens import ClipTokenizer
from caplens.encoders.devices import CPU, Placement, to_array
from caplens.storage import weights
from caplens.vision.images import scaled

if TYPE_CHECKING:
    from PIL.Image import Image
    from transformers import CLIPModel

MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
STD = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)
PROMPT = "A photo depicts "
"""Before every caption and every reference, in CLIPScore's and PAC-S's code alike."""


@dataclass(frozen=True)
class Backbone:
    """A published CLIP: where the hub has it, and its activation (which weight files do not tell)."""

    hub: str
    activation: str


BACKBONES = {
    "ViT-B-32": Backbone("openai/clip-vit-base-patch32", "quick_gelu"),
    "ViT-B-16": Backbone("openai/clip-vit-base-patch16", "quick_gelu"),
    "ViT-L-14": Backbone("openai/clip-vit-large-patch14", "quick_gelu"),
    "ViT-L-14-336": Backbone("openai/clip-vit-large-patch14-336", "quick_gelu"),
    "ViT-B-32-laion2b": Backbone("laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "gelu"),
    "ViT-L-14-laion2b": Backbone("laion/CLIP-ViT-L-14-laion2B-s32B-b82K", "gelu"),
    "ViT-H-14-laion2b": Backbone("laion/CLIP-ViT-H-14-laion2B-s32B-b79K", "gelu"),
}
RESNETS = ("RN50", "RN101", "RN50x4", "RN50x16", "RN50x64")


class ClipEncoder(Encoder):
    """A CLIP model."""

    prompt = PROMPT

    def __init__(
        self, model: CLIPModel, tokenizer: ClipTokenizer, name: str, weights_hash: str, place: Placement = CPU
    ) -> None:
        self.place = place
        self.model: CLIPModel = place.put(model)
        self._tokenizer = tokenizer
        self.tokenizer_hash = tokenizer.fingerprint
        self.name, self.weights_hash = name, weights_hash
        self.dimension = int(model.config.projection_dim)
        self.context_length = tokenizer.context_length
        self.size = int(model.config.vision_config.image_size)
        self.preprocessing = f"bicubic-centre-{self.size}"

    @property
    def tower_identity(self) -> str:
        return f"{self.identity} {self.tokenizer_hash}"

    def pixels(self, image: Image) -> Vectors:
        return centre_crop(image, self.size, MEAN, STD)

    def image_features(self, batch: Vectors) -> Vectors:
        import torch

        with torch.inference_mode():
            return to_array(self._look(batch).pooler_output)

    def _look(self, batch: Vectors) -> Any:
        return self.model.vision_model(pixel_values=self.place.tensor(batch))

    def project_images(self, features: Vectors) -> Vectors:
        import torch

        with torch.inference_mode():
            return to_array(self.model.visual_projection(self.place.tensor(features)))

    def encode_grid(self, batch: Vectors, side: int) -> Vectors:
        import torch

        with torch.inference_mode():
            return pool_grid(to_array(self._look(batch).last_hidden_state[:, 1:]), side)

    def tokenize(self, text: str) -> tuple[list[int], bool]:
        return self._tokenizer(text)

    def _hidden(self, batch: Sequence[Sequence[int]]) -> Any:
        """Text states after the last layer norm. Attention is causal: what pads the end changes nothing before it."""
        longest = max(len(ids) for ids in batch)
        padded = self.place.tensor([[*ids, *[0] * (longest - len(ids))] for ids in batch])
        return self.model.text_model(input_ids=padded).last_hidden_state

    def encode_ids(self, batch: Sequence[Sequence[int]]) -> list[TokenVectors]:
        import torch

        with torch.inference_mode():
            projected = to_array(self.model.text_projection(self._hidden(batch)))
        return [
            TokenVectors(tuple(ids), rows[: len(ids)].copy(), rows[len(ids) - 1].copy())
            for ids, rows in zip(batch, projected, strict=True)
        ]

    def caption_features(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """The state of the end token."""
        import torch

        with torch.inference_mode():
            return to_array(self._ends(batch))

    def _ends(self, batch: Sequence[Sequence[int]]) -> Any:
        hidden = self._hidden(batch)
        return hidden[range(len(batch)), self.place.tensor([len(ids) - 1 for ids in batch])]

    def project_texts(self, features: Vectors) -> Vectors:
        import torch

        with torch.inference_mode():
            return to_array(self.model.text_projection(self.place.tensor(features)))


def centre_crop(image: Image, size: int, mean: Vectors, std: Vectors) -> Vectors:
    """Bicubic to `size` on the short side, the centre square, normalized: CLIP's own transform."""
    from PIL import Image as Pillow

    width, height = image.size
    if max(width, height) > 16 * min(width, height):
        # Resizing a ribbon whole would need gigabytes; its centre is all that is kept anyway.
        long = 16 * min(width, height)
        left, top = max(0, (width - long) // 2), max(0, (height - long) // 2)
        image = image.crop((left, top, min(width, left + long), min(height, top + long)))
        width, height = image.size
    if width <= height:
        width, height = size, int(size * height / width)
    else:
        width, height = int(size * width / height), size
    image = image.resize((width, height), Pillow.Resampling.BICUBIC)
    left, top = round((width - size) / 2.0), round((height - size) / 2.0)
    return scaled(image.crop((left, top, left + size, top + size)), mean, std)


def load_clip(
    backbone: str = "ViT-B-32",
    source: str | os.PathLike[str] | None = None,
    *,
    allow_pickle: bool = False,
    place: Placement = CPU,
) -> Encoder:
    """A CLIP model by name, or with other weights of the same backbone (a PAC-S checkpoint, your own).

    Args:
        backbone: one of `BACKBONES`, or a ResNet of open_clip.
        source: a folder in the hub's layout, a weight file in any layout, or a hub name; without it the backbone's own.
        allow_pickle: read `.pt` and `.pth` files too, with weights_only.
        place: where it computes.
    """
    if backbone in RESNETS:
        from caplens.encoders.clip_resnet import load_resnet

        return load_resnet(backbone, source, allow_pickle=allow_pickle, place=place)
    known = BACKBONES.get(backbone)
    if known is None:
        raise InputError(f"no backbone is called {backbone!r}", remedy=f"known: {', '.join([*BACKBONES, *RESNETS])}")
    require("torch", "transformers:CLIPModel", "tokenizers", "ftfy", purpose="CLIP")
    needed = f"CLIP {backbone}"
    if source is None:
        path = weights.require_published(known.hub, purpose=needed)
    else:
        path = weights.require(source, purpose=needed)
    name = (
        f"clip-{backbone}" if source is None else f"clip-{backbone}:{Path(path).stem if path.is_file() else path.name}"
    )
    if path.is_dir():
        return _from_folder(path, name, place)
    return _from_file(path, name, known.activation, allow_pickle, place)


def _from_folder(folder: Path, name: str, place: Placement) -> ClipEncoder:
    """A folder as transformers saves it: config.json, model.safetensors, tokenizer files."""
    from transformers import CLIPConfig

    config_file = folder / "config.json"
    files = sorted(folder.glob("*.safetensors"))
    if not config_file.is_file() or not files:
        raise InputError("has no config.json with *.safetensors beside it", where=os.fspath(folder))
    state: State = {}
    for file in files:
        state.update(read_state(file))
    config = CLIPConfig(**json.loads(config_file.read_text("utf-8")))
    digest = hashlib.sha256(b"".join(weights.digest(file).encode() for file in files) + config_file.read_bytes())
    length = int(config.text_config.max_position_embeddings)
    tokenizer = ClipTokenizer.from_folder(folder, length)
    return ClipEncoder(build(state, config), tokenizer, name, digest.hexdigest()[:12], place)


def _from_file(path: Path, name: str, activation: str, allow_pickle: bool, place: Placement) -> ClipEncoder:
    """A single weight file; sizes are read off the tensors."""
    state = to_hub(read_state(path, allow_pickle=allow_pickle))
    config = config_of(state, activation)
    digest = hashlib.sha256(f"{weights.digest(path)} {activation}".encode()).hexdigest()[:12]
    length = int(config.text_config.max_position_embeddings)
    return ClipEncoder(build(state, config), ClipTokenizer.published(length), name, digest, place)


def config_of(state: State, activation: str) -> Any:
    """The model's sizes from the shapes of its tensors (hub layout)."""
    from transformers import CLIPConfig

    def layers(tower: str) -> int:
        return len({key.split(".")[3] for key in state if key.startswith(f"{tower}.encoder.layers.")})

    patches = state["vision_model.embeddings.patch_embedding.weight"]
    positions = state["vision_model.embeddings.position_embedding.weight"]
    texts = state["text_model.embeddings.token_embedding.weight"]
    dimension = state["text_projection.weight"].shape[0]

    def tower(prefix: str, width: int) -> dict[str, Any]:
        return {
            "hidden_size": width,
            "intermediate_size": state[f"{prefix}.encoder.layers.0.mlp.fc1.weight"].shape[0],
            "num_hidden_layers": layers(prefix),
            # 64 numbers per head in every CLIP but ViT-H, whose image tower has 80.
            "num_attention_heads": max(1, width // (80 if width == 1280 else 64)),
            "hidden_act": activation,
            "projection_dim": dimension,
        }

    vision = tower("vision_model", patches.shape[0])
    vision |= {
        "patch_size": patches.shape[-1],
        "image_size": round((positions.shape[0] - 1) ** 0.5) * patches.shape[-1],
    }
    text = tower("text_model", texts.shape[1])
    text |= {
        "vocab_size": texts.shape[0],
        "max_position_embeddings": state["text_model.embeddings.position_embedding.weight"].shape[0],
        "bos_token_id": texts.shape[0] - 2,
        "eos_token_id": texts.shape[0] - 1,
        "pad_token_id": 0,
    }
    return CLIPConfig(text_config=text, vision_config=vision, projection_dim=dimension)


def build(state: State, config: Any) -> CLIPModel:
    """A transformers model with exactly these weights: none missing, none left over."""
    import torch
    from transformers import CLIPModel

    state = to_hub(state)
    with torch.device("meta"):
        model = CLIPModel(config)
    model.to_empty(device="cpu")
    for tower in (model.vision_model, model.text_model):  # buffers, which no file holds
        embeddings = tower.embeddings
        embeddings.position_ids = torch.arange(embeddings.position_ids.shape[-1]).unsqueeze(0)
    missing, unexpected = model.load_state_dict({key: value.float() for key, value in state.items()}, strict=False)
    missing = [key for key in missing if not key.endswith("position_ids")]
    if missing or unexpected:
        raise InputError(
            f"the weights do not fit the model: {len(missing)} missing, {len(unexpected)} unknown "
            f"({', '.join([*missing, *unexpected][:3])})"
        )
    return model
