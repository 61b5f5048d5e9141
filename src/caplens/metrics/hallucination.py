"""hallucination: does the caption say things that are not in the picture? Any things, without a language model.

After ALOHa: S. Petryk, D. M. Chan, A. Kachinthaya, H. Zou, J. Canny, J. E. Gonzalez, T. Darrell. ALOHa: a new measure
for hallucination in captioning models. NAACL 2024. Theirs lets a language model find the objects; here the parser of
SPICE does, and WordNet and COCO's names help the sentence vectors to tell kinds of things apart. Beyond theirs, every
word that says something is judged, by what the references say in like context (as BERTScore matches tokens).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caplens.core.captions import stretches
from caplens.core.details import AnyDetails, Details, Status, Word
from caplens.core.types import Floats, Vectors
from caplens.core.workspace import Workspace
from caplens.encoders.sentence import SentenceEncoder, load_sentence_encoder
from caplens.metrics import _options as options
from caplens.metrics._seen_objects import ObjectMetric
from caplens.metrics.base import Resources, Statistics, reference_counts, register
from caplens.metrics.spice import Spice, claims_fact, parsed_parts
from caplens.storage import weights
from caplens.text.coco_objects import coco_objects
from caplens.text.object_labels import ObjectLabels
from caplens.text.stopwords import NEVER_WRONG
from caplens.text.tangible import ABOUT_THE_PICTURE, Tangible
from caplens.text.wordnet import WORDNET, WordNet
from caplens.text.words import Word as TaggedWord
from caplens.text.words import split_words, tag_words

EXCLUSIVE = 0.5
"""What likeness counts to a COCO object or a number that is not there. A cat is like a dog, and is none; and people
mention COCO's objects where they see them. Chosen among 0, 0.5 and 1 on FOIL and on foils made from Flickr30k."""
OBJECT_WEIGHT = 0.25
"""The power of an object's assignment beside the likeness in context: chosen on exchanged words (tools/word_foils)."""
NUMBERS = {"couple": "two", "pair": "two", "both": "two", "2": "two", "3": "three", "4": "four", "5": "five"}
"""Other ways to say a number."""
WRONG_BELOW = 0.3
"""Score below which a word counts as wrong where words are shown; the metric itself has no threshold. Of exchanged
words 62 % are below it, of people's own words 13 %."""
TEXTS_AT_ONCE = 6000
"""Words of so many texts are in memory as vectors."""


@register
class Hallucination(ObjectMetric):
    """How well references, or the picture's objects, support the caption's least supported word.

    Args:
        parser: a parser by name (`caplens weights list`) or the folder of a spaCy pipeline.
        text_encoder: the sentence encoder that says how alike two words are.
    """

    name = "hallucination"
    paper = "after Petryk et al. 2024, NAACL (ALOHa)"
    summary = "how well references or detections support the least supported word, from 0 to 1"

    def __init__(
        self,
        *,
        parser: str | os.PathLike[str] = "en_core_web_md",
        text_encoder: str | os.PathLike[str] = "all-MiniLM-L6-v2",
        **seen: Any,
    ) -> None:
        super().__init__(**seen)
        self.parser = options.path("parser", parser, "name or a folder of a parser")
        self.text_encoder = options.path("text_encoder", text_encoder, "name or a folder of a sentence encoder")
        self._spice = Spice(parser=self.parser)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        encoder = ("encoder", weights.signature_name(self.text_encoder))
        return (*self._spice.signature_parts(), encoder, *super().signature_parts())

    def resources(self) -> Resources:
        own = {"text encoder": weights.model_digest(self.text_encoder), "objects": coco_objects().digest}
        return {**own, **self._spice.resources(), **super().resources()}

    def statistics(self, work: Workspace) -> Statistics:
        captions = work.captions
        references = captions.references or [[]] * len(captions)
        finder = _ObjectFinder(self._spice)
        encoder = load_sentence_encoder(self.text_encoder)
        parts = parsed_parts([*captions.candidates, *(text for row in references for text in row)])
        objects = finder.find(parts, work)
        seen = self.seen(work)
        pool = sorted({name for found in objects.values() for name in found}.union(*seen.names))
        likeness = _Likeness(pool, encoder.encode(pool, work.progress), finder)
        scores, details = np.ones(len(captions)), list[AnyDetails]()
        for rows, texts in stretches(captions, TEXTS_AT_ONCE):
            context = _Context.of(texts, weights.require(self.parser), encoder)
            for row in rows:
                candidate = captions.candidates[row]
                named = [name for name in objects[candidate] if finder.is_tangible(name)]
                there = [*sorted(seen.names[row]), *(name for text in references[row] for name in objects[text])]
                assigned = dict(zip(named, match_objects(likeness.of(named, there), there), strict=True))
                words, said = context.words(candidate), context.supports(candidate, references[row])
                supports = _judge(words, said, assigned, seen.names[row], finder)
                scores[row] = min((support.score for support in supports if support is not None), default=1.0)
                details.append(_details(words, supports))
            work.progress("judging words", rows.stop, len(captions))
        scores[list(seen.failures)] = np.nan
        facts = {"references": reference_counts(references), **claims_fact(parts)}
        return Statistics(scores[:, None], details=details, failures=seen.failures, facts=facts)


