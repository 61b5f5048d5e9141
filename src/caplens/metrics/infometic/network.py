"""InfoMetIC's network: what an image and a caption say about each other, token by token (Hu et al., ACL 2023, §3.1).

The layout is that of the authors' released checkpoint, so its tensors load by name. Two things differ from the printed
paper and follow the released code: one LayerNorm serves the outputs of the intra- and the inter-modal encoders, and the
scoring attention is not divided by √d. A network narrower than its encoder has one tensor more, `projection`: a fixed
affine map (its last row is the shift) of the encoder's unit vectors to the network's width, before everything else.

It runs in numpy; `caplens.training.infometic.network` is the same network in torch, to be trained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caplens.core.layers import attend, check_shapes, layer_norm, linear, product, softmax
from caplens.core.types import Vectors, narrow_unit

MASKED = -1e4
ROWS = 512
"""Of the widest layer at once: more would fall out of the processor's cache."""
Mask = NDArray[np.bool_]


class FusionScores(NamedTuple):
    """Of each pair; `regions` includes the null region as its last column, `words` is zero where no word stands."""

    recall: Vectors
    """Vision recall f^R: scale · cos(v̂_g, v_g)."""
    precision: Vectors
    """Text precision f^P: scale · cos(t̂_g, t_g)."""
    regions: Vectors
    """α^v (eq. 2)."""
    words: Vectors
    """α^t."""


class FusionNetwork:
    """Intra- and inter-modality fusion with fine-grained scoring, from tensors in the released layout."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        arrays = {name: array.astype(np.float32) for name, array in tensors.items() if not name.startswith(_BACKBONE)}
        check_shapes(arrays, _layout(arrays))
        self._norm = arrays["ln.weight"], arrays["ln.bias"]
        self._projection = arrays.get("projection")
        self._boxes = arrays["bbox_position_embedding"]
        self._scale = np.float32(math.exp(arrays["logit_scale"]))
        self._image, self._text, self._fusion = (
            [_Block(arrays, f"{encoder}.{number}.") for number in range(_layers(arrays, encoder))]
            for encoder in _ENCODERS
        )
        # q·Q·(K·x) = (q·Q·Kᵀ)·x: one small product with the query instead of one with every region or word.
        self._region_attention = arrays["img_att_query"] @ arrays["img_att_key"].T
        self._word_attention = arrays["text_att_query"] @ arrays["text_att_key"].T

    @property
    def input_width(self) -> int:
        """The dimension of the encoder it was made for."""
        return len(self._norm[0]) if self._projection is None else len(self._projection) - 1

    def project(self, vectors: Vectors) -> Vectors:
        """Return the encoder's vectors (regions, tokens, whole pictures and captions) as the network takes them."""
        if self._projection is None:
            return vectors
        return linear(narrow_unit(vectors), self._projection[:-1], self._projection[-1])

    def encode_image(self, regions: Vectors, boxes: Vectors) -> Vectors:
        """(images, 1 + regions + 1, width): the whole image first, the null region (zeros) last; boxes in 0..1."""
        return self._run(self._image, regions + boxes @ self._boxes)

    def encode_text(self, tokens: Vectors) -> Vectors:
        """(captions, tokens, width), padding included."""
        return self._run(self._text, tokens)

    def score(
        self,
        image: Vectors,
        text: Vectors,
        image_global: Vectors,
        text_global: Vectors,
        region_mask: Mask,
        word_mask: Mask,
    ) -> FusionScores:
        """Pairs of encoded images and captions, row by row.

        The masks say which of the image's positions are regions (the null counts, the whole image does not) and which
        of the text's positions are words (start, end and padding are not).
        """
        fused = self._run(self._fusion, np.concatenate([image, text], axis=1))
        seen, read = fused[:, : image.shape[1]], fused[:, image.shape[1] :]
        regions = _shares(product(text_global, self._region_attention), seen, region_mask)
        words = _shares(product(image_global, self._word_attention), read, word_mask)
        recall = _cosines((regions[:, None] @ seen)[:, 0], image_global)
        precision = _cosines((words[:, None] @ read)[:, 0], text_global)
        return FusionScores(self._scale * recall, self._scale * precision, regions[:, 1:], words)

    def _run(self, blocks: list[_Block], states: Vectors) -> Vectors:
        """Several blocks, without any attention mask: padding is seen, so texts are always padded to one length."""
        for block in blocks:
            states = block(states)
        return layer_norm(states, *self._norm)


