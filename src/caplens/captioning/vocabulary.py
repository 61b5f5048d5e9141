"""Words to numbers and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from caplens.text.ptb import tokenize

END, UNKNOWN = 0, 1
"""The end of a caption (also its padding and its start), and any word that is not in the vocabulary."""


@dataclass(frozen=True)
class Vocabulary:
    """The words a captioner can say; `words[0]` and `words[1]` stand for the end and for unknown words.

    >>> vocabulary = Vocabulary.from_captions(["A dog runs.", "a dog sleeps"], least=2)
    >>> vocabulary.words
    ('<end>', '<unknown>', 'a', 'dog')
    >>> vocabulary.encode(["a dog runs"]), vocabulary.decode([[2, 3, 0, 0]])
    ([[2, 3, 1]], ['a dog'])
    """

    words: tuple[str, ...]
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_numbers", {word: number for number, word in enumerate(self.words)})

    @classmethod
    def from_captions(cls, captions: Iterable[str], least: int = 5) -> Vocabulary:
        """All words that occur at least so often, the most frequent first."""
        counts = Counter(word for text in tokenize(list(captions)) for word in text.split())
        kept = sorted(
            (word for word, count in counts.items() if count >= least), key=lambda word: (-counts[word], word)
        )
        return cls(("<end>", "<unknown>", *kept))

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, captions: Sequence[str], longest: int | None = None) -> list[list[int]]:
        """Word numbers of each caption, cut at `longest` words, without the end."""
        return [
            [self._numbers.get(word, UNKNOWN) for word in text.split()[:longest]] for text in tokenize(list(captions))
        ]

    def decode(self, captions: Iterable[Iterable[int]]) -> list[str]:
        """Text of each row of numbers, up to its end."""
        return [" ".join(self._spoken(numbers)) for numbers in captions]

    def _spoken(self, numbers: Iterable[int]) -> Iterable[str]:
        for number in numbers:
            if number == END:
                return
            yield self.words[number]
