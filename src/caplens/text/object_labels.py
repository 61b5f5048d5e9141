"""Whether a word of a caption can mean what a detector calls a thing: a puppy is a dog, a man is a person."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from caplens.native._kernels import english_stem
from caplens.storage import weights
from caplens.text.lexicon import MOST_WORDS, open_wordnet
from caplens.text.wordnet import WORDNET

GROUPS = ("people", "social group")
"""Words for several persons; WordNet does not count them as persons."""


def named(nouns: Sequence[str], labels: Sequence[str]) -> list[list[int]]:
    """For each noun the places of the labels it can mean; without WordNet on this machine, of its own stem.

    With the noun before it, it may be a name of two words.

    >>> named(["dogs", "hat", "", "fire", "hydrant"], ["dog", "person", "dog", "fire hydrant"])
    [[0, 2], [], [], [], [3]]
    """
    folder = weights.find(WORDNET)
    means = _same_stem if folder is None else _object_labels(folder).means
    found = []
    for before, noun in zip(["", *nouns], nouns, strict=False):
        forms = [noun.lower(), f"{before} {noun}".lower()] if before and noun else [noun.lower()]
        found.append(
            [place for place, label in enumerate(labels) if label and any(means(form, label) for form in forms)]
        )
    return found


def said_more_generally(label: str, nouns: Sequence[str]) -> bool:
    """Whether a noun stands for what the label is a kind of: who says toys has not left out the teddy bear.

    >>> said_more_generally("dining table", ["girl", "table"]), said_more_generally("dog", ["cat"])
    (True, False)
    """
    folder = weights.find(WORDNET)
    if folder is None:
        return any(_same_stem(noun, label.rpartition(" ")[2]) for noun in nouns)
    return any(_object_labels(folder).is_general(noun.lower(), label) for noun in nouns if noun)


@functools.cache
def _object_labels(folder: Path) -> ObjectLabels:
    return ObjectLabels(folder)


def _same_stem(noun: str, label: str) -> bool:
    return english_stem(noun) == english_stem(label)


class ObjectLabels:
    """Names of things against nouns, through a WordNet folder."""

    def __init__(self, wordnet: Path) -> None:
        self._wordnet = open_wordnet(wordnet)
        self.means = functools.lru_cache(MOST_WORDS)(self._means)
        self.is_general = functools.lru_cache(MOST_WORDS)(self._is_general)

    def _means(self, noun: str, label: str) -> bool:
        """Whether the noun's usual sense is a kind of the label, or any sense of it the label itself."""
        senses = self._senses(label)
        return not senses.isdisjoint(self._wordnet.kinds(noun)) or not senses.isdisjoint(self._wordnet.synsets(noun))

    def _is_general(self, noun: str, label: str) -> bool:
        """Whether the label is a kind of the noun, in the usual sense of both, or ends with it."""
        sense = self._wordnet.first(noun)
        last = label.rpartition(" ")[2]
        return sense is not None and (sense in self._wordnet.kinds(label) or sense == self._wordnet.first(last))

    def _senses(self, label: str) -> frozenset[int]:
        """What a label stands for; of a name WordNet lacks (sports ball) the last word counts."""
        own = self._wordnet.first(label) or self._wordnet.first(label.rpartition(" ")[2])
        names = {own} if own is not None else set()
        if label == "person":
            names |= {first for group in GROUPS if (first := self._wordnet.first(group)) is not None}
        return frozenset(names)
