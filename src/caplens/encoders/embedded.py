"""caplens's own image-text encoder: works offline, without torch, from weights that install as packages.

Frozen: DINOv2 ViT-S/14 (class token and mean patch) and TinyViT-5M (mean patch) for pictures, all-MiniLM-L6-v2 for
texts. Trained by `caplens train encoder`: two heads that bring both into one space. It is not CLIP, knows only the kind
of pictures and captions in Flickr8k, and says its own name in every signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError, MissingData
from caplens.core.layers import gelu, product
from caplens.core.optional import check
from caplens.core.types import Vectors, narrow_unit
from caplens.encoders.base import Encoder, TokenVectors, pool_grid
from caplens.encoders.devices import CPU, Placement
from caplens.encoders.roi_pooling import pool_boxes
from caplens.storage import weights
from caplens.storage.tensors import read_tensors
from caplens.vision.images import scaled

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from PIL.Image import Image

SIZE = 224
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
BACKBONES = {"dinov2-vits14": "/norm/Add_1_output_0", "tinyvit-5m": "/head/norm/Transpose_output_0"}
"""Image backbones and the inner tensor that is read: tokens after the last norm; the pooled map before its norm."""
GRID = "dinov2-vits14"
"""The backbone whose patches make a grid."""
SECOND_MAP = "/stages/stages.3/Transpose_1_output_0"
"""What the second backbone sees where, before it takes the mean: (pictures, 320, 7, 7)."""
REGION_GRID = 8
"""Patches are averaged to so many cells a side before they are read under boxes."""
TEXT = "all-MiniLM-L6-v2"
SHIPPED = ("contrastive", "pac")
"""Heads that come with caplens."""


@dataclass(frozen=True)
class Head:
    """x ↦ A x̂ + C gelu(B x̂), where x̂ is x, standardised: a linear map and a small network beside it."""

    shift: Vectors
    scale: Vectors
    tensors: Mapping[str, Vectors]

    @property
    def dimension(self) -> int:
        return len(self.tensors["linear.bias"])

    def __call__(self, features: Vectors) -> Vectors:
        # In pieces: the hidden layer of a hundred thousand texts would fill a gigabyte.
        return np.concatenate([self._map(features[start : start + 4096]) for start in range(0, len(features), 4096)])

    def _map(self, features: Vectors) -> Vectors:
        x = (features - self.shift) * self.scale
        hidden = gelu(product(x, self.tensors["up.weight"].T) + self.tensors["up.bias"])
        straight = product(x, self.tensors["linear.weight"].T) + self.tensors["linear.bias"]
        return np.asarray(
            straight + product(hidden, self.tensors["down.weight"].T) + self.tensors["down.bias"], np.float32
        )


def read_heads(path: Path) -> tuple[Head, Head, str]:
    """Image head, text head and the name they were trained under."""
    tensors, about = read_tensors(path, "heads of the embedded encoder")
    arrays = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
    values = json.loads(about.get("caplens", "{}"))
    if values.get("kind") != "embedded heads":
        raise InputError(
            "holds no heads of the embedded encoder", where=str(path), remedy="`caplens train encoder` makes them"
        )

    def head(side: str) -> Head:
        tensors = {name.removeprefix(f"{side}."): array for name, array in arrays.items() if name.startswith(side)}
        return Head(tensors.pop("shift"), tensors.pop("scale"), tensors)

    return head("image"), head("text"), str(values["name"])


class EmbeddedEncoder(Encoder):
    """Frozen backbones and trained heads."""

    scale = 23.86
    usual_batch = 4  # larger batches fall out of the cache and are slower

    def __init__(self, image: Head, text: Head, name: str, weights_hash: str, backbones: Backbones) -> None:
        self._image, self._text, self._backbones = image, text, backbones
        self.name, self.weights_hash = f"embedded-{name}", weights_hash
        self.dimension = image.dimension
        self.context_length = backbones.context_length
        self.place = backbones.place
        self.preprocessing = backbones.preprocessing

    def pixels(self, image: Image) -> Vectors:
        return self._backbones.pixels(image)

    @property
    def tower_identity(self) -> str:
        """All heads stand on the same towers."""
        return self._backbones.tower_identity

    def image_features(self, batch: Vectors) -> Vectors:
        return self._backbones.image_features(batch)

    def project_images(self, features: Vectors) -> Vectors:
        return self._image(features)

    @property
    def grid_identity(self) -> str:
        """Grids come from a frozen backbone: other heads do not change them."""
        return f"{GRID}@{self._backbones.grid_sum[:12]}"

    def encode_grid(self, batch: Vectors, side: int) -> Vectors:
        return pool_grid(self._backbones.patches(batch), side)

    def encode_regions(self, image: Image, boxes: NDArray[np.floating]) -> Vectors:
        """One pass for all: a part's features are means of the backbones' patches under its box."""
        return self._image(self._backbones.region_features(self.pixels(image), boxes))

    def tokenize(self, text: str) -> tuple[list[int], bool]:
        return self._backbones.tokenize(text)

    def encode_ids(self, batch: Sequence[Sequence[int]]) -> list[TokenVectors]:
        encoded = []
        for ids, states in zip(batch, self._backbones.text_states(batch), strict=True):
            whole = self._text(text_features(states.mean(axis=0, keepdims=True)))[0]
            encoded.append(TokenVectors(tuple(ids), self._text(text_features(states)), whole))
        return encoded

    def caption_features(self, batch: Sequence[Sequence[int]]) -> Vectors:
        return self._backbones.caption_features(batch)

    def project_texts(self, features: Vectors) -> Vectors:
        return self._text(features)


class Backbones:
    """The frozen parts, loaded when first needed; with `int8`, the larger image backbone in 8-bit numbers."""

    preprocessing = f"bicubic-whole-{SIZE}"

    def __init__(self, *, int8: bool = False, place: Placement = CPU) -> None:
        from caplens.encoders.bert import BertEncoder
        from caplens.encoders.onnx import quantized

        check("onnxruntime", "tokenizers", purpose="the embedded encoder")
        weights.check(*BACKBONES, TEXT, purpose="the embedded encoder")
        self._paths = {name: weights.require(name) for name in BACKBONES}
        self.sums = "".join(file.sha256 for key in (*BACKBONES, TEXT) for file in weights.models()[key].files.values())
        (file,) = weights.models()[GRID].files.values()
        self.grid_sum = file.sha256
        if int8:  # the smaller one would lose more than it gains
            self._paths[GRID] = quantized(self._paths[GRID])
            self.grid_sum = weights.digest(self._paths[GRID])
            self.sums += self.grid_sum
        self.place = place
        self._bert = BertEncoder(weights.require(TEXT))
        self._sessions: dict[str, InferenceSession] = {}
        self.context_length = self._bert.longest

    @property
    def tower_identity(self) -> str:
        """What features depend on."""
        return f"embedded@{hashlib.sha256(self.sums.encode()).hexdigest()[:12]}"

    def pixels(self, image: Image) -> Vectors:
        """The whole picture, squeezed to a square: a caption may be about its edge."""
        from PIL import Image as Pillow

        return scaled(image.resize((SIZE, SIZE), Pillow.Resampling.BICUBIC), MEAN, STD)

    def image_features(self, batch: Vectors) -> Vectors:
        """Class token, mean patch and mean patch of the second backbone, side by side."""
        if len(batch) == 1:  # a picture alone would take another way through the products than one among several
            return self.image_features(np.repeat(batch, 2, axis=0))[:1]
        tokens = self._run(GRID, batch)
        second = self._run("tinyvit-5m", batch).reshape(len(batch), -1)
        return np.concatenate([tokens[:, 0], tokens[:, 1:].mean(axis=1), second], axis=1)

    def patches(self, batch: Vectors) -> Vectors:
        """Every patch of the first backbone, row by row: (pictures, 256, 384)."""
        if len(batch) == 1:
            return self.patches(np.repeat(batch, 2, axis=0))[:1]
        return self._run(GRID, batch)[:, 1:]

    def region_features(self, pixels: Vectors, boxes: NDArray[np.floating]) -> Vectors:
        """Features of the whole picture and of the part under each box.

        A part has no class token of its own; the mean of its patches takes that place too.
        """
        tokens = self._run(GRID, pixels[None])[0]
        second = self._run("tinyvit-5m", pixels[None], SECOND_MAP)[0].transpose(1, 2, 0)
        patches = pool_grid(tokens[None, 1:], REGION_GRID)[0]
        mean, second_mean = pool_boxes(patches, boxes), pool_boxes(second, boxes)
        whole = np.concatenate([tokens[0], tokens[1:].mean(axis=0), second.mean(axis=(0, 1))])
        return np.concatenate([whole[None], np.concatenate([mean, mean, second_mean], axis=1)])

    def _run(self, name: str, batch: Vectors, tensor: str = "") -> Vectors:
        from caplens.encoders.onnx import session

        tensor = tensor or BACKBONES[name]
        if tensor not in self._sessions:
            self._sessions[tensor] = session(self._paths[name], tensor, place=self.place)
        output: Vectors = self._sessions[tensor].run([tensor], {"input": batch})[0]
        return output

    def tokenize(self, text: str) -> tuple[list[int], bool]:
        """Ids with start and end token, and whether the text was cut."""
        return self._bert.tokenize_one(text.encode("utf-8", "replace").decode("utf-8"))  # a lone surrogate has no bytes

    def caption_features(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """What the text head is given of every text."""
        return text_features(np.stack([states.mean(axis=0) for states in self.text_states(batch)]))

    def text_states(self, batch: Sequence[Sequence[int]]) -> list[Vectors]:
        """Token states of every text; texts of one length share a pass, so company changes nothing."""
        states_of: list[Vectors] = [np.empty(0, np.float32)] * len(batch)
        for rows, ids in self._bert.batches([list(ids) for ids in batch]):
            for row, states in zip(rows, self._bert.states(ids), strict=True):
                states_of[row] = states
        return states_of


def text_features(states: Vectors) -> Vectors:
    """States scaled to one length, so that a single token and the mean of many meet the head alike."""
    return narrow_unit(states)


def heads_path(heads: str) -> Path:
    """The file of shipped heads (`contrastive`, `pac`), or the user's own."""
    path = weights.shipped(f"embedded-{heads}") if heads in SHIPPED else Path(heads)
    if not path.is_file():
        raise MissingData(
            f"there are no heads {heads!r}: give a file of `caplens train`, or one of: {', '.join(SHIPPED)}"
        )
    return path


def load_embedded(heads: str = "contrastive", *, int8: bool = False, place: Placement = CPU) -> EmbeddedEncoder:
    """The encoder with shipped heads or with those in a file."""
    path = heads_path(heads)
    image, text, name = read_heads(path)
    backbones = Backbones(int8=int8, place=place)
    digest = hashlib.sha256(f"{weights.digest(path)} {backbones.sums}".encode()).hexdigest()[:12]
    return EmbeddedEncoder(image, text, f"{name}-int8" if int8 else name, digest, backbones)
