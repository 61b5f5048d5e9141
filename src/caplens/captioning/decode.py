"""Captions out of a captioner: greedy, sampled, beam search."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from caplens.captioning.aoanet import AoANet, Memory
from caplens.captioning.vocabulary import END, UNKNOWN


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


@torch.no_grad()
def beam_search(model: AoANet, memory: Memory, longest: int, beam: int = 3) -> Tensor:
    """The caption with the best mean log-probability per word among `beam` kept at each step: (pictures, words)."""
    pictures = len(memory.mean)
    wide = memory.repeat(beam)
    state = model.start(wide)
    device = memory.mean.device
    offsets = torch.arange(pictures, device=device)[:, None] * beam
    words = torch.zeros(pictures * beam, dtype=torch.long, device=device)
    history = torch.zeros(pictures * beam, 0, dtype=torch.long, device=device)
    totals = torch.full((pictures, beam), -torch.inf, device=device)
    totals[:, 0] = 0  # all beams are equal at the start: keep one
    best = torch.zeros(pictures, longest, dtype=torch.long, device=device)
    best_score = torch.full((pictures,), -torch.inf, device=device)
    for position in range(longest):
        scores, state = model.step(words, wide, state)
        scores = _without_unknown(scores).view(pictures, beam, -1)
        if position == longest - 1:  # no room left: every caption ends here
            scores[:, :, :END] = -torch.inf
            scores[:, :, END + 1 :] = -torch.inf
        extended = (totals[:, :, None] + scores).flatten(1)
        totals, flat = extended.topk(beam, dim=1)
        parents = (offsets + flat // scores.shape[-1]).flatten()
        words = (flat % scores.shape[-1]).flatten()
        history = torch.cat([history[parents], words[:, None]], dim=1)
        state = state.select(parents)
        ended = words.view(pictures, beam) == END
        finished = torch.where(ended, totals / (position + 1), -torch.inf)
        score, which = finished.max(dim=1)
        better = score > best_score
        rows = (offsets[:, 0] + which)[better]
        best[better, : position + 1] = history[rows]
        best_score = torch.where(better, score, best_score)
        totals = totals.masked_fill(ended, -torch.inf)
        if torch.isinf(totals).all():
            break
    return best


def _without_unknown(scores: Tensor) -> Tensor:
    """Nobody wants to read `<unknown>`: it is never said, and its probability goes to the words that can be.

    What is left must sum to one. Otherwise a teacher that lowers whatever was drawn raises what is never drawn, until
    hardly any probability is left for real words.
    """
    return scores.index_fill(1, torch.tensor([UNKNOWN], device=scores.device), -torch.inf).log_softmax(dim=-1)
