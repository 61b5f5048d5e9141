"""Captions out of a captioner, by beam search."""

from __future__ import annotations

import numpy as np

from caplens.captioning.aoanet import CaptionNetwork, Memory, Numbers
from caplens.captioning.vocabulary import END, UNKNOWN
from caplens.core.types import Vectors


def beam_search(network: CaptionNetwork, memory: Memory, longest: int, beam: int = 3) -> Numbers:
    """Return the caption with the best mean log-probability per word among `beam` kept at each step: (pictures, words).

    A beam of one is greedy.
    """
    pictures = len(memory.mean)
    state = network.start(memory, beam)
    words = np.full((pictures, beam), END)
    history = np.zeros((pictures, beam, 0), np.int64)
    totals = np.full((pictures, beam), -np.inf, np.float32)
    totals[:, 0] = 0  # all beams are equal at the start: keep one
    best = np.full((pictures, longest), END)
    best_scores = np.full(pictures, -np.inf, np.float32)
    for position in range(longest):
        logits, state = network.step(words, memory, state)
        scores = log_probabilities(logits)
        if position == longest - 1:  # no room left: every caption ends here
            scores[:, :, :END] = scores[:, :, END + 1 :] = -np.inf
        extended = (totals[:, :, None] + scores).reshape(pictures, -1)
        chosen = np.argpartition(extended, -beam, axis=1)[:, -beam:]
        totals = np.take_along_axis(extended, chosen, axis=1)
        parents, words = np.divmod(chosen, scores.shape[2])
        history = np.concatenate([np.take_along_axis(history, parents[:, :, None], axis=1), words[:, :, None]], axis=2)
        state = state.select(parents)
        ended = words == END
        finished = np.where(ended, totals / (position + 1), -np.inf)
        which = finished.argmax(axis=1)
        better = np.flatnonzero(finished.max(axis=1) > best_scores)
        best[better, : position + 1] = history[better, which[better]]
        best_scores[better] = finished[better, which[better]]
        totals[ended] = -np.inf
        if np.isneginf(totals).all():
            break
    return best


def log_probabilities(logits: Vectors) -> Vectors:
    """Return log-probabilities of the next word, in place. Nobody wants to read `<unknown>`: it is never said, and its
    probability goes to the words that can be.
    """
    logits[..., UNKNOWN] = -np.inf
    logits -= logits.max(axis=-1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return logits
