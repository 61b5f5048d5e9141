"""Word mover's distance as a score: exp(−distance) to the nearest reference.

M. Kusner, Y. Sun, N. Kolkin, K. Weinberger. From word embeddings to document distances. ICML 2015.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import islice
from typing import Any

import numpy as np

from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics.base import Metric, Resources, Statistics, reference_counts, register
from caplens.native._kernels import wmd_nearest
from caplens.text.ngrams import Tokenizer, tokenizer_name
from caplens.text.ptb import tokenize
from caplens.text.stopwords import STOP_WORDS
from caplens.text.vectors import load_vectors, vectors_digest, vectors_name

LONGEST = 500  # different words of a text that are compared; the exact distance takes time with their number's cube


@register
class Wmd(Metric):
    """The least total distance that the caption's words travel to become the words of a reference."""

    name = "wmd"
    needs = frozenset({"references"})
    paper = "Kusner et al. 2015, ICML"
    summary = "exp(−word mover's distance) to the nearest reference"

    def __init__(self, *, vectors: str | os.PathLike[str] = "glove-6b-50d", tokenizer: Tokenizer = "ptb") -> None:
        self.vectors = options.path("vectors", vectors, "name or a file of word vectors")
        self.tokenizer = options.tokenizer(tokenizer)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (
            ("vectors", vectors_name(self.vectors)),
            ("unit-vectors", "yes"),
            ("tokenizer", tokenizer_name(self.tokenizer)),
            ("stop-words", "nltk"),
        )

    def resources(self) -> Resources:
        return {"vectors": vectors_digest(self.vectors)}

    def statistics(self, work: Workspace) -> Statistics:
        """One column: exp(−distance); 0 where nothing is left to compare."""
        vectors = load_vectors(self.vectors)
        references = work.captions.references or []
        texts = list(dict.fromkeys([*work.captions.candidates, *(text for each in references for text in each)]))
        row_of = {text: number for number, text in enumerate(texts)}
        words = [[word for word in tokens if word not in STOP_WORDS] for tokens in self._tokens(texts)]
        vocabulary = sorted({word for each in words for word in each})
        rows = vectors.rows(vocabulary)
        with_vector = [word for word, row in zip(vocabulary, rows, strict=True) if row >= 0]
        known = {word: number for number, word in enumerate(with_vector)}
        bags = [Counter(known[word] for word in each if word in known) for each in words]
        flat = [sorted(islice(bag.items(), LONGEST)) for bag in bags]
        candidates = np.array([row_of[text] for text in work.captions.candidates], dtype=np.int64)
        distances = wmd_nearest(
            vectors=vectors.unit(rows[rows >= 0]),
            starts=_starts([len(bag) for bag in flat]),
            words=np.array([word for bag in flat for word, _ in bag], dtype=np.int64),
            counts=np.array([count for bag in flat for _, count in bag], dtype=np.int64),
            candidates=candidates,
            pair_starts=_starts([len(each) for each in references]),
            references=np.array([row_of[text] for each in references for text in each], dtype=np.int64),
        )
        details: list[dict[str, Any]] = [
            {"distance": float(distance), "unknown": [word for word in words[row] if word not in known]}
            for row, distance in zip(candidates, distances, strict=True)
        ]
        for detail in details:
            if not np.isfinite(detail["distance"]):
                detail["distance"] = None  # no words left on one side
        facts = {"references": reference_counts(references)}
        return Statistics(np.exp(-distances)[:, None], details=details, notes=_notes(details, bags), facts=facts)

    def _tokens(self, texts: list[str]) -> list[list[str]]:
        if self.tokenizer == "ptb":
            return [text.split(" ") if text else [] for text in tokenize(texts)]
        split = str.split if self.tokenizer == "whitespace" else self.tokenizer
        return [list(split(text)) for text in texts]  # type: ignore[operator]


def _starts(sizes: list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


def _notes(details: list[dict[str, Any]], bags: list[Counter[int]]) -> tuple[str, ...]:
    unknown = Counter(word for detail in details for word in detail["unknown"])
    empty = sum(detail["distance"] is None for detail in details)
    notes = []
    if unknown:
        shown = [word if len(word) <= 30 else f"{word[:29]}…" for word, _ in unknown.most_common(5)]
        some = ", ".join(shown + ["…"] * (len(unknown) > 5))
        notes.append(f"{len(unknown)} words of the captions have no vector and were left out ({some})")
    if empty:
        notes.append(f"{empty} captions score 0: without stop words and unknown words nothing is left to compare")
    cut = sum(len(bag) > LONGEST for bag in bags)
    if cut:
        notes.append(f"of {cut} texts with more than {LONGEST} different words only the first {LONGEST} were compared")
    return tuple(notes)
