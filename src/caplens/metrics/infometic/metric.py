"""InfoMetIC (Hu et al., ACL 2023): which words are wrong, what was left out, and three scores made of that.

The picture's regions and the caption's words look at each other in a trained network (`network.py`). The
caption decides how much each region counts (α of regions), the picture how much each word does (α of words). What the
weighted regions share with the whole picture is the vision recall, what the weighted words share with the whole caption
the text precision, both as scale · cosine; InfoMetIC is their sum, InfoMetIC+ adds the cosine of picture and caption.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.details import Details, LazyDetails, Missing, Region, Word
from caplens.core.errors import MissingData
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._visual import VisualMetric
from caplens.metrics.base import Resources, Statistics, register
from caplens.metrics.infometic.percentiles import SCORES, HumanPercentiles, percentiles_of, percentiles_path
from caplens.storage.weights import find, model_digest
from caplens.text.language import UNTRUSTED, foreign_note, looks_english
from caplens.text.wordnet import WORDNET

if TYPE_CHECKING:
    from caplens.encoders.base import Encoder
    from caplens.metrics.infometic.inference import InfoMeticModel, PairScores, WordPieces
    from caplens.metrics.infometic.region_features import RegionFeatures
    from caplens.text.words import Word as TaggedWord
    from caplens.vision.regions import Proposer, Regions

PAPER = "Hu et al. 2023, InfoMetIC: An Informative Metric for Reference-free Image Caption Evaluation"
SHIPPED = "infometic"
"""The network that comes with caplens."""
LEAST_ALPHA = 0.1
"""β (§3.3): below it a word is wrong, a region not mentioned."""
FOREIGN = 0.005
"""Share of people's captions that score lower, under which one seems to be about another picture."""
NAMED = 0.3
"""Confidence from which the detector's name for a region is worth saying."""


class RegionMetric(VisualMetric):
    """A metric over the regions of a picture and the words of a caption."""

    regions: str

    def language_note(self, captions: CaptionSet) -> str | None:
        return foreign_note(captions.candidates)  # whatever the encoder understands, the tagger knows English

    def proposer(self) -> Proposer:
        """Where regions come from."""
        from caplens.vision.regions import make_proposer

        return make_proposer(self.regions)

    def region_features(self, work: Workspace) -> RegionFeatures:
        """Every picture's regions."""
        from caplens.metrics.infometic.region_features import extract_region_features

        images = work.captions.images
        if images is None:
            raise MissingData(f"{self.name} looks at pictures and none were given: pass images= or --images DIR")
        proposer = self.proposer()
        key = ("region features", self.get_encoder().fingerprint, proposer.identity, self.allow_urls)
        return work.get_or_compute(key, lambda: extract_region_features(self.embedder(work), images, proposer))

    def tagged(self, work: Workspace) -> list[list[TaggedWord]]:
        """The words of every caption."""
        from caplens.text.words import tag_words

        return work.get_or_compute(("tagged words", _tagger()), lambda: tag_words(work.captions.candidates))

    def resources(self) -> Resources:
        """Besides the encoder where regions come from and, for the details, what knows words and people's captions."""
        return {
            **super().resources(),
            "regions": self.proposer().identity,
            "tagger": _tagger(),
            "wordnet": model_digest(WORDNET) if find(WORDNET) is not None else "absent",
            "percentiles": model_digest(percentiles_path()),
        }

    @abstractmethod
    def pair_scores(self, work: Workspace) -> dict[int, PairScores]:
        """Return scores by row, for the captions whose picture could be read."""

    def notes(self, texts: Sequence[str]) -> tuple[str, ...]:
        from caplens.text.words import tagger_lacks

        lack = tagger_lacks()
        if not lack:
            return super().notes(texts)
        hint = f"no parser works here, so in the details every word but a stop word can be wrong; {lack}"
        return (*super().notes(texts), hint)

    def percentiles(self) -> HumanPercentiles | None:
        """Where people's captions stand on its scales, if that was measured."""
        return None

    def overall(self, scores: PairScores) -> float:
        """The score of one caption."""
        return scores.precision + scores.recall

    def statistics(self, work: Workspace) -> Statistics:
        judged = self.pair_scores(work)
        scores = np.full(len(work.captions), np.nan)
        for row, pair in judged.items():
            scores[row] = self.overall(pair)
        regions = self.region_features(work)
        shown = {row: regions.images[regions.rows[row]].regions for row in judged}
        numbers = {row: float(scores[row]) for row in judged}
        details = Explained(judged, self.tagged(work), shown, numbers, self.percentiles())
        notes = self.notes(work.captions.candidates)
        return Statistics(scores[:, None], details=details, notes=notes, failures=regions.failures)


