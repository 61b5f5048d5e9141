"""AoANet: attention on attention for image captioning (Huang et al., ICCV 2019), the captioner of the CIDEr-R paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence


@dataclass(frozen=True)
class AoANetConfig:
    """Sizes; the paper's are width 1024, 8 heads, 6 refining layers."""

    features: int
    vocabulary: int
    width: int = 512
    heads: int = 8
    refining_layers: int = 3
    dropout: float = 0.3

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Memory(NamedTuple):
    """What the decoder looks at: the refined picture, projected once for all words."""

    keys: Tensor
    values: Tensor
    mean: Tensor

    def select(self, rows: Tensor | slice) -> Memory:
        """What belongs to these rows, in this order."""
        return Memory(*(tensor[rows] for tensor in self))

    def repeat(self, times: int) -> Memory:
        """Every picture `times` times in a row, for several captions of each."""
        return Memory(*(tensor.repeat_interleave(times, dim=0) for tensor in self))


class State(NamedTuple):
    """What the decoder remembers between two words."""

    hidden: Tensor
    cell: Tensor
    context: Tensor

    def select(self, rows: Tensor | slice) -> State:
        """The states of these rows, in this order."""
        return State(*(tensor[rows] for tensor in self))


class AttentionOnAttention(nn.Module):
    """AoA(V, q): an information vector and a gate, both from the attention result and the query (eq. 3–5)."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.information_and_gate = nn.Linear(2 * width, 2 * width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, attended: Tensor, query: Tensor) -> Tensor:
        both = self.information_and_gate(self.dropout(torch.cat([attended, query], dim=-1)))
        return functional.glu(both, dim=-1)  # information ⊙ σ(gate)


class RefiningLayer(nn.Module):
    """One layer of the encoder: self-attention, attention on attention, residual and norm (eq. 6); no feed-forward."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.on_attention = AttentionOnAttention(width, dropout)
        self.heads = heads
        self.dropout = nn.Dropout(dropout)

    def forward(self, regions: Tensor) -> Tensor:
        query, key, value = self.query_key_value(self.norm(regions)).chunk(3, dim=-1)
        attended = attend(split_heads(query, self.heads), split_heads(key, self.heads), split_heads(value, self.heads))
        refined: Tensor = regions + self.dropout(self.on_attention(attended, query))
        return refined


class AoANet(nn.Module):
    """Refining encoder and LSTM decoder. `encode` a batch of pictures once, then `step` word by word."""

    def __init__(self, config: AoANetConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.embed_regions = nn.Sequential(nn.Linear(config.features, width), nn.ReLU(), nn.Dropout(config.dropout))
        self.refine = nn.ModuleList(
            RefiningLayer(width, config.heads, config.dropout) for _ in range(config.refining_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.keys_and_values = nn.Linear(width, 2 * width)
        self.embed_words = nn.Embedding(config.vocabulary, width)
        self.lstm = nn.LSTMCell(2 * width, width)
        self.query = nn.Linear(width, width)
        self.on_attention = AttentionOnAttention(width, config.dropout)
        self.predict = nn.Linear(width, config.vocabulary)
        self.dropout = nn.Dropout(config.dropout)

    def encode(self, features: Tensor) -> Memory:
        """Refine region or grid features (pictures, regions, size)."""
        regions = self.embed_regions(features)
        for layer in self.refine:
            regions = layer(regions)
        regions = self.norm(regions)
        keys, values = self.keys_and_values(regions).chunk(2, dim=-1)
        heads = self.config.heads
        return Memory(split_heads(keys, heads), split_heads(values, heads), regions.mean(dim=1))

    def start(self, memory: Memory) -> State:
        """The state before the first word."""
        zeros = torch.zeros_like(memory.mean)
        return State(zeros, zeros, zeros)

    def step(self, words: Tensor, memory: Memory, state: State) -> tuple[Tensor, State]:
        """Log-probabilities of the next word after these, and the new state."""
        state = self._advance(words, memory, state)
        return self._next_word(state.context), state

    def forward(self, memory: Memory, words: PackedSequence) -> Tensor:
        """Log-probabilities of every next word given the true words before it: (all words, vocabulary).

        Captions are packed, the longest first: those that ended cost nothing.
        """
        state = self.start(memory)
        contexts = []
        for now in torch.split(words.data, words.batch_sizes.tolist()):
            going = slice(len(now))
            memory, state = memory.select(going), state.select(going)
            state = self._advance(now, memory, state)
            contexts.append(state.context)
        return self._next_word(torch.cat(contexts))

    def _advance(self, words: Tensor, memory: Memory, state: State) -> State:
        """The state after one more word (eq. 8–9)."""
        inputs = torch.cat([self.dropout(self.embed_words(words)), memory.mean + state.context], dim=-1)
        hidden, cell = self.lstm(inputs, (state.hidden, state.cell))
        query = self.query(hidden)
        attended = attend(split_heads(query[:, None], self.config.heads), memory.keys, memory.values)[:, 0]
        return State(hidden, cell, self.on_attention(attended, hidden))

    def _next_word(self, context: Tensor) -> Tensor:
        """Eq. 10."""
        return functional.log_softmax(self.predict(self.dropout(context)), dim=-1)


def split_heads(tensor: Tensor, heads: int) -> Tensor:
    """(batch, length, width) to (batch, heads, length, width / heads)."""
    batch, length, width = tensor.shape
    return tensor.view(batch, length, heads, width // heads).transpose(1, 2)


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Scaled dot-product attention of all heads, joined again."""
    return functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(-2)
