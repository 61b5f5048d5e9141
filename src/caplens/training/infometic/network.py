"""InfoMetIC's network in torch, to be trained; `caplens.metrics.infometic.network` runs what comes out of it.

Both have the layout of the authors' released checkpoint, so its tensors load by name, and give the same numbers.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from caplens.metrics.infometic.network import MASKED, heads_of


class FusionScores(NamedTuple):
    """Of each pair; `regions` includes the null region as its last column, `words` is zero where no word stands."""

    recall: Tensor
    """Vision recall f^R: scale · cos(v̂_g, v_g)."""
    precision: Tensor
    """Text precision f^P: scale · cos(t̂_g, t_g)."""
    regions: Tensor
    """α^v (eq. 2)."""
    words: Tensor
    """α^t."""


class QuickGELU(nn.Module):
    """CLIP's approximation of GELU."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


class Block(nn.Module):
    """A pre-norm transformer block as in CLIP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_2 = nn.LayerNorm(width)
        layers = [("c_fc", nn.Linear(width, 4 * width)), ("gelu", QuickGELU()), ("c_proj", nn.Linear(4 * width, width))]
        self.mlp = nn.Sequential(OrderedDict[str, nn.Module](layers))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.ln_1(x)
        x = x + self.attn(normed, normed, normed, need_weights=False)[0]
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class TransformerStack(nn.Module):
    """Several blocks, without any attention mask: padding is seen, so texts are always padded to the same length."""

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.resblocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.resblocks(x)
        return out


class InfoMeticNetwork(nn.Module):
    """Intra- and inter-modality fusion with fine-grained scoring; the released sizes are the defaults."""

    def __init__(
        self,
        width: int = 512,
        heads: int = 16,
        intra_layers: int = 4,
        inter_layers: int = 2,
        projection: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.projection = None if projection is None else nn.Parameter(projection, requires_grad=False)
        self.image_encoder = TransformerStack(width, intra_layers, heads)
        self.text_encoder = TransformerStack(width, intra_layers, heads)
        self.fusion_encoder = TransformerStack(width, inter_layers, heads)
        self.ln = nn.LayerNorm(width)
        scale = width**-0.5
        self.bbox_position_embedding = nn.Parameter(scale * torch.randn(4, width))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
        self.img_att_query = nn.Parameter(scale * torch.randn(width, width))
        self.img_att_key = nn.Parameter(scale * torch.randn(width, width))
        self.text_att_query = nn.Parameter(scale * torch.randn(width, width))
        self.text_att_key = nn.Parameter(scale * torch.randn(width, width))

    @property
    def input_width(self) -> int:
        """The dimension of the encoder it was made for."""
        return len(self.ln.weight) if self.projection is None else len(self.projection) - 1

    def project(self, vectors: Tensor) -> Tensor:
        """The encoder's vectors (regions, tokens, whole pictures and captions) as the network takes them."""
        if self.projection is None:
            return vectors
        return functional.normalize(vectors, dim=-1) @ self.projection[:-1] + self.projection[-1]

    def encode_image(self, regions: Tensor, boxes: Tensor) -> Tensor:
        """(images, 1 + regions + 1, width): the whole image first, the null region (zeros) last; boxes in 0..1."""
        return self.ln(self.image_encoder(regions + boxes @ self.bbox_position_embedding))  # type: ignore[no-any-return]

    def encode_text(self, tokens: Tensor) -> Tensor:
        """(captions, tokens, width), padding included."""
        return self.ln(self.text_encoder(tokens))  # type: ignore[no-any-return]

    def score(
        self,
        image: Tensor,
        text: Tensor,
        image_global: Tensor,
        text_global: Tensor,
        region_mask: Tensor,
        word_mask: Tensor,
    ) -> FusionScores:
        """Pairs of encoded images and captions, row by row.

        The masks say which of the image's positions are regions (the null counts, the whole image does not) and which
        of the text's positions are words (start, end and padding are not).
        """
        fused = self.ln(self.fusion_encoder(torch.cat([image, text], dim=1)))
        seen, read = fused.split([image.shape[1], text.shape[1]], dim=1)
        regions = self._attention(text_global @ self.img_att_query, seen @ self.img_att_key, region_mask)
        words = self._attention(image_global @ self.text_att_query, read @ self.text_att_key, word_mask)
        scale = self.logit_scale.exp()
        recall = functional.cosine_similarity((regions[:, None] @ seen)[:, 0], image_global, dim=-1)
        precision = functional.cosine_similarity((words[:, None] @ read)[:, 0], text_global, dim=-1)
        return FusionScores(scale * recall, scale * precision, regions[:, 1:], words)

    @staticmethod
    def _attention(query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        scores = (keys @ query[:, :, None])[:, :, 0]
        return functional.softmax(scores.masked_fill(~mask, MASKED), dim=-1)

    @classmethod
    def from_state_dict(cls, tensors: dict[str, Tensor]) -> InfoMeticNetwork:
        """Load a checkpoint in the released layout; sizes are read off the tensors, every name must fit."""

        def layers(encoder: str) -> int:
            return len({name.split(".")[2] for name in tensors if name.startswith(f"{encoder}.resblocks.")})

        own = {name: tensor.float() for name, tensor in tensors.items() if not name.startswith("clip_backbone.")}
        width = own["ln.weight"].shape[0]
        sizes = (layers("image_encoder"), layers("fusion_encoder"))
        model = cls(width, heads_of(width), *sizes, projection=own.get("projection"))
        model.load_state_dict(own, strict=True)
        return model
