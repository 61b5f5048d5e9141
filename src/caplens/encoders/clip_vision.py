"""CLIP's own image tower, ViT-B/16, without torch: class token, patches and projection.

A. Radford et al. Learning transferable visual models from natural language supervision. ICML 2021.

The weights are the published ones, kept in 8 bits by the package that carries them. They are computed with in float
(`encoders.onnx_graph`), so numbers are the same on every processor; or in 8 bits where that does not overflow, which is
quicker and a little off. CLIP's text tower is in no package: see `encoders.clip` for both towers from the hub.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from caplens.core.errors import MissingData
from caplens.core.optional import check
from caplens.core.types import Vectors
from caplens.encoders.clip import MEAN, STD
from caplens.encoders.devices import CPU, Placement
from caplens.encoders.onnx import exact_products, run_one_by_one, session
from caplens.encoders.onnx_graph import EVERY
from caplens.storage import weights
from caplens.storage.tensors import read_tensors, write_tensors
from caplens.vision.images import scaled

if TYPE_CHECKING:
    from PIL.Image import Image

WEIGHTS = "clip-vit-b-16-vision"
SIZE = 224
SIDE = 14
"""Patches a side."""
PROJECTED, STATES = "image_embeds", "onnx::Gather_1524"
FLOAT_IN_INT8 = r"/layers\.(0|11)/self_attn/[qkv]_proj/|/layers\.[0-5]/mlp/fc1/|/layers\.[567]/mlp/fc2/"
"""The 15 of 73 products that lose most in 8 bits: they stay in float."""


class ClipVision:
    """The image tower of CLIP ViT-B/16; with `int8`, most of its products in 8 bits.

    With `keep`, what it gives of a picture is kept in that folder, a file of 300 kB each in half precision: trainings
    that need its vectors, its patches and its regions look at each picture once.
    """

    def __init__(self, place: Placement = CPU, keep: Path | None = None, *, int8: bool = False) -> None:
        check("onnxruntime", purpose="CLIP's image tower")
        path = weights.require(WEIGHTS, purpose="CLIP's image tower")
        if int8 and not exact_products(place):
            raise MissingData(
                "embedded-strong-int8 needs a processor whose 8-bit products are exact, and those of this one overflow "
                "(it has no VNNI): use embedded-strong, which computes in float"
            )
        self._int8 = int8
        self._session = session(path, in_float=FLOAT_IN_INT8 if int8 else EVERY, place=place)
        self._keep = keep and keep / self.identity.replace("@", "-")

    @property
    def identity(self) -> str:
        """What its outputs depend on: the weights, and which products are in 8 bits."""
        (file,) = weights.models()[WEIGHTS].files.values()
        if not self._int8:
            return f"{WEIGHTS}@{file.sha256[:12]}"
        return f"{WEIGHTS}-int8@{hashlib.sha256(f'{file.sha256} {FLOAT_IN_INT8}'.encode()).hexdigest()[:12]}"

    def pixels(self, image: Image) -> Vectors:
        """Return the whole picture, squeezed to a square: a caption may be about its edge."""
        from PIL import Image as Pillow

        return scaled(image.convert("RGB").resize((SIZE, SIZE), Pillow.Resampling.BICUBIC), MEAN, STD)

    def encode(self, batch: Vectors) -> tuple[Vectors, Vectors, Vectors]:
        """Return of every picture its vector in CLIP's joint space (512), its class token (768), and its patches.

        Patches come as (pictures, 14, 14, 768), top row first; class token and patches before the final norm.
        """
        projected, states = self._run(batch) if self._keep is None else self._read_or_run(batch, self._keep)
        return projected, states[:, 0], np.reshape(states[:, 1:], (len(batch), SIDE, SIDE, -1))

    def _run(self, batch: Vectors) -> tuple[Vectors, Vectors]:
        if self._int8:
            projected, states = run_one_by_one(self._session, [PROJECTED, STATES], "pixel_values", batch)
        else:
            projected, states = self._session.run([PROJECTED, STATES], {"pixel_values": batch})
        return projected, states

    def _read_or_run(self, batch: Vectors, folder: Path) -> tuple[Vectors, Vectors]:
        paths = [folder / f"{hashlib.sha256(pixels.tobytes()).hexdigest()[:32]}.safetensors" for pixels in batch]
        if unknown := [row for row, path in enumerate(paths) if not path.is_file()]:
            for row, projected, states in zip(unknown, *self._run(batch[unknown]), strict=True):
                kept = {"projected": projected.astype(np.float16), "states": states.astype(np.float16)}
                write_tensors(paths[row], kept, {})
        read = [read_tensors(path, "what CLIP's image tower gives of a picture")[0] for path in paths]
        projected, states = (np.stack([one[name] for one in read]) for name in ("projected", "states"))
        return projected.astype(np.float32), states.astype(np.float32)
