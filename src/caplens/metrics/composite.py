"""caplens, the learned composite: does the caption fit the picture that the references, and the picture, tell of?

A logistic model over eleven features that all grow with quality, learned without any rated set: the more a caption has
of one of them, the higher it scores. docs/composite.md says what it was trained on and how far it gets.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caplens import weights
from caplens.encoders.sentence import load_sentence_encoder
from caplens.errors import InputError
from caplens.metrics.base import Floats, Metric, Statistics, Workspace, reference_counts, register
from caplens.metrics.network import Contributions, Network
from caplens.metrics.sentsim import places, to_references
from caplens.metrics.spice import Spice
from caplens.text.idf import IdfTable
from caplens.text.ptb import tokenise
from caplens.text.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from caplens.encoders.embedded import Head

ENCODER = "all-MiniLM-L6-v2"
HEADS = "contrastive"
# The caption's nearest so many of the bank's say how usual it is; itself (a cosine of 1) is not one of them.
NEIGHBOURS = 10
SAME = 0.999
# The share of known word pairs, less how much rarer than chance pairs are by kind; 95 % of people's captions have it.
USUAL_ORDER = 0.34
# What makes a list: so many neighbours are telling words that people do not put side by side, and besides "and" there
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

MEANING = (
    "meaning of the nearest reference",
    "meaning of the references together",
    "nearest reference, as a picture shows it",
    "references together, as a picture shows them",
    "objects, attributes and relations (SPICE)",
    "not a caption for many pictures",
)
PICTURE = "fit to the picture, beyond what the references foresee"
# 0 for a caption with good manners, down to −1 for others.
MANNERS = (
    "word order that people use",
    "words that join the others",
    "not repeating words",
    "not longer than people write",
)
FEATURES = (*MEANING, PICTURE, *MANNERS)


@register
class Composite(Metric):
    """0 to 1: the probability that the caption was written for this picture rather than for a similar one.

    Args:
        weights: "default", or a file of `caplens train composite`.
        picture: whether to look at pictures where captions have them.
    """

    name = "caplens"
    needs = frozenset({"references"})
    looks_at = frozenset({"image"})
    paper = ""
    summary = "learned composite of meaning, scene graph, picture (where given) and manners; hard to game"
    english_only = True

    def __init__(self, *, weights: str | os.PathLike[str] = "default", picture: bool = True) -> None:
        self.weights, self.picture = weights, picture

    def _path(self) -> Path:
        return weights.shipped("caplens") if os.fspath(self.weights) == "default" else Path(self.weights)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        path = self._path()
        load_network(path)
        return (
            ("weights", f"{path.stem}@{weights.digest(path)[:12]}"),
            ("encoder", ENCODER),
            *Spice().signature_parts(),
            ("picture", "where-given" if self.picture else "no"),
        )

    def statistics(self, work: Workspace) -> Statistics:
        network = load_network(self._path())
        features = np.zeros((len(work.captions), len(FEATURES)))
        features[:, : len(MEANING)] = meaning(work, network.extra["bank"])
        features[:, len(MEANING) + 1 :] = manners(work)
        notes: tuple[str, ...] = ()
        facts = {"references": reference_counts(work.captions.references or [])}
        if self.picture and work.captions.images is not None:
            fit = picture_fit(work)
            seen = ~np.isnan(fit)
            features[seen, len(MEANING)] = (fit - foreseen(features, network.extra["foreseen"]))[seen]
            facts["pictures"] = "all" if seen.all() else str(int(seen.sum()))
            if not seen.all():
                notes = (f"{int((~seen).sum())} captions have no picture that can be read: judged by references alone",)
        return Statistics(network(features)[:, None], Contributions(network, features), notes, facts=facts)


@functools.lru_cache(maxsize=4)
def load_network(path: Path) -> Network:
    """A network with these inputs."""
    network = Network.load(path)
    if network.features != FEATURES or not {"bank", "foreseen"} <= network.extra.keys():
        raise InputError(f"these weights take {', '.join(network.features)}", where=str(path), remedy="train them anew")
    return network


def meaning(work: Workspace, bank: NDArray[np.floating]) -> Floats:
    """The features of `MEANING`, one row per caption; `bank` holds sentence vectors of captions of other pictures."""
    place = places(work.captions)
    sentences = load_sentence_encoder(ENCODER).encode(list(place), work.progress).astype(np.float64)
    columns = np.zeros((len(work.captions), len(MEANING)))
    for first, vectors in ((0, sentences), (2, in_joint_space(sentences))):
        columns[:, first], columns[:, first + 1] = to_references(vectors, place, work.captions)
    columns[:, 4] = work.result(Spice()).scores
    own = sorted({place[text] for text in work.captions.candidates})
    usual = np.zeros(len(place))
    usual[own] = usualness(sentences[own], bank)
    columns[:, 5] = -usual[[place[text] for text in work.captions.candidates]]
    return columns


def usualness(sentences: Floats, bank: NDArray[np.floating]) -> Floats:
    """Mean cosine to the nearest captions of the bank, which are of other pictures."""
    cosines = sentences @ bank.astype(np.float64).T
    cosines[cosines > SAME] = -1
    count = min(NEIGHBOURS, cosines.shape[1])
    return np.asarray(np.partition(cosines, -count, axis=1)[:, -count:].mean(axis=1))


def in_joint_space(sentences: Floats) -> Floats:
    """Sentence vectors through the text head of the embedded image-text encoder, at unit length: no picture needed."""
    made = _text_head()(sentences.astype(np.float32)).astype(np.float64)
    return np.asarray(made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12))


@functools.cache
def _text_head() -> Head:
    from caplens.encoders.embedded import heads_path, read_heads

    return read_heads(heads_path(HEADS))[1]


def picture_fit(work: Workspace) -> Floats:
    """Cosine of caption and picture in the embedded encoder's space; NaN where there is no picture."""
    from caplens.encoders.base import unit
    from caplens.metrics.clipscore import ClipScore

    pictures = ClipScore(encoder="embedded").seen(work).vectors.astype(np.float64)
    sentences = load_sentence_encoder(ENCODER).encode(work.captions.candidates).astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", in_joint_space(sentences), unit(pictures)))


