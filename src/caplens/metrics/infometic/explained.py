"""InfoMetIC's explanation of a caption: which words and sentences are wrong, which regions were left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from caplens.core.details import Details, LazyDetails, Missing, Region, Sentence, Word
from caplens.core.types import Floats
from caplens.metrics._sentences import judge_sentences
from caplens.metrics.infometic.percentiles import SCORES, HumanPercentiles
from caplens.text.language import UNTRUSTED, looks_english
from caplens.text.sentences import split_sentences

if TYPE_CHECKING:
    from caplens.metrics.infometic.inference import PairScores
    from caplens.text.words import Word as TaggedWord
    from caplens.vision.regions import Regions

LEAST_ALPHA = 0.1
"""β (§3.3): below it a word is wrong, a region not mentioned."""
FOREIGN = 0.005
"""Share of people's captions that score lower, under which one seems to be about another picture."""
NAMED, LEFT_OUT = 0.3, 0.5
"""Confidences from which the detector's name for a region is worth saying, and worth saying that it was left out."""


class Judged(NamedTuple):
    """What is known of one caption: the scores and words of its sentences, or of the whole as one, and its picture."""

    sentences: list[PairScores]
    words: list[list[TaggedWord]]
    regions: Regions
    score: float


class Explained(LazyDetails):
    """Details of every caption, made when somebody looks."""

    def __init__(
        self,
        captions: Sequence[str],
        judged: dict[int, Judged],
        percentiles: HumanPercentiles | None,
        overall: Callable[[PairScores], float],
    ) -> None:
        self.captions, self.judged, self.percentiles, self.overall = captions, judged, percentiles, overall

    def __len__(self) -> int:
        return len(self.captions)

    def of(self, row: int) -> Details:
        """What is right, wrong and missing."""
        if row not in self.judged:
            return {}
        from caplens.metrics.infometic.inference import PairScores

        known = self.judged[row]
        scores, regions, tagged = PairScores.mean(known.sentences), known.regions, [*chain(*known.words)]
        if not looks_english(" ".join(word.text for word in tagged)):
            return _unjudged(tagged, regions, scores)
        details: Details = {
            "precision": scores.precision,
            "recall": scores.recall,
            "overall": known.score,
            "cosine": scores.cosine,
            "words": _words(tagged, scores.words),
            "regions": _regions(regions, scores.regions),
            "missing": _missing(regions, scores.regions),
        }
        _link(details, tagged)
        if self.percentiles is not None:
            near = scores.cosine
            details["percentiles"] = {key: self.percentiles.of_score(key, details[key] or 0.0, near) for key in SCORES}
            _place_words(details["words"], known, self.percentiles)
            if details["percentiles"]["overall"] < FOREIGN:
                details["note"] = "this caption seems to be about another picture"
        if len(known.sentences) > 1:
            details["sentences"] = self._sentences(known, split_sentences(self.captions[row]))
        if not any(word.semantic for word in tagged):
            details["note"] = "no word of this caption says something that a picture could show"
        return details

    def _sentences(self, known: Judged, texts: Sequence[str]) -> list[Sentence]:
        """The score of every sentence; which is wrong, the cosines with the picture say."""
        entries = judge_sentences(texts, [max(pair.cosine, 0.0) for pair in known.sentences])
        for entry, pair in zip(entries, known.sentences, strict=True):
            entry["score"] = self.overall(pair)
        return entries


def _place_words(words: Sequence[Word], known: Judged, percentiles: HumanPercentiles) -> None:
    """Say where every judged word stands among people's words; the words of a sentence share its weight."""
    start = 0
    for tagged, pair in zip(known.words, known.sentences, strict=True):
        judged = [word for word in words[start : start + len(tagged)] if "status" in word]
        for word in judged:
            word["percentile"] = percentiles.of_word(word["score"] or 0.0, len(judged), pair.cosine)
        start += len(tagged)


def _unjudged(tagged: Sequence[TaggedWord], regions: Regions, scores: PairScores) -> Details:
    """A caption in a language that is not understood: its weights mean nothing, so no verdicts are made of them."""
    words, seen = _words(tagged, scores.words), _regions(regions, scores.regions)
    for entry in (*words, *seen):
        entry.pop("status", None)
    unsaid: Details = {"precision": None, "recall": None, "overall": None}
    return {**unsaid, "cosine": scores.cosine, "words": words, "regions": seen, "note": UNTRUSTED}


def _link(details: Details, tagged: Sequence[TaggedWord]) -> None:
    """Say which regions each noun names, by the detector's names; what is named is not left out."""
    from caplens.text.object_labels import named, said_more_generally

    nouns = [word.text if word.tag.startswith("NN") or (word.semantic and not word.tag) else "" for word in tagged]
    places = named(nouns, [region.get("label", "") for region in details["regions"]])
    for word, named_regions in zip(details["words"], places, strict=True):
        if named_regions:
            word["regions"] = named_regions
    mentioned = {number for named_regions in places for number in named_regions}
    details["missing"] = [
        item
        for item in details["missing"]
        if mentioned.isdisjoint(item["regions"]) and not said_more_generally(item["text"], nouns)
    ]


def _words(tagged: Sequence[TaggedWord], alphas: Floats) -> list[Word]:
    entries: list[Word] = []
    for word, alpha in zip(tagged, alphas, strict=True):
        entry = Word(text=word.text, score=float(alpha))
        if word.semantic and alpha > 0:  # what was cut off has no weight, and is not wrong
            entry["status"] = "right" if alpha >= LEAST_ALPHA else "wrong"
        entries.append(entry)
    return entries


def _regions(regions: Regions, alphas: Floats) -> list[Region]:
    entries: list[Region] = []
    for box, label, confidence, alpha in zip(
        regions.boxes, regions.labels, regions.confidences, alphas[:-1], strict=True
    ):
        entry = Region(box=[float(side) for side in box], score=float(alpha))
        entry["status"] = "mentioned" if alpha >= LEAST_ALPHA else "missing"
        if label and confidence >= NAMED:
            entry["label"] = label
        entries.append(entry)
    return entries


def _missing(regions: Regions, alphas: Floats) -> list[Missing]:
    """Names of what no region was mentioned of, the most confident first."""
    named: dict[str, list[int]] = {}
    for number, (label, confidence) in enumerate(zip(regions.labels, regions.confidences, strict=True)):
        if label and confidence >= LEFT_OUT:
            named.setdefault(label, []).append(number)
    return [
        Missing(text=label, score=float(alphas[places].max()), regions=places)
        for label, places in named.items()
        if alphas[places].max() < LEAST_ALPHA
    ]
