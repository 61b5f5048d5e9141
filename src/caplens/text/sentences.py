"""The sentences of a long text, and texts cut into parts that an encoder can read whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from caplens.core.types import Floats, Vectors, narrow_unit

MOST = 32
"""Parts of a text that are read."""
_ABBREVIATIONS = frozenset(
    {"mr.", "mrs.", "ms.", "dr.", "st.", "mt.", "prof.", "sr.", "jr.", "vs.", "approx.", "e.g.", "i.e.", "ft.", "fig."}
)
"""What a sentence hardly ever ends with; a single letter, such as an initial, is another."""
LONGEST_ABBREVIATION = 16
"""Characters before the end of a sentence that are looked at; more would make a text of abbreviations slow."""
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*(\s+)|(?<=[。！？])(?![\"'”’」』）])|([\r\n]+)")
_CLAUSE = re.compile(r"(?<=[,;:—、，；：])\s*")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order; a text without an end of a sentence inside it is one.

    >>> split_sentences('A dog runs. It is 3.5 ft. long! "Look?" Mr. Smith waits.')
    ['A dog runs.', 'It is 3.5 ft. long!', '"Look?"', 'Mr. Smith waits.']
    >>> split_sentences("一只猫。两只狗！")
    ['一只猫。', '两只狗！']
    """
    sentences, start = [], 0
    for end in _SENTENCE.finditer(text):
        tail = text[max(start, end.start() - LONGEST_ABBREVIATION) : end.start()]
        before = tail.rpartition(" ")[2].lower().lstrip("\"'“‘([")
        if end[1] is not None and (before in _ABBREVIATIONS or re.fullmatch(r"\w\.", before)):
            continue
        sentences.append(text[start : end.end()].strip())
        start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def surely_fits(text: str, tokens: int) -> bool:
    """Whether a text is so short that no tokenizer makes more tokens of it, start and end included."""
    return len(text) <= tokens - 2 and text.isascii()


def fitting_parts(text: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """Yield the text itself if it fits, else its sentences; a sentence that is too long by itself is cut further.

    >>> list(fitting_parts("a b c. d e f, g hi. it", lambda part: len(part.split()) <= 3))
    ['a b c.', 'd e f,', 'g hi.', 'it']
    """
    parts = [] if fits(text) else next((parts for split in _WAYS if len(parts := split(text)) > 1), [])
    if not parts:  # it fits, or is a single letter
        yield text
    for part in parts:
        yield from fitting_parts(part, fits)


def _clauses(text: str) -> list[str]:
    return [clause for clause in _CLAUSE.split(text) if clause.strip()]


def _halves(text: str) -> list[str]:
    """Cut in the middle, between words if there are several."""
    words = text.split()
    if len(words) > 1:
        return [" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])]
    return [half for half in (text[: len(text) // 2], text[len(text) // 2 :]) if half]


_WAYS: tuple[Callable[[str], list[str]], ...] = (split_sentences, _clauses, _halves)


@dataclass(frozen=True)
class TextParts:
    """Texts as parts that fit, one after another; most texts are one part, themselves.

    Of a text with more than `MOST` parts, a book, the first are taken: comparing books takes time and memory.
    """

    texts: list[str]
    """The parts of all texts."""
    ends: NDArray[np.int64]
    """Where the parts of each text end."""
    books: int = 0
    """How many texts have more parts than are taken."""

    @classmethod
    def of(cls, texts: Sequence[str], fits: Callable[[str], bool]) -> TextParts:
        """Cut every text that does not fit."""
        known = {text: list(islice(fitting_parts(text, fits), MOST + 1)) for text in dict.fromkeys(texts)}
        counts = [min(MOST, len(known[text])) for text in texts]
        flat = [part for text, count in zip(texts, counts, strict=True) for part in known[text][:count]]
        return cls(flat, np.cumsum(counts, dtype=np.int64), sum(len(known[text]) > MOST for text in texts))

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the parts of each text begin."""
        return np.concatenate([[0], self.ends[:-1]]).astype(np.int64)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many parts each text has."""
        return self.ends - self.starts

    @property
    def cut(self) -> int:
        """How many texts are more than one part."""
        return int((self.counts > 1).sum())

    def mean(self, values: Floats) -> Floats:
        """Return the mean over the parts of every text; a text of one part keeps its value to the last bit.

        >>> TextParts(["a.", "b.", "c"], np.array([2, 3])).mean(np.array([1.0, 2.0, 5.0]))
        array([1.5, 5. ])
        """
        return np.add.reduceat(values, self.starts) / self.counts if len(self.ends) else np.zeros(0)

    def mean_vectors(self, vectors: Vectors) -> Vectors:
        """Return a vector per text from those of the parts: the mean direction of several, one as it is."""
        if not self.cut:
            return vectors
        several = self.counts > 1
        joined = vectors[self.starts]
        joined[several] = narrow_unit(np.add.reduceat(narrow_unit(vectors), self.starts)[several])
        return joined