class Support(NamedTuple):
    """How well an object or a word of the caption is supported, and by what."""

    score: float
    match: str


def match_objects(likeness: Floats, there: Sequence[str]) -> list[Support]:
    """Return the support of each object (row) by another thing that is there (column), so that the sum is greatest.

    >>> match_objects(np.array([[1.0, 0.9], [0.8, 0.1], [0.5, 0.4]]), ["dog", "wolf"])
    [Support(score=0.9, match='wolf'), Support(score=0.8, match='dog'), Support(score=0.0, match='')]
    """
    from scipy.optimize import linear_sum_assignment  # 23 MB, and this file is imported with every other metric

    supports = [Support(0.0, "")] * len(likeness)
    rows, columns = linear_sum_assignment(likeness, maximize=True)
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        supports[row] = Support(float(likeness[row, column]), there[column])
    return supports


class _ObjectFinder:
    """The things that texts name, as base forms: what the parser takes for objects, and COCO's objects."""

    def __init__(self, spice: Spice) -> None:
        self._store = spice.proposition_store()
        self.wordnet: WordNet = self._store.wordnet
        self._coco = coco_objects()
        tangible = Tangible(self.wordnet)
        self.coco_name, self.is_tangible = tangible.coco_name, tangible.is_tangible

    def find(self, parts: Mapping[str, tuple[str, ...]], work: Workspace) -> dict[str, list[str]]:
        """Return the objects of every text, given with its tokenized parts, each once."""
        parsed = self._store.of(
            [part for tokenized in parts.values() for part in tokenized],
            lambda done, total: work.progress("parsing captions", done, total),
        )
        found = {}
        for text, tokenized in parts.items():
            objects = [claim[0] for part in tokenized for claim in parsed[part] if len(claim) == 1]
            words = [self.base(word) for word in split_words(text)]
            within = {word for name in objects for word in name.split()}
            more = (words[start:stop] for start, stop, _ in self._coco.mentions(words))
            found[text] = list(dict.fromkeys([*objects, *(" ".join(name) for name in more if within.isdisjoint(name))]))
        return found

    def base(self, word: str) -> str:
        """The singular of a word, in small letters."""
        return self.wordnet.base(word.lower(), "noun")


class _Likeness:
    """How far one thing vouches for another, from 0 to 1."""

    def __init__(self, pool: Sequence[str], vectors: Vectors, finder: _ObjectFinder) -> None:
        self._place = {name: place for place, name in enumerate(pool)}
        self._vectors = vectors
        self._coco_name = finder.coco_name
        self._means = ObjectLabels(weights.require(WORDNET)).means

    def of(self, named: Sequence[str], there: Sequence[str]) -> Floats:
        """One row per thing that is named, one column per thing that is there."""
        likeness = np.zeros((len(named), len(there)))
        if likeness.size:
            columns = self._vectors[[self._place[name] for name in there]]
            likeness += np.clip(self._vectors[[self._place[name] for name in named]] @ columns.T, 0, 1)
        for row, name in enumerate(named):
            if self._coco_name(name) is not None:
                likeness[row] *= EXCLUSIVE
            likeness[row, [column for column, other in enumerate(there) if self._is_one(name, other)]] = 1.0
        return likeness

    def _is_one(self, name: str, other: str) -> bool:
        """Whether the two are the same, or one a kind of the other."""
        kind = self._coco_name(name)
        same = name == other or (kind is not None and kind == self._coco_name(other))
        return same or self._means(name, other) or self._means(other, name)


