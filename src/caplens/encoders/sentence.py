"""Sentence embeddings (all-MiniLM-L6-v2, all-mpnet-base-v2, other BERT or MPNet folders): the mean of token states."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from caplens.core.progress import Progress, silent
from caplens.encoders.bert import Array, BertEncoder
from caplens.storage import weights
from caplens.storage.cache import EmbeddingCache, key_of

# Kept on disk together: enough to fill batches of equal length, few enough to lose little when interrupted.
TEXTS_AT_ONCE = 2048


class SentenceEncoder:
    """Texts to unit vectors, without torch; what was encoded once is read from the cache on disk the next time."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._encoder = BertEncoder(folder)
        self._cache = EmbeddingCache()
        self._identity = identity
        self.dimension = self._encoder.width

    def encode(self, texts: Sequence[str], progress: Progress = silent) -> Array:
        """One row per text; a text that stands there twice is encoded once."""
        keys = {text: key_of(self._identity, "sentence", text) for text in dict.fromkeys(texts)}
        known = self._cache.get(keys.values())
        missing = [text for text, key in keys.items() if key not in known]
        for done, (batch, vectors) in self._encode(missing):
            made = {keys[text]: vector[None] for text, vector in zip(batch, vectors, strict=True)}
            self._cache.put(made)
            known.update(made)
            progress("encoding sentences", done, len(missing))
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return np.concatenate([known[keys[text]] for text in texts])

    def _encode(self, texts: list[str]) -> Iterator[tuple[int, tuple[list[str], Array]]]:
        """Unit vectors in batches, with the number of texts done so far."""
        done = 0
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = texts[start : start + TEXTS_AT_ONCE]
            made = np.empty((len(part), self.dimension), np.float32)
            for rows, ids in self._encoder.batches(self._encoder.tokenize(part)):
                made[rows] = self._encoder.states(ids).mean(axis=1)
            made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), np.float32(1e-12))
            done += len(part)
            yield done, (part, made)


def load_sentence_encoder(name_or_path: str | os.PathLike[str]) -> SentenceEncoder:
    """The encoder of this name or folder, read again only when its files have changed."""
    return _load(weights.require(name_or_path), weights.model_digest(name_or_path))


@functools.lru_cache(maxsize=2)
def _load(folder: Path, identity: str) -> SentenceEncoder:
    return SentenceEncoder(folder, identity)