class _Block:
    """A pre-norm transformer block as in CLIP, its arrays laid out for row vectors times matrices."""

    def __init__(self, arrays: Mapping[str, Vectors], prefix: str) -> None:
        def pair(name: str, weight: str = ".weight", bias: str = ".bias") -> tuple[Vectors, Vectors]:
            return arrays[f"{prefix}{name}{weight}"], arrays[f"{prefix}{name}{bias}"]

        def transposed(name: str) -> tuple[Vectors, Vectors]:
            weight, bias = pair(name)
            return weight.T.copy(), bias

        self._norm_1, self._norm_2 = pair("ln_1"), pair("ln_2")
        weight, bias = pair("attn.in_proj", "_weight", "_bias")
        width = len(weight) // 3
        self._heads = heads_of(width)
        scale = np.ones((3 * width, 1), np.float32)
        scale[:width] = (width // self._heads) ** -0.5  # goes into the query once instead of into every score
        self._queries_keys_values = (weight * scale).T.copy(), bias * scale[:, 0]
        self._out, self._up, self._down = (transposed(name) for name in ("attn.out_proj", "mlp.c_fc", "mlp.c_proj"))

    def __call__(self, states: Vectors) -> Vectors:
        batch, length, width = states.shape
        flat = states.reshape(-1, width)
        mixed = linear(layer_norm(flat, *self._norm_1), *self._queries_keys_values)
        heads = mixed.reshape(batch, length, 3, self._heads, -1).transpose(2, 0, 3, 1, 4)
        flat = flat + linear(attend(*heads).reshape(-1, width), *self._out)
        for start in range(0, len(flat), ROWS):
            rows = flat[start : start + ROWS]
            rows += linear(_quick_gelu(linear(layer_norm(rows, *self._norm_2), *self._up)), *self._down)
        return flat.reshape(states.shape)


def _quick_gelu(values: Vectors) -> Vectors:
    """CLIP's approximation of GELU, x / (1 + e^(−1.702 x)), in place."""
    with np.errstate(over="ignore"):  # far below zero it is zero
        raised = np.exp(np.float32(-1.702) * values)
    raised += 1
    values /= raised
    return values


def _shares(query: Vectors, keys: Vectors, mask: Mask) -> Vectors:
    scores = (keys @ query[:, :, None])[:, :, 0]
    return softmax(np.where(mask, scores, np.float32(MASKED)))


def _cosines(left: Vectors, right: Vectors) -> Vectors:
    lengths = [np.maximum(np.linalg.norm(side, axis=-1), np.float32(1e-8)) for side in (left, right)]
    cosines: Vectors = np.einsum("ij,ij->i", left, right) / (lengths[0] * lengths[1])
    return cosines


_ENCODERS = ("image_encoder.resblocks", "text_encoder.resblocks", "fusion_encoder.resblocks")
_BACKBONE = "clip_backbone."
"""The authors' file has all of CLIP inside."""


def _layers(tensors: Mapping[str, Any], encoder: str) -> int:
    return len({name.split(".")[2] for name in tensors if name.startswith(f"{encoder}.")})


def _layout(arrays: Mapping[str, Vectors]) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor that a network of this width and with so many blocks has."""
    width = len(arrays.get("ln.weight", ()))
    shapes: dict[str, tuple[int, ...]] = {"bbox_position_embedding": (4, width), "logit_scale": ()}
    shapes |= {f"ln.{part}": (width,) for part in ("weight", "bias")}
    shapes |= {f"{side}_att_{part}": (width, width) for side in ("img", "text") for part in ("query", "key")}
    for encoder in _ENCODERS:
        for number in range(_layers(arrays, encoder)):
            block = f"{encoder}.{number}."
            shapes |= {f"{block}{norm}.{part}": (width,) for norm in ("ln_1", "ln_2") for part in ("weight", "bias")}
            shapes |= {f"{block}attn.in_proj_weight": (3 * width, width), f"{block}attn.in_proj_bias": (3 * width,)}
            for name, outputs, inputs in (("attn.out_proj", 1, 1), ("mlp.c_fc", 4, 1), ("mlp.c_proj", 1, 4)):
                shapes |= {f"{block}{name}.weight": (outputs * width, inputs * width)}
                shapes |= {f"{block}{name}.bias": (outputs * width,)}
    if "projection" in arrays:
        shapes["projection"] = (len(arrays["projection"]), width)
    return shapes


def heads_of(width: int) -> int:
    """32 numbers per head, as released (512 in 16 heads)."""
    return max(1, width // 32)
