"""CAPTURE: how well a detailed caption's objects, attributes and relations match those of a detailed reference.

H. Dong, J. Li, B. Wu, J. Wang, Y. Zhang, H. Guo. Benchmarking and improving detail image caption. 2024.

What is claimed comes from SPICE's parser here, sentence by sentence, instead of from a trained one. A kind of claim
that neither side makes is left out, where the authors' code counts it as wrong.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.details import Claim, Details, LazyDetails, Status
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics import _options as options
from caplens.metrics._sentences import judge_sentences
from caplens.metrics.base import Metric, Resources, Statistics, reference_counts, register
from caplens.metrics.spice import KINDS, Spice, parsed_parts
from caplens.storage import weights
from caplens.text.coco_objects import coco_objects
from caplens.text.scenegraph import Proposition
from caplens.text.sentences import split_sentences
from caplens.text.tangible import ABOUT_THE_PICTURE, Tangible

WEIGHTS = {"object": 5, "attribute": 5, "relation": 2}  # α, β, γ: section 3.2
WRONG_BELOW = 0.5
"""Support below which a claim counts as wrong where claims are shown; the metric itself has no threshold."""

Said = tuple[str, ...]
"""What is compared of a claim: the object, the attribute without its object, or subject, relation and object."""


@register
class Capture(Metric):
    """Weighted mean of the F1 of objects, attributes and relations, matched as such, by synonyms, and softly.

    Args:
        parser: a parser by name (`caplens weights list`) or the folder of a spaCy pipeline.
        text_encoder: the sentence encoder of the soft matches; the authors take all-mpnet-base-v2.
    """

    name = "capture"
    needs = frozenset({"references"})
    paper = "Dong et al. 2024 (after CAPTURE)"
    summary = "objects, attributes and relations of detailed captions, with synonyms and soft matches"
    english_only = True

    def __init__(
        self,
        *,
        parser: str | os.PathLike[str] = "en_core_web_md",
        text_encoder: str | os.PathLike[str] = "all-MiniLM-L6-v2",
    ) -> None:
        self.parser = options.path("parser", parser, "name or a folder of a parser")
        self.text_encoder = options.path("text_encoder", text_encoder, "name or a folder of a sentence encoder")
        self._spice = Spice(parser=self.parser)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (*self._spice.signature_parts(), ("encoder", weights.signature_name(self.text_encoder)))

    def resources(self) -> Resources:
        own = {"text encoder": weights.model_digest(self.text_encoder), "objects": coco_objects().digest}
        return {**own, **self._spice.resources()}

    def statistics(self, work: Workspace) -> Statistics:
        captions, references = work.captions, work.captions.references or []
        texts = dict.fromkeys([*captions.candidates, *(text for row in references for text in row)])
        claims = self._claims(list(texts), work)
        matcher = self._matcher(claims, work)

        @functools.cache  # several people rate one caption, and each is a row
        def score(candidate: str, text: str) -> float:
            return score_of(matcher.match(claims[candidate], claims[text]))

        scores = np.empty(len(captions))
        for row, (candidate, each) in enumerate(zip(captions.candidates, references, strict=True)):
            scores[row] = np.mean([score(candidate, text) for text in each])
        return Statistics(
            scores[:, None],
            details=MatchedClaims(captions, claims, matcher),
            facts={"references": reference_counts(references)},
        )

    def _claims(self, texts: Sequence[str], work: Workspace) -> dict[str, Claims]:
        """What every text claims, sentence by sentence; things that cannot be pointed at are no objects."""
        store = self._spice.proposition_store()
        sentences = {text: split_sentences(text) for text in texts}
        parts = parsed_parts([sentence for each in sentences.values() for sentence in each])
        parsed = store.of(
            [part for tokenized in parts.values() for part in tokenized],
            lambda done, total: work.progress("parsing captions", done, total),
        )
        is_tangible = Tangible(store.wordnet).is_tangible

        def is_of_the_picture(claim: Proposition) -> bool:
            if len(claim) == 1:
                return is_tangible(claim[0])
            return ABOUT_THE_PICTURE.isdisjoint(claim[:2])

        found = {}
        for text, each in sentences.items():
            said = [[claim for part in parts[sentence] for claim in parsed[part]] for sentence in each]
            found[text] = Claims(each, [[*filter(is_of_the_picture, _with_objects(own))] for own in said])
        return found

    def _matcher(self, claims: dict[str, Claims], work: Workspace) -> Matcher:
        phrases = sorted({" ".join(said) for text in claims.values() for kind in WEIGHTS for said in text.said[kind]})
        vectors = load_sentence_encoder(self.text_encoder).encode(phrases, work.progress)
        place = {phrase: number for number, phrase in enumerate(phrases)}
        synsets = self._spice.proposition_store().wordnet.synsets

        def alike(mine: Sequence[Said], theirs: Sequence[Said]) -> Floats:
            rows, columns = ([place[" ".join(said)] for said in side] for side in (mine, theirs))
            return np.maximum(vectors[rows].astype(np.float64) @ vectors[columns].T.astype(np.float64), 0.0)

        def means_the_same(one: str, other: str) -> bool:
            words, others = set(one.split()), set(other.split())
            return words <= others or others <= words or not synsets(one).isdisjoint(synsets(other))

        return Matcher(alike, means_the_same)


def _with_objects(claims: Sequence[Proposition]) -> list[Proposition]:
    """The claims, and of everything that has an attribute or a relation that it is there.

    >>> _with_objects([("tower", "sky", "under"), ("sky", "blue")])
    [('tower',), ('sky',), ('tower', 'sky', 'under'), ('sky', 'blue')]
    """
    named = [(name,) for claim in claims for name in (claim[:2] if len(claim) == 3 else claim[:1])]
    return list(dict.fromkeys([*named, *claims]))


@dataclass
class Claims:
    """The sentences of a text and what each claims."""

    sentences: list[str]
    of_sentence: list[list[Proposition]]

    @functools.cached_property
    def of(self) -> Mapping[str, list[Proposition]]:
        """The distinct claims of every kind, in the order of the text."""
        distinct = dict.fromkeys(claim for own in self.of_sentence for claim in own)
        return {kind: [claim for claim in distinct if KINDS[len(claim)] == kind] for kind in WEIGHTS}

    @functools.cached_property
    def said(self) -> Mapping[str, list[Said]]:
        """What is compared of them."""
        return {kind: [said(claim) for claim in claims] for kind, claims in self.of.items()}


def said(claim: Proposition) -> Said:
    """Return what is compared of a claim.

    >>> said(("dog",)), said(("dog", "brown")), said(("dog", "mat", "be on"))
    (('dog',), ('brown',), ('dog', 'on', 'mat'))
    """
    if len(claim) < 3:
        return claim[-1:]
    return claim[0], claim[2].removeprefix("be "), claim[1]


class Matched(NamedTuple):
    """How far each claim of either side is supported by the other, and by which place there (-1 by none)."""

    mine: Floats
    theirs: Floats
    partner: list[int]
    exact: list[bool]


class Matcher:
    """Three stages: the same words, synonyms, and for what is left the most alike that is left on the other side."""

    def __init__(
        self,
        alike: Callable[[Sequence[Said], Sequence[Said]], Floats],
        means_the_same: Callable[[str, str], bool],
    ) -> None:
        self._alike, self._means_the_same = alike, means_the_same

    def match(self, mine: Claims, theirs: Claims) -> dict[str, Matched]:
        """The claims of a caption and of one reference, kind by kind."""
        return {kind: self.match_kind(mine.said[kind], theirs.said[kind]) for kind in WEIGHTS}

    def match_kind(self, mine: Sequence[Said], theirs: Sequence[Said]) -> Matched:
        partner = [-1] * len(mine)
        free = dict.fromkeys(range(len(theirs)))
        for same in (Said.__eq__, self._are_synonyms):
            for place, own in enumerate(mine):
                if partner[place] < 0:
                    found = next((other for other in free if same(own, theirs[other])), None)
                    if found is not None:
                        partner[place] = found
                        del free[found]
        exact = [place >= 0 and mine[number] == theirs[place] for number, place in enumerate(partner)]
        own_left = [number for number, place in enumerate(partner) if place < 0]
        mine_supported, theirs_supported = np.ones(len(mine)), np.ones(len(theirs))
        left = list(free)
        mine_supported[own_left], theirs_supported[left] = 0.0, 0.0
        if own_left and left:
            alike = self._alike([mine[number] for number in own_left], [theirs[place] for place in left])
            mine_supported[own_left], theirs_supported[left] = alike.max(axis=1), alike.max(axis=0)
            for number, best in zip(own_left, alike.argmax(axis=1).tolist(), strict=True):
                partner[number] = left[best]
        return Matched(mine_supported, theirs_supported, partner, exact)

    def _are_synonyms(self, one: Said, other: Said) -> bool:
        return all(map(self._means_the_same, one, other))


def f1_of(matched: Matched) -> float | None:
    """F1 of what the caption claims and what the reference claims; None where neither claims anything."""
    if not len(matched.mine) and not len(matched.theirs):
        return None
    if not len(matched.mine) or not len(matched.theirs):
        return 0.0
    precision, recall = float(matched.mine.mean()), float(matched.theirs.mean())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def score_of(by_kind: dict[str, Matched]) -> float:
    """The weighted mean of F1 over the kinds that there are; 0 where nothing is claimed."""
    parts = [(WEIGHTS[kind], f1) for kind, matched in by_kind.items() if (f1 := f1_of(matched)) is not None]
    return sum(weight * f1 for weight, f1 in parts) / sum(weight for weight, _ in parts) if parts else 0.0


class MatchedClaims(LazyDetails):
    """Every claim of a caption with its support, and what is missing."""

    def __init__(self, captions: CaptionSet, claims: Mapping[str, Claims], matcher: Matcher) -> None:
        self._captions, self._claims, self._matcher = captions, claims, matcher

    def __len__(self) -> int:
        return len(self._captions)

    def of(self, row: int) -> Details:
        mine = self._claims[self._captions.candidates[row]]
        theirs = [self._claims[text] for text in (self._captions.references or [])[row]]
        return _details(mine, theirs, [self._matcher.match(mine, claims) for claims in theirs])


def _details(mine: Claims, theirs: Sequence[Claims], matched: Sequence[dict[str, Matched]]) -> Details:
    tuples: list[Claim] = []
    support: dict[Proposition, float] = {}
    for kind in WEIGHTS:
        for number, claim in enumerate(mine.of[kind]):
            best = max(range(len(matched)), key=lambda which: float(matched[which][kind].mine[number]), default=None)
            entry: Claim = {"text": _shown(claim), "kind": kind, "status": "wrong", "score": 0.0}
            if best is not None:
                found = matched[best][kind]
                entry["score"] = support[claim] = float(found.mine[number])
                entry["status"] = _status(support[claim], found.exact[number])
                if found.partner[number] >= 0 and not found.exact[number]:
                    entry["note"] = f"matches “{' '.join(theirs[best].said[kind][found.partner[number]])}”"
            tuples.append(entry)
    kinds = {kind: [f1 for each in matched if (f1 := f1_of(each[kind])) is not None] for kind in WEIGHTS}
    details: Details = {
        "tuples": tuples,
        "missing": _missing(theirs, matched),
        "categories": {kind.capitalize(): float(np.mean(each)) if each else None for kind, each in kinds.items()},
    }
    if len(mine.sentences) > 1:
        scores = [float(np.mean([support[claim] for claim in own])) if own else 1.0 for own in mine.of_sentence]
        details["sentences"] = judge_sentences(mine.sentences, scores)
    return details


def _shown(claim: Proposition) -> list[str]:
    return list(said(claim) if len(claim) == 3 else claim)


def _missing(theirs: Sequence[Claims], matched: Sequence[dict[str, Matched]]) -> list[Any]:
    """Objects of the references that nothing in the caption is like."""
    left: dict[str, float] = {}
    for claims, by_kind in zip(theirs, matched, strict=True):
        for (name,), support in zip(claims.said["object"], by_kind["object"].theirs.tolist(), strict=True):
            left[name] = max(left.get(name, 0.0), support)
    return [{"text": name, "score": support} for name, support in left.items() if support < WRONG_BELOW]


def _status(support: float, exact: bool) -> Status:
    if support < WRONG_BELOW:
        return "wrong"
    return "exact" if exact else "synonym" if support == 1.0 else "partly"
