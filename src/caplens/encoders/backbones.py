"""The frozen parts of the embedded encoder: published towers that turn pictures and texts into features.

Two editions share the text tower, all-MiniLM-L6-v2. The first, `embedded`, looks through DINOv2 ViT-S/14 and
TinyViT-5M; `embedded-strong` looks through CLIP's own image tower, ViT-B/16.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from caplens.core.optional import check
from caplens.core.types import Vectors, narrow_unit
from caplens.encoders.base import pool_grid
from caplens.encoders.bert import BertEncoder
from caplens.encoders.clip_vision import ClipVision
from caplens.encoders.devices import CPU, Placement
from caplens.encoders.roi_pooling import pool_boxes
from caplens.storage import weights
from caplens.storage.identity import Identity
from caplens.vision.images import scaled

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from PIL.Image import Image

TEXT = "all-MiniLM-L6-v2"


class Backbones(ABC):
    """One edition's towers. Low-rank `additions` change the upper layers of its text tower (`encoders.bert`).

    With `int8`, the larger image tower computes in 8-bit numbers. A large one keeps what it gives of pictures in the
    folder `keep`, where that is given.
    """

    edition: ClassVar[str]
    pictures: ClassVar[tuple[str, ...]]
    """The weights of its image towers."""
    preprocessing: ClassVar[str]

    def __init__(
        self,
        *,
        int8: bool = False,
        place: Placement = CPU,
        additions: Mapping[str, Vectors] | None = None,
        keep: Path | None = None,
    ) -> None:
        check("onnxruntime", "tokenizers", purpose="the embedded encoder")
        needed = (*self.pictures, TEXT)
        weights.check(*needed, purpose=f"the encoder {self.edition}")
        self.sums = "".join(file.sha256 for key in needed for file in weights.models()[key].files.values())
        if additions:
            self.sums += Identity.of(additions).digest
        self.place = place
        self.bert = BertEncoder(weights.require(TEXT), additions)
        self.context_length = self.bert.longest
        self._open_towers(int8, keep)

    @abstractmethod
    def _open_towers(self, int8: bool, keep: Path | None) -> None:
        """Get the image towers ready; what makes their numbers others is added to `sums`."""

    @property
    def tower_identity(self) -> str:
        """What features depend on."""
        return f"{self.edition}@{hashlib.sha256(self.sums.encode()).hexdigest()[:12]}"

    @property
    @abstractmethod
    def grid_identity(self) -> str:
        """What patches depend on: no head changes them."""

    @abstractmethod
    def pixels(self, image: Image) -> Vectors:
        """The whole picture, squeezed to a square: a caption may be about its edge."""

    @abstractmethod
    def image_features(self, batch: Vectors) -> Vectors:
        """What the image head is given of every picture."""

    @abstractmethod
    def patches(self, batch: Vectors) -> Vectors:
        """Every patch, row by row: (pictures, patches, width)."""

    @abstractmethod
    def region_features(self, pixels: Vectors, boxes: NDArray[np.floating]) -> Vectors:
        """What the image head is given of the whole picture, and of the part under each box, from one pass."""

    def tokenize(self, text: str) -> tuple[list[int], bool]:
        """Ids with start and end token, and whether the text was cut."""
        return self.bert.tokenize_one(text.encode("utf-8", "replace").decode("utf-8"))  # a lone surrogate has no bytes

    def caption_features(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """What the text head is given of every text."""
        return text_features(np.stack([states.mean(axis=0) for states in self.text_states(batch)]))

    def text_states(self, batch: Sequence[Sequence[int]], layer: int | None = None) -> list[Vectors]:
        """Token states of every text."""
        return self.bert.states(batch, layer)


def text_features(states: Vectors) -> Vectors:
    """States scaled to one length, so that a single token and the mean of many meet the head alike."""
    return narrow_unit(states)


class SmallBackbones(Backbones):
    """DINOv2 ViT-S/14 and TinyViT-5M, loaded when first needed; with `int8`, the larger one in 8-bit numbers."""

    edition = "embedded"
    pictures = ("dinov2-vits14", "tinyvit-5m")
    size: ClassVar[int] = 224
    preprocessing = f"bicubic-whole-{size}"
    mean: ClassVar[Vectors] = np.array([0.485, 0.456, 0.406], np.float32)
    std: ClassVar[Vectors] = np.array([0.229, 0.224, 0.225], np.float32)
    TOKENS: ClassVar[str] = "/norm/Add_1_output_0"
    """DINOv2's tokens after the last norm."""
    POOLED: ClassVar[str] = "/head/norm/Transpose_output_0"
    """TinyViT's mean patch before its norm."""
    MAP: ClassVar[str] = "/stages/stages.3/Transpose_1_output_0"
    """What TinyViT sees where, before it takes the mean: (pictures, 320, 7, 7)."""
    REGION_GRID: ClassVar[int] = 8
    """Patches are averaged to so many cells a side before they are read under boxes."""

    def _open_towers(self, int8: bool, keep: Path | None) -> None:
        from caplens.encoders.onnx import quantized

        dino, tiny = (weights.require(name) for name in self.pictures)
        (file,) = weights.models()[self.pictures[0]].files.values()
        self._grid_sum = file.sha256
        self._int8 = int8
        if int8:  # the smaller one would lose more than it gains
            dino = quantized(dino)
            self._grid_sum = hashlib.sha256(f"{weights.digest(dino)} one by one".encode()).hexdigest()
            self.sums += self._grid_sum
        self._paths = {self.TOKENS: dino, self.POOLED: tiny, self.MAP: tiny}
        self._sessions: dict[str, InferenceSession] = {}

    @property
    def grid_identity(self) -> str:
        return f"{self.pictures[0]}@{self._grid_sum[:12]}"

    def pixels(self, image: Image) -> Vectors:
        from PIL import Image as Pillow

        return scaled(image.resize((self.size, self.size), Pillow.Resampling.BICUBIC), self.mean, self.std)

    def image_features(self, batch: Vectors) -> Vectors:
        """Class token, mean patch and mean patch of the second tower, side by side."""
        if len(batch) == 1:  # a picture alone would take another way through the products than one among several
            return self.image_features(np.repeat(batch, 2, axis=0))[:1]
        tokens, second = self._run(self.TOKENS, batch), self._run(self.POOLED, batch).reshape(len(batch), -1)
        return np.concatenate([tokens[:, 0], tokens[:, 1:].mean(axis=1), second], axis=1)

    def patches(self, batch: Vectors) -> Vectors:
        """DINOv2's patches: (pictures, 256, 384)."""
        if len(batch) == 1:
            return self.patches(np.repeat(batch, 2, axis=0))[:1]
        return self._run(self.TOKENS, batch)[:, 1:]

    def region_features(self, pixels: Vectors, boxes: NDArray[np.floating]) -> Vectors:
        """Features of the whole picture and of the part under each box.

        A part has no class token of its own; the mean of its patches takes that place too.
        """
        tokens = self._run(self.TOKENS, pixels[None])[0]
        second = self._run(self.MAP, pixels[None])[0].transpose(1, 2, 0)
        patches = pool_grid(tokens[None, 1:], self.REGION_GRID)[0]
        mean, second_mean = pool_boxes(patches, boxes), pool_boxes(second, boxes)
        whole = np.concatenate([tokens[0], tokens[1:].mean(axis=0), second.mean(axis=(0, 1))])
        return np.concatenate([whole[None], np.concatenate([mean, mean, second_mean], axis=1)])

    def _run(self, tensor: str, batch: Vectors) -> Vectors:
        from caplens.encoders.onnx import run_one_by_one, session

        if tensor not in self._sessions:
            self._sessions[tensor] = session(self._paths[tensor], tensor, place=self.place)
        if self._int8 and tensor == self.TOKENS:
            return run_one_by_one(self._sessions[tensor], [tensor], "input", batch)[0]
        output: Vectors = self._sessions[tensor].run([tensor], {"input": batch})[0]
        return output


