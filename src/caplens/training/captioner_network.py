"""The captioner in torch, to be trained: AoANet, and captions drawn from it.

`caplens.captioning` runs what comes out of it, with the same numbers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from caplens.captioning import captioner
from caplens.captioning.aoanet import AoANetConfig, CaptionNetwork
from caplens.captioning.captioner import FeatureSpec
from caplens.captioning.vocabulary import END, UNKNOWN, Vocabulary

__all__ = ["AoANet", "AoANetConfig", "Captioner", "Decoded", "FeatureSpec", "Memory", "State", "greedy", "sample"]


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


class Decoded(NamedTuple):
    """Word numbers (captions, words) and the log-probability of each; zero after the end of a caption."""

    words: Tensor
    log_probabilities: Tensor

    @property
    def spoken(self) -> Tensor:
        """Which positions count: every word, and the end that closes the caption."""
        before = torch.cat([torch.ones_like(self.words[:, :1]), self.words[:, :-1]], dim=1)
        return before != END


def greedy(model: AoANet, memory: Memory, longest: int) -> Decoded:
    """The most probable word at each step."""
    return _roll(model, memory, longest, None)


def sample(model: AoANet, memory: Memory, longest: int, generator: torch.Generator) -> Decoded:
    """Words drawn from the model's distribution."""
    return _roll(model, memory, longest, generator)


def _roll(model: AoANet, memory: Memory, longest: int, generator: torch.Generator | None) -> Decoded:
    state = model.start(memory)
    words = memory.mean.new_zeros(len(memory.mean), dtype=torch.long)
    rows = torch.arange(len(words), device=words.device)  # the captions still worked on
    everything = torch.full((len(words), longest), END, device=words.device)
    gained = []
    for position in range(longest):
        scores, state = model.step(words, memory, state)
        scores = _without_unknown(scores)
        words = scores.argmax(dim=-1) if generator is None else _draw(scores.detach(), generator)
        everything[rows, position] = words
        gained.append(memory.mean.new_zeros(len(everything)).index_put((rows,), scores.gather(1, words[:, None])[:, 0]))
        going = words != END
        if not going.any():
            break
        rows, words = rows[going], words[going]
        memory, state = memory.select(going), state.select(going)
    return Decoded(everything[:, : position + 1], torch.stack(gained, dim=1))


def _draw(scores: Tensor, generator: torch.Generator) -> Tensor:
    """One word per row, by its place in the cumulative distribution: one random number a row, not one a word."""
    cumulative = scores.exp().cumsum(dim=1)
    chance = torch.rand(len(scores), 1, generator=generator).to(scores.device) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, chance, right=True)[:, 0].clamp(max=scores.shape[1] - 1)


def _without_unknown(scores: Tensor) -> Tensor:
    """Nobody wants to read `<unknown>`: it is never said, and its probability goes to the words that can be.

    What is left must sum to one. Otherwise a teacher that lowers whatever was drawn raises what is never drawn, until
    hardly any probability is left for real words.
    """
    return scores.index_fill(1, torch.tensor([UNKNOWN], device=scores.device), -torch.inf).log_softmax(dim=-1)


@dataclass
class Captioner:
    """A network in training, with its words and what it looks at."""

    model: AoANet
    vocabulary: Vocabulary
    spec: FeatureSpec
    longest: int = 20

    def finished(self) -> captioner.Captioner:
        """Return a copy as it is now, which runs without torch."""
        tensors = {name: tensor.detach().float().cpu().numpy() for name, tensor in self.model.state_dict().items()}
        network = CaptionNetwork(self.model.config, {name: tensor.copy() for name, tensor in tensors.items()})
        return captioner.Captioner(network, self.vocabulary, self.spec, self.longest)

    def caption(self, features: Tensor, beam: int = 3) -> list[str]:
        """One caption per picture; features are (pictures, regions, size)."""
        return self.finished().caption(features.float().cpu().numpy(), beam)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write network (in half precision), words and what it looks at."""
        self.finished().save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Captioner:
        """Read what `save` wrote."""
        saved = captioner.Captioner.load(path)
        model = AoANet(saved.network.config)
        model.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in saved.network.tensors.items()})
        return cls(model, saved.vocabulary, saved.spec, saved.longest)
