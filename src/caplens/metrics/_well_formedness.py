"""The well-formedness of a caption, as the learned metric `caplens-score` sees it: what only gamed captions lack.

Word order, joints between words, repetition and length, held against what people write and against the references.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.storage import weights
from caplens.storage.digests import content_digest
from caplens.storage.identity import Identity
from caplens.text.idf import IdfTable
from caplens.text.ptb import tokenize
from caplens.text.stopwords import STOP_WORDS

# 0 for a well-formed caption, down to −1 for others.
WELL_FORMEDNESS = (
    "word order that people use",
    "words that join the others",
    "not repeating words",
    "not longer than people write",
)

# The share of known word pairs, less how much rarer than chance pairs are by kind; 95 % of people's captions have it.
USUAL_ORDER = 0.34
# What makes a list: so many neighbors are telling words that people do not put side by side, and besides "and" there
# are so few different function words for each telling word (both must hold).
UNKNOWN_NEIGHBOURS, JOINTS = 0.15, 0.15
# Or: of all steps from one telling word to the next so many, in a row, go by the same function words, and people do not
# say so: "a dog and a ball and a child".
SAME_JOINT = 0.3
LONGEST = 4
# A caption may be e^0.35 = 1.4 times as long as the longest reference: one of ten honest captions is longer than any.
LONGER = 0.35
STEPS = np.array([0.2, 1, 0.2, 0.35])
RAREST = -4.0
ENDINGS = ("ing", "ed", "s", "ly")


@dataclass(frozen=True)
class WordOrder:
    """Which words stand beside each other in people's captions."""

    known: frozenset[tuple[str, ...]]
    """Two to four words in a row, in captions of at least two pictures."""
    kinds: Counter[tuple[str, str]]
    """How often kinds of words do."""

    @classmethod
    @functools.cache
    def load(cls) -> WordOrder:
        """From the shipped counts."""
        table = IdfTable.load(weights.shipped("caplens-idf"))
        rows: list[tuple[str, ...]] = [(word,) for word in table.words]
        for prefix, last in zip(table.prefixes.tolist(), table.lasts.tolist(), strict=True):
            rows.append((*rows[prefix], table.words[last]))
        kinds: Counter[tuple[str, str]] = Counter()
        for row, count in zip(rows, table.frequencies.tolist(), strict=True):
            if len(row) == 2:
                kinds[kind(row[0]), kind(row[1])] += count
        return cls(frozenset(rows[len(table.words) :]), kinds)

    @functools.cached_property
    def _margins(self) -> tuple[Counter[str], Counter[str], int]:
        firsts: Counter[str] = Counter()
        lasts: Counter[str] = Counter()
        for (first, last), count in self.kinds.items():
            firsts[first] += count
            lasts[last] += count
        return firsts, lasts, self.kinds.total()

    def usual(self, words: Sequence[str], near: Set[tuple[str, ...]]) -> float:
        """The share of neighbors that are known here or `near`, less the mean rarity of all neighbors' kinds."""
        pairs = list(itertools.pairwise(words))
        if not pairs:
            return USUAL_ORDER
        return sum((pair in self.known or pair in near) + self.rarity(*pair) for pair in pairs) / len(pairs)

    def rarity(self, word: str, next_word: str) -> float:
        """0, or for kinds of words that people put together more rarely than chance would, its logarithm."""
        pair = kind(word), kind(next_word)
        firsts, lasts, total = self._margins
        by_chance = firsts[pair[0]] * lasts[pair[1]] / total
        return max(RAREST, min(0.0, math.log((self.kinds[pair] + 0.5) / (by_chance + 0.5))))

    def listed(self, words: Sequence[str], near: Set[tuple[str, ...]]) -> float:
        """0 to 1: how far words stand side by side, or behind the same joint again and again, as in a list."""
        return max(self._side_by_side(words, near), self._behind_one_joint(words, near))

    def _side_by_side(self, words: Sequence[str], near: Set[tuple[str, ...]]) -> float:
        """Telling words beside each other, where "and" is no more than a comma."""
        pairs = list(itertools.pairwise(word for word in words if word != "and"))
        unjoined = [pair for pair in pairs if not ({*pair} & STOP_WORDS or pair in self.known or pair in near)]
        joints = len({*words} & STOP_WORDS - {"and"}) / max(1, sum(word not in STOP_WORDS for word in words))
        unknown = len(unjoined) / max(1, len(pairs))
        return min(max(0.0, unknown / UNKNOWN_NEIGHBOURS - 1), max(0.0, (JOINTS - joints) / 0.1), 1.0)

    def _behind_one_joint(self, words: Sequence[str], near: Set[tuple[str, ...]]) -> float:
        """Telling words that the same function words join, twice in a row or more."""
        telling = [position for position, word in enumerate(words) if word not in STOP_WORDS]
        steps = [tuple(words[start : end + 1]) for start, end in itertools.pairwise(telling)]
        joints = ((step[1:-1], step in self.known or step in near) for step in steps)
        runs = ((joint, known, len(list(run))) for (joint, known), run in itertools.groupby(joints))
        unusual = sum(length for joint, known, length in runs if joint and not known and length > 1)
        return min(max(0.0, unusual / max(1, len(steps)) - SAME_JOINT) / 0.1, 1.0)


def kind(word: str) -> str:
    """A function word is its own kind; other words go by their ending.

    >>> [kind(word) for word in "a dog running on the stones".split()]
    ['a', '*', '*ing', 'on', 'the', '*s']
    """
    return word if word in STOP_WORDS else "*" + next((ending for ending in ENDINGS if word.endswith(ending)), "")


def rows_of(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Two to four words in a row.

    >>> rows_of(["a", "dog", "runs"])
    [('a', 'dog'), ('dog', 'runs'), ('a', 'dog', 'runs')]
    """
    sizes = range(2, LONGEST + 1)
    return [tuple(words[start : start + size]) for size in sizes for start in range(len(words) - size + 1)]


def well_formedness_identity() -> Identity:
    """What the features of `WELL_FORMEDNESS` depend on besides the captions."""
    return Identity.of({"counts": content_digest(weights.shipped("caplens-idf")), "code": well_formedness})


def well_formedness(work: Workspace) -> Floats:
    """Return the features of `WELL_FORMEDNESS`: all 0 for nearly every honest caption, so they only mark gamed ones."""
    references = work.captions.references or []
    texts = list(dict.fromkeys([*work.captions.candidates, *(text for each in references for text in each)]))
    words = {text: line.split() for text, line in zip(texts, tokenize(texts), strict=True)}
    telling = {text: [word for word in tokens if word not in STOP_WORDS] for text, tokens in words.items()}
    again = {text: len(tokens) - len(set(tokens)) for text, tokens in telling.items()}
    order, features = WordOrder.load(), np.zeros((len(work.captions), len(WELL_FORMEDNESS)))
    for row, (candidate, each) in enumerate(zip(work.captions.candidates, references, strict=True)):
        own = words[candidate]
        if not own:  # no caption at all
            features[row] = -np.inf
            continue
        near = {row for text in each for row in rows_of(words[text])}
        repeated = max(0, again[candidate] - max(again[text] for text in each)) / max(1, len(telling[candidate]))
        longest = max(len(words[text]) for text in each)
        longer = math.log(len(own) / max(1, longest)) - LONGER
        features[row] = order.usual(own, near) - USUAL_ORDER, -order.listed(own, near), -repeated, -longer
    # From well-formed to not within a small step; worse than bad is not punished more.
    return np.asarray(np.clip(features / STEPS, -1, 0))