class ClipBackbones(Backbones):
    """CLIP's image tower, ViT-B/16."""

    edition = "embedded-strong"
    pictures = ("clip-vit-b-16-vision",)
    preprocessing = "clip-whole-224"

    def _open_towers(self, int8: bool, keep: Path | None) -> None:
        self._tower = ClipVision(self.place, keep, int8=int8)
        if int8:
            self.sums += self._tower.identity

    @property
    def grid_identity(self) -> str:
        return self._tower.identity.replace("@", "+whole@")  # cells hold more than the tower's patches

    def pixels(self, image: Image) -> Vectors:
        return self._tower.pixels(image)

    def image_features(self, batch: Vectors) -> Vectors:
        """CLIP's own vector of unit length, its class token, and the mean of its patches, each standardized."""
        projected, token, patches = self._tower.encode(batch)
        return np.concatenate([narrow_unit(projected), token, standardized(patches).mean(axis=(1, 2))], axis=1)

    def patches(self, batch: Vectors) -> Vectors:
        """CLIP's patches, standardized, each beside CLIP's vector of the whole picture: (pictures, 196, 1280).

        A patch says what is where, and the vector, which was trained with captions, what the picture is about.
        """
        projected, _, patches = self._tower.encode(batch)
        seen = standardized(patches).reshape(len(batch), -1, patches.shape[-1])
        whole = narrow_unit(projected) * projected.shape[1] ** 0.5  # as large as a patch
        return np.concatenate([seen, np.repeat(whole[:, None], seen.shape[1], axis=1)], axis=2)

    def region_features(self, pixels: Vectors, boxes: NDArray[np.floating]) -> Vectors:
        """A part keeps the vector and the class token of the whole; the mean of patches is that of its own."""
        projected, token, patches = self._tower.encode(pixels[None])
        seen = standardized(patches)[0]
        means = np.concatenate([seen.mean(axis=(0, 1))[None], pool_boxes(seen, boxes)])
        whole = np.concatenate([narrow_unit(projected), token], axis=1)
        return np.concatenate([np.repeat(whole, len(means), axis=0), means], axis=1)


def standardized(patches: Vectors) -> Vectors:
    """Every patch with mean 0 and variance 1, so that none outshouts the others."""
    centered = patches - patches.mean(axis=-1, keepdims=True)
    scaled_patches: Vectors = centered / centered.std(axis=-1, keepdims=True)
    return scaled_patches