def _tagger() -> str:
    """The parser that is here; the name of its folder changes with the files in it."""
    from caplens.text.words import require_tagger

    try:
        return require_tagger().name
    except MissingData:
        return "absent"


class Explained(LazyDetails):
    """Details of every caption, made when somebody looks."""

    def __init__(
        self,
        judged: dict[int, PairScores],
        words: list[list[TaggedWord]],
        regions: dict[int, Regions],
        scores: dict[int, float],
        percentiles: HumanPercentiles | None,
    ) -> None:
        self.judged, self.words, self.regions, self.scores = judged, words, regions, scores
        self.percentiles = percentiles

    def __len__(self) -> int:
        return len(self.words)

    def of(self, row: int) -> Details:
        """What is right, wrong and missing."""
        if row not in self.judged:
            return {}
        scores, regions = self.judged[row], self.regions[row]
        if not looks_english(" ".join(word.text for word in self.words[row])):
            return _unjudged(self.words[row], regions, scores)
        details: Details = {
            "precision": scores.precision,
            "recall": scores.recall,
            "overall": self.scores[row],
            "cosine": scores.cosine,
            "words": _words(self.words[row], scores.words),
            "regions": _regions(regions, scores.regions),
            "missing": _missing(regions, scores.regions),
        }
        _link(details, self.words[row])
        if self.percentiles is not None:
            near = scores.cosine
            details["percentiles"] = {key: self.percentiles.of_score(key, details[key] or 0.0, near) for key in SCORES}
            judged = [word for word in details["words"] if "status" in word]
            for word in judged:
                word["percentile"] = self.percentiles.of_word(word["score"] or 0.0, len(judged), near)
            if details["percentiles"]["overall"] < FOREIGN:
                details["note"] = "this caption seems to be about another picture"
        if not any(word.semantic for word in self.words[row]):
            details["note"] = "no word of this caption says something that a picture could show"
        return details


def _unjudged(tagged: Sequence[TaggedWord], regions: Regions, scores: PairScores) -> Details:
    """A caption in a language that is not understood: its weights mean nothing, so no verdicts are made of them."""
    words, seen = _words(tagged, scores.words), _regions(regions, scores.regions)
    for entry in (*words, *seen):
        entry.pop("status", None)
    unsaid: Details = {"precision": None, "recall": None, "overall": None}
    return {**unsaid, "cosine": scores.cosine, "words": words, "regions": seen, "note": UNTRUSTED}


def _link(details: Details, tagged: Sequence[TaggedWord]) -> None:
    """Say which regions each noun names, by the detector's names; what is named is not left out."""
    from caplens.text.object_labels import named

    nouns = [word.text if word.tag.startswith("NN") or (word.semantic and not word.tag) else "" for word in tagged]
    places = named(nouns, [region.get("label", "") for region in details["regions"]])
    for word, named_regions in zip(details["words"], places, strict=True):
        if named_regions:
            word["regions"] = named_regions
    mentioned = {number for named_regions in places for number in named_regions}
    details["missing"] = [item for item in details["missing"] if mentioned.isdisjoint(item["regions"])]


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
        if label and confidence >= NAMED:
            named.setdefault(label, []).append(number)
    return [
        Missing(text=label, score=float(alphas[places].max()), regions=places)
        for label, places in named.items()
        if alphas[places].max() < LEAST_ALPHA
    ]


