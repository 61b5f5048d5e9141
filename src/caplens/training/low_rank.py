"""The upper layers of a sentence encoder, tuned by additions of low rank (Hu et al. 2022); all else stays as it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from caplens.core.types import Vectors
from caplens.encoders.bert import PRODUCTS, BertEncoder


class LowRankLinear(nn.Module):
    """A frozen product plus a trained one of low rank, which is nothing at the start."""

    weight: Tensor
    bias: Tensor

    def __init__(self, weight: Vectors, bias: Vectors, rank: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.from_numpy(weight), persistent=False)
        self.register_buffer("bias", torch.from_numpy(bias), persistent=False)
        outputs, inputs = weight.shape
        self.down = nn.Parameter(torch.randn(rank, inputs) * inputs**-0.5)
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, values: Tensor) -> Tensor:
        return functional.linear(values, self.weight + self.up @ self.down, self.bias)


class TunableLayer(nn.Module):
    """One layer of BERT, as `caplens.encoders.bert` computes it."""

    def __init__(self, encoder: BertEncoder, number: int, rank: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.epsilon, self.dropout = encoder.heads, encoder.epsilon, dropout
        self.products = nn.ModuleDict(
            {name: LowRankLinear(*encoder.layer_arrays(number, name), rank) for name in PRODUCTS}
        )
        for name in ("norm1", "norm2"):
            for part, array in zip(("weight", "bias"), encoder.layer_arrays(number, name), strict=True):
                self.register_buffer(f"{name}_{part}", torch.from_numpy(array), persistent=False)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        texts, length, width = states.shape
        query, key, value = (
            self.products[name](states).view(texts, length, self.heads, -1).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
        mixed = self._drop(self.products["out"](mixed.transpose(1, 2).reshape(texts, length, width)))
        states = self._norm(states + mixed, "norm1")
        wide = functional.gelu(self.products["up"](states))
        return self._norm(states + self._drop(self.products["down"](wide)), "norm2")

    def _drop(self, values: Tensor) -> Tensor:
        return functional.dropout(values, self.dropout, self.training)

    def _norm(self, values: Tensor, name: str) -> Tensor:
        weight, bias = getattr(self, f"{name}_weight"), getattr(self, f"{name}_bias")
        return functional.layer_norm(values, values.shape[-1:], weight, bias, self.epsilon)


class TunableLayers(nn.Module):
    """The last layers of a sentence encoder: states of the layer below in, one vector of unit length a text out."""

    def __init__(self, encoder: BertEncoder, count: int, rank: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.first = encoder.layers - count
        self.layers = nn.ModuleList(
            TunableLayer(encoder, number, rank, dropout) for number in range(self.first, encoder.layers)
        )

    def forward(self, texts: Sequence[Vectors]) -> Tensor:
        """Return the mean state of every text, given as (length, width)."""
        longest = max(len(text) for text in texts)
        padded = np.zeros((len(texts), longest, texts[0].shape[1]), np.float32)
        mask = np.zeros((len(texts), longest), bool)
        for row, text in enumerate(texts):
            padded[row, : len(text)], mask[row, : len(text)] = text, True
        device = next(self.parameters()).device
        states, present = torch.from_numpy(padded).to(device), torch.from_numpy(mask).to(device)
        for layer in self.layers:
            states = layer(states, present)
        total = (states * present[..., None]).sum(dim=1)
        return functional.normalize(total, dim=-1)

    def additions(self) -> dict[str, Tensor]:
        """Return what was learned, by layer and product, as `BertEncoder` takes it."""
        learned = {}
        for number, layer in enumerate(self.layers, self.first):
            for name, product in layer.products.items():  # type: ignore[operator, union-attr]
                learned[f"{number}.{name}.down"] = product.down.detach()
                learned[f"{number}.{name}.up"] = product.up.detach()
        return learned
