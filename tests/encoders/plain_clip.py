"""A slow CLIP in OpenAI's own key layout, written from the paper: the twin that caplens's loader is checked against."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_1 = nn.LayerNorm(width)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        normed = self.ln_1(x)
        x = x + self.attn(normed, normed, normed, need_weights=False, attn_mask=mask)[0]
        hidden = self.mlp["c_fc"](self.ln_2(x))
        return torch.add(x, self.mlp["c_proj"](hidden * torch.sigmoid(1.702 * hidden)))


class Tower(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(Block(width, width // 64) for _ in range(layers))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for block in self.resblocks:
            x = block(x, mask)
        return x


class Visual(nn.Module):
    def __init__(self, size: int, patch: int, width: int, layers: int, dimension: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, patch, patch, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(width))
        self.positional_embedding = nn.Parameter(torch.randn((size // patch) ** 2 + 1, width))
        self.ln_pre = nn.LayerNorm(width)
        self.transformer = Tower(width, layers)
        self.ln_post = nn.LayerNorm(width)
        self.proj = nn.Parameter(torch.randn(width, dimension))

    def forward(self, pixels: Tensor) -> Tensor:
        patches = self.conv1(pixels).flatten(2).transpose(1, 2)
        first = self.class_embedding.expand(len(pixels), 1, -1)
        x = self.ln_pre(torch.cat([first, patches], dim=1) + self.positional_embedding)
        return torch.matmul(self.ln_post(self.transformer(x)[:, 0]), self.proj)


class PlainClip(nn.Module):
    def __init__(self, vocabulary: int, context: int = 20, width: int = 128, dimension: int = 32) -> None:
        super().__init__()
        self.visual = Visual(32, 8, width, 2, dimension)
        self.transformer = Tower(width, 2)
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.positional_embedding = nn.Parameter(torch.randn(context, width))
        self.ln_final = nn.LayerNorm(width)
        self.text_projection = nn.Parameter(torch.randn(width, dimension))
        self.logit_scale = nn.Parameter(torch.tensor(4.6))

    def encode_tokens(self, ids: Tensor) -> Tensor:
        """Projected tokens of texts that are padded to the full context."""
        length = ids.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        embedded = self.token_embedding(ids) + self.positional_embedding
        return torch.matmul(self.ln_final(self.transformer(embedded, mask)), self.text_projection)


def random_clip(vocabulary: int, seed: int = 0) -> PlainClip:
    torch.manual_seed(seed)
    model = PlainClip(vocabulary)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim:
                parameter.copy_(torch.randn_like(parameter) * 0.1 + (parameter if parameter.ndim == 1 else 0))
    return model.eval()
