"""What metrics say about long captions: read in parts where the encoder is too short, and which sentence is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from caplens.core.details import AnyDetails, Details, LazyDetails, Sentence
from caplens.core.types import Floats
from caplens.text.language import MANY
from caplens.text.ngrams import Corpus
from caplens.text.sentences import MOST, TextParts, split_sentences

LEAST_SHARE = 0.5
"""Of the mean of the others, below which a sentence is called wrong: docs/research/long-captions.md."""
TIMES_AS_LONG = 3
"""As its references, from which a caption is too long for n-gram metrics to say much."""

Combined = Literal["mean", "vectors", "tokens", "claims"]
"""The mean of the parts' scores, the mean of their vectors, or all their tokens or claims together."""


def parts_fact(combined: Combined, *texts: TextParts) -> dict[str, str]:
    """Return what the signature says where some texts were read in parts; nothing where all were read whole."""
    return {"sentences": combined} if any(parts.cut for parts in texts) else {}


def parts_note(captions: TextParts, tokens: int) -> str:
    """Return what the reader should know about captions that were read in parts."""
    note = (
        f"{captions.cut} of {len(captions.ends)} captions are longer than {tokens} tokens, which are read at once, "
        "and were read sentence by sentence"
    )
    return f"{note}, {captions.books} of them only the first {MOST} sentences" if captions.books else note


def length_note(corpus: Corpus, effect: str) -> tuple[str, ...]:
    """Return what an n-gram metric says where many captions are far longer than their references."""
    corpus = next(corpus.parts())  # enough to tell
    lengths, counts = corpus.candidates.lengths(), corpus.reference_counts
    rows = np.repeat(np.arange(len(counts)), counts)
    usual = np.bincount(rows, corpus.candidates.reference_lengths(), minlength=len(counts)) / np.maximum(1, counts)
    long = (lengths > TIMES_AS_LONG * usual) & (counts > 0) & (usual > 0)
    if not len(long) or long.mean() < MANY:
        return ()
    return (
        f"about {100 * long.mean():.0f} % of the captions are over three times as long as their references: {effect}; "
        "cider-r and capture are made for long captions",
    )


class SentenceDetails(LazyDetails):
    """The score of every sentence, for captions of several; worked out for the captions somebody looks at.

    Args:
        captions: the captions.
        score: scores of texts against what stands in these rows.
        others: what else the metric says about each caption.
    """

    def __init__(
        self,
        captions: Sequence[str],
        score: Callable[[NDArray[np.int64], list[str]], Floats],
        others: Sequence[AnyDetails] | None = None,
    ) -> None:
        self._captions, self._score, self._others = captions, score, others

    @classmethod
    def of_captions(
        cls,
        captions: Sequence[str],
        score: Callable[[NDArray[np.int64], list[str]], Floats],
        others: Sequence[AnyDetails] | None = None,
    ) -> Sequence[AnyDetails] | None:
        """Return details with sentences if some caption has several, else what else is said."""
        several = any(len(split_sentences(caption)) > 1 for caption in captions)
        return cls(captions, score, others) if several else others

    def __len__(self) -> int:
        return len(self._captions)

    def of(self, row: int) -> Details:
        return self.of_rows([row])[0]

    def of_rows(self, rows: Sequence[int]) -> list[Details]:
        split = {row: split_sentences(self._captions[row]) for row in rows}
        texts = [(row, text) for row, sentences in split.items() if len(sentences) > 1 for text in sentences]
        scores = iter(self._score(np.array([row for row, _ in texts], np.int64), [text for _, text in texts]).tolist())
        found = []
        for row in rows:
            details = Details(**({} if self._others is None else self._others[row]))  # type: ignore[typeddict-item]
            if len(split[row]) > 1:
                details["sentences"] = judge_sentences(split[row], [next(scores) for _ in split[row]])
            found.append(details)
        return found


def judge_sentences(sentences: Sequence[str], scores: Sequence[float]) -> list[Sentence]:
    """Return the sentences with their scores; one that has less than half of the mean of the others is wrong.

    >>> [entry["status"] for entry in judge_sentences(["a.", "b.", "c."], [0.7, 0.3, 0.6])]
    ['right', 'wrong', 'right']
    """
    total = sum(scores)
    entries: list[Sentence] = []
    for text, score in zip(sentences, scores, strict=True):
        entry = Sentence(text=text, score=score)
        if not np.isnan(total):
            others = (total - score) / (len(scores) - 1)
            entry["status"] = "wrong" if score < LEAST_SHARE * others else "right"
        entries.append(entry)
    return entries
