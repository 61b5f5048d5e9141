"""Sentence embeddings (all-MiniLM-L6-v2, multilingual-e5-small, folders of sentence-transformers): means of states."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors, narrow_unit
from caplens.encoders.packed_e5 import PackedE5
from caplens.encoders.tokens import TokenEncoder, read_token_encoder
from caplens.storage import weights
from caplens.storage.cache import EmbeddingCache, key_of
from caplens.text.sentences import TextParts

# Kept on disk together: enough to fill batches of equal length, few enough to lose little when interrupted.
TEXTS_AT_ONCE = 2048


class SentenceEncoder:
    """Texts to unit vectors, without torch; what was encoded once is read from the cache on disk the next time."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._encoder = _read(folder)
        self._cache = EmbeddingCache()
        self._identity = identity
        self.dimension, self.longest = self._encoder.width, self._encoder.longest

    def fits(self, text: str) -> bool:
        """Whether the model reads the whole text."""
        return self._encoder.fits(text)

    def encode(self, texts: Sequence[str], progress: Progress = silent) -> Vectors:
        """One row per text; a text that stands there twice is encoded once.

        A text that is too long for the model is read in parts, and has the direction of their mean.
        """
        parts = TextParts.of(texts, self.fits)
        return parts.mean_vectors(self._encode_parts(parts.texts, progress))

    def encode_words(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        """Per text, given as its words, a unit vector of every word as it is meant there; zeros for one that is empty.

        A text that is too long for the model is read in stretches.
        """
        *start, end = self._encoder.tokenize([""])[0]
        room = self.longest - len(start) - 1
        forms = list(dict.fromkeys(word for words in texts for word in words))
        tokens = self._encoder.tokenize(forms)
        pieces = {form: ids[len(start) : -1][:room] for form, ids in zip(forms, tokens, strict=True)}
        stretches = [
            (text, stretch)
            for text, words in enumerate(texts)
            for stretch in _stretches([pieces[word] for word in words], room)
        ]
        sums = [np.zeros((len(words), self.dimension), np.float32) for words in texts]
        read = [[*start, *(piece for piece, _ in stretch), end] for _, stretch in stretches]
        for (text, stretch), states in zip(stretches, self._encoder.states(read), strict=True):
            np.add.at(sums[text], [word for _, word in stretch], states[len(start) : -1])
        return [narrow_unit(each) for each in sums]

    def _encode_parts(self, texts: Sequence[str], progress: Progress) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        keys = [key_of(self._identity, "sentence", text) for text in texts]
        text_of = dict(zip(keys, texts, strict=True))

        def encode_missing(missing: list[bytes]) -> Iterator[dict[bytes, Vectors]]:
            for start in range(0, len(missing), TEXTS_AT_ONCE):
                batch = missing[start : start + TEXTS_AT_ONCE]
                vectors = self._encode([text_of[key] for key in batch])
                yield {key: vector[None] for key, vector in zip(batch, vectors, strict=True)}
                progress("encoding sentences", start + len(batch), len(missing))

        vectors = self._cache.get_or_make(keys, encode_missing)
        return np.concatenate([vectors[key] for key in keys])

    def _encode(self, texts: list[str]) -> Vectors:
        """Return unit vectors of some texts."""
        states = self._encoder.states(self._encoder.tokenize(texts))
        return narrow_unit(np.stack([own.mean(axis=0) for own in states]))


def _stretches(words: Sequence[Sequence[int]], room: int) -> Iterator[list[tuple[int, int]]]:
    """Pieces of words in order, each with the number of its word, so many at a time that they fit.

    >>> list(_stretches([[7], [8, 9], [5]], 3))
    [[(7, 0), (8, 1), (9, 1)], [(5, 2)]]
    """
    stretch: list[tuple[int, int]] = []
    for number, pieces in enumerate(words):
        if len(stretch) + len(pieces) > room:
            yield stretch
            stretch = []
        stretch += [(piece, number) for piece in pieces]
    if stretch:
        yield stretch


def _read(path: Path) -> TokenEncoder:
    """The language model of a file of ours, or of a folder in the layout of sentence-transformers."""
    if path.is_file():
        return PackedE5(path)
    pooling = path / "1_Pooling" / "config.json"
    if pooling.is_file() and not json.loads(pooling.read_text("utf-8")).get("pooling_mode_mean_tokens"):
        raise InputError(
            "this sentence encoder does not take the mean of its token states",
            where=str(path),
            remedy="take one whose 1_Pooling/config.json has pooling_mode_mean_tokens",
        )
    return read_token_encoder(path)


def load_sentence_encoder(name_or_path: str | os.PathLike[str]) -> SentenceEncoder:
    """The encoder of this name or folder, read again only when its files have changed."""
    return _load(weights.require(name_or_path), weights.model_digest(name_or_path))


@functools.lru_cache(maxsize=2)
def _load(folder: Path, identity: str) -> SentenceEncoder:
    return SentenceEncoder(folder, identity)