def foreseen(features: Floats, coefficients: Floats) -> Floats:
    """The picture's cosine that captions with such features of `MEANING` have on average."""
    made: Floats = features[:, : len(MEANING)] @ coefficients[:-1] + coefficients[-1]
    return made


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
        for (one, other), count in self.kinds.items():
            firsts[one] += count
            lasts[other] += count
        return firsts, lasts, self.kinds.total()

    def usual(self, words: Sequence[str], near: Set[tuple[str, ...]]) -> float:
        """The share of neighbours that are known here or `near`, less the mean rarity of all neighbours' kinds."""
        pairs = list(itertools.pairwise(words))
        if not pairs:
            return USUAL_ORDER
        return sum((pair in self.known or pair in near) + self.rarity(*pair) for pair in pairs) / len(pairs)

    def rarity(self, one: str, other: str) -> float:
        """0, or for kinds of words that people put together more rarely than chance would, its logarithm."""
        pair = kind(one), kind(other)
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
        telling = [place for place, word in enumerate(words) if word not in STOP_WORDS]
        steps = [tuple(words[one : other + 1]) for one, other in itertools.pairwise(telling)]
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


def manners(work: Workspace) -> Floats:
    """The features of `MANNERS`: all 0 for nearly every honest caption, so that they only tell gamed ones apart."""
    references = work.captions.references or []
    texts = list(dict.fromkeys([*work.captions.candidates, *(text for each in references for text in each)]))
    words = {text: line.split() for text, line in zip(texts, tokenise(texts), strict=True)}
    telling = {text: [word for word in tokens if word not in STOP_WORDS] for text, tokens in words.items()}
    again = {text: len(tokens) - len(set(tokens)) for text, tokens in telling.items()}
    order, made = WordOrder.load(), np.zeros((len(work.captions), len(MANNERS)))
    for row, (candidate, each) in enumerate(zip(work.captions.candidates, references, strict=True)):
        own = words[candidate]
        if not own:  # no caption at all
            made[row] = -np.inf
            continue
        near = {row for text in each for row in rows_of(words[text])}
        repeated = max(0, again[candidate] - max(again[text] for text in each)) / max(1, len(telling[candidate]))
        longest = max(len(words[text]) for text in each)
        longer = math.log(len(own) / max(1, longest)) - LONGER
        made[row] = order.usual(own, near) - USUAL_ORDER, -order.listed(own, near), -repeated, -longer
    # From good to bad manners within a small step; worse than bad is not punished more.
    return np.asarray(np.clip(made / STEPS, -1, 0))