class InfoMetricFamily(RegionMetric):
    """InfoMetIC and its parts.

    Args:
        encoder: ``auto`` (the one the weights were trained over), ``embedded``, a CLIP backbone, or an `Encoder`.
        weights: of the network: ``infometic`` (shipped, over the embedded encoder), or a path: what
            `caplens train infometic` wrote, or the authors' checkpoint.
        regions: ``detector``, ``grid`` (needs no weights), a json or tsv file of boxes, or a transformers detector.
        allow_pickle: read pickled weight files, with weights_only.
        allow_urls: fetch pictures that are given as URLs.
        rest: where the encoder computes: ``device``, ``dtype``, ``batch_size``.
    """

    needs = frozenset({"image"})
    paper = PAPER
    shown_as_percent = False

    def __init__(
        self,
        encoder: str | Encoder = "auto",
        weights: str | os.PathLike[str] = SHIPPED,
        regions: str = "detector",
        allow_pickle: bool = False,
        allow_urls: bool = False,
        **rest: Any,
    ) -> None:
        super().__init__(
            encoder, options.path("weights", weights, "path or a name of weights"), allow_pickle, allow_urls, **rest
        )
        self.regions = options.text("regions", regions)

    def model(self) -> InfoMeticModel:
        """The network; loaded once per process."""
        from caplens.metrics.infometic.inference import load_model

        return load_model(os.fspath(self.weights or SHIPPED), self.allow_pickle)

    def get_encoder(self) -> Encoder:
        from caplens.encoders.load import load_encoder

        chosen = self.encoder
        if chosen == "auto":
            # A file without a name for its encoder is the authors'.
            chosen = "embedded" if self.model().encoder.startswith("embedded") else "ViT-B-32"
        return load_encoder(chosen, device=self.device, dtype=self.dtype, batch_size=self.batch_size)

    def fell_back(self) -> bool:
        return False  # its encoder is the one it was trained over

    def percentiles(self) -> HumanPercentiles | None:
        return percentiles_of(self.model().weights_hash) if self.name == "infometic" else None

    def pair_scores(self, work: Workspace) -> dict[int, PairScores]:
        encoder, model = self.get_encoder(), self.model()
        model.check(encoder)
        key = ("pair scores", model.weights_hash, *sorted(super().resources().items()), self.allow_urls)
        return work.get_or_compute(key, lambda: self._score_pairs(work))

    def _score_pairs(self, work: Workspace) -> dict[int, PairScores]:
        regions, words = self.region_features(work), self.tagged(work)
        column_of: dict[str, int] = {}
        rows = [row for row, image in enumerate(regions.rows) if image >= 0]
        texts = work.captions.candidates
        pairs = [(regions.rows[row], column_of.setdefault(texts[row], len(column_of))) for row in rows]
        first = {column: row for row, (_, column) in reversed(list(zip(rows, pairs, strict=True)))}
        pieces = [self._word_pieces(work)[first[column]] for column in range(len(column_of))]
        scored = self.model().score_pairs(
            self.embedder(work),
            regions.images,
            pieces,
            self.text_vectors(work, list(column_of)),
            pairs,
            [len(words[first[column]]) for column in range(len(column_of))],
        )
        return dict(zip(rows, scored, strict=True))

    def _word_pieces(self, work: Workspace) -> list[WordPieces]:
        from caplens.metrics.infometic.inference import tokenize_words

        encoder = self.get_encoder()
        return work.get_or_compute(
            ("word pieces", encoder.fingerprint, _tagger()),
            lambda: [tokenize_words(encoder, [word.text for word in words]) for words in self.tagged(work)],
        )

    def resources(self) -> Resources:
        return {**super().resources(), "network": self.model().weights_hash}

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        weights = ("weights", f"infometic@{self.model().weights_hash}")
        return (*super().signature_parts(), weights, ("regions", self.proposer().name))

    def statistics(self, work: Workspace) -> Statistics:
        from caplens.metrics.infometic.inference import TEXT_LENGTH

        statistics = super().statistics(work)
        cut = sum(pieces.cut for pieces in self._word_pieces(work))
        if not cut:
            return statistics
        note = f"of {cut} captions only the first {TEXT_LENGTH - 2} pieces of words were looked at one by one"
        return Statistics(
            statistics.rows, statistics.details, (*statistics.notes, note), statistics.failures, statistics.facts
        )


@register
class InfoMetic(InfoMetricFamily):
    """f^O (eq. 4)."""

    name = "infometic"
    summary = "Text precision plus vision recall, with the wrong words and the regions left out; no references."


@register
class InfoMeticPrecision(InfoMetricFamily):
    """f^P."""

    name = "infometic-p"
    summary = "InfoMetIC's text precision: is what the caption says in the picture?"

    def overall(self, scores: PairScores) -> float:
        return scores.precision


@register
class InfoMeticRecall(InfoMetricFamily):
    """f^R."""

    name = "infometic-r"
    summary = "InfoMetIC's vision recall: does the caption say what the picture shows?"

    def overall(self, scores: PairScores) -> float:
        return scores.recall


@register
class InfoMeticPlus(InfoMetricFamily):
    """InfoMetIC+ (eq. 11)."""

    name = "infometic-plus"
    aliases = ("infometic+",)
    summary = "InfoMetIC plus the weighted cosine of picture and caption in the encoder's space."

    def overall(self, scores: PairScores) -> float:
        return super().overall(scores) + self.get_encoder().scale * scores.cosine