class _Context:
    """Words as they are meant in their sentences: which word of the references comes nearest."""

    def __init__(self, tagged: Mapping[str, Sequence[TaggedWord]], vectors: Mapping[str, Vectors]) -> None:
        self._tagged, self._vectors = tagged, vectors

    @classmethod
    def of(cls, texts: Sequence[str], parser: Path, encoder: SentenceEncoder) -> _Context:
        """Tag and encode the words of all texts."""
        tagged = tag_words(texts, parser)
        vectors = encoder.encode_words([[word.text.lower() for word in words] for words in tagged])
        return cls(dict(zip(texts, tagged, strict=True)), dict(zip(texts, vectors, strict=True)))

    def words(self, text: str) -> list[str]:
        return [word.text for word in self._tagged[text]]

    def supports(self, candidate: str, references: Sequence[str]) -> list[Support | None]:
        """One entry per word of the caption; None where it says nothing, or no reference does."""
        words = self._tagged[candidate]
        if not references:
            return [None] * len(words)
        said = [word.text.lower() for text in references for word in self._tagged[text]] or [""]
        against = np.concatenate([self._vectors[text] for text in references])
        likeness = np.zeros((len(words), len(said)))
        if against.size:
            likeness += np.clip(self._vectors[candidate] @ against.T, 0, 1)
        numbers = {NUMBERS.get(word, word) for word in said}
        return [
            self._support(word, row, said, numbers) if word.semantic and word.text.lower() not in NEVER_WRONG else None
            for word, row in zip(words, likeness, strict=True)
        ]

    @staticmethod
    def _support(word: TaggedWord, likeness: Floats, said: Sequence[str], numbers: set[str]) -> Support:
        text, best = word.text.lower(), int(likeness.argmax())
        missing = word.tag == "CD" and NUMBERS.get(text, text) not in numbers
        match = "" if said[best] in NEVER_WRONG else said[best]  # which helps nobody who reads it
        return Support(float(likeness[best]) * (EXCLUSIVE if missing else 1), match)


def _judge(
    texts: Sequence[str],
    said: Sequence[Support | None],
    assigned: Mapping[str, Support],
    seen: frozenset[str],
    finder: _ObjectFinder,
) -> list[Support | None]:
    """Return the support of every word that is judged: by the references' words, and as an object that it names."""
    bases = [finder.base(text) for text in texts]
    judged = [None if base in ABOUT_THE_PICTURE else support for base, support in zip(bases, said, strict=True)]
    for name, thing in assigned.items():
        parts = name.split()
        for start in _places(bases, parts) or _places([text.lower() for text in texts], parts):
            for place in range(start, start + len(parts)):
                word = said[place]
                # What annotations or the detector have is there, whether or not a reference speaks of it.
                if word is None or thing.match in seen:
                    judged[place] = thing
                else:
                    judged[place] = Support(word.score * thing.score**OBJECT_WEIGHT, thing.match)
    return judged


def _places(words: Sequence[str], parts: Sequence[str]) -> list[int]:
    return [start for start in range(len(words) - len(parts) + 1) if list(words[start : start + len(parts)]) == parts]


def _details(texts: Sequence[str], supports: Sequence[Support | None]) -> Details:
    words: list[Word] = [{"text": text} for text in texts]
    for word, support in zip(words, supports, strict=True):
        if support is not None:
            word["score"], word["status"] = support.score, _status(word["text"].lower(), support)
            if support.match:
                word["match"] = support.match
    return {"words": words}


def _status(word: str, support: Support) -> Status:
    if support.score < WRONG_BELOW:
        return "wrong"
    return "exact" if word == support.match else "partly"
