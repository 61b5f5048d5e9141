"""InfoMetIC (Hu et al., ACL 2023): which words are wrong, what was left out, and three scores made of that.

The picture's regions and the caption's words look at each other in a trained network (`network.py`). The
caption decides how much each region counts (α of regions), the picture how much each word does (α of words). What the
weighted regions share with the whole picture is the vision recall, what the weighted words share with the whole caption
the text precision, both as scale · cosine; InfoMetIC is their sum, InfoMetIC+ adds the cosine of picture and caption.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.errors import MissingData
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._sentences import parts_fact, parts_note
from caplens.metrics._visual import VisualMetric
from caplens.metrics.base import Resources, Statistics, register
from caplens.metrics.infometic.explained import Explained, Judged
from caplens.metrics.infometic.percentiles import HumanPercentiles, percentiles_of, percentiles_path
from caplens.storage.weights import find, model_digest
from caplens.text.language import foreign_note
from caplens.text.sentences import TextParts, split_sentences
from caplens.text.wordnet import WORDNET

if TYPE_CHECKING:
    from caplens.encoders.base import Encoder
    from caplens.metrics.infometic.inference import InfoMeticModel, PairScores, WordPieces
    from caplens.metrics.infometic.region_features import RegionFeatures
    from caplens.text.words import Word as TaggedWord
    from caplens.vision.regions import Proposer

PAPER = "Hu et al. 2023, InfoMetIC: An Informative Metric for Reference-free Image Caption Evaluation"
SHIPPED = {"embedded": "infometic", "embedded-strong": "infometic-strong"}
"""The networks that come with caplens, by the encoder they were trained over."""


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

    def notes(self, captions: TextParts | None = None) -> tuple[str, ...]:
        from caplens.text.words import tagger_lacks

        lack = tagger_lacks()
        if not lack:
            return super().notes(captions)
        hint = f"no parser works here, so in the details every word but a stop word can be wrong; {lack}"
        return (*super().notes(captions), hint)

    def percentiles(self) -> HumanPercentiles | None:
        """Where people's captions stand on its scales, if that was measured."""
        return None

    def overall(self, scores: PairScores) -> float:
        """The score of one caption."""
        return scores.precision + scores.recall

    def sentences(self, work: Workspace) -> TextParts:
        """Captions as they are read word by word: whole, and sentence by sentence those that are too long for that."""
        from caplens.metrics.infometic.inference import tokenize_words
        from caplens.text.words import split_words

        encoder = self.get_encoder()

        def fits(text: str) -> bool:  # a single sentence that is too long loses its end, as with the authors
            return len(split_sentences(text)) < 2 or not tokenize_words(encoder, split_words(text)).cut

        key = ("captions by sentences", encoder.fingerprint)
        return work.get_or_compute(key, lambda: TextParts.of(work.captions.candidates, fits))

    def reading(self, work: Workspace) -> Workspace:
        """The workspace itself, or where captions are read sentence by sentence one whose captions are these."""
        parts = self.sentences(work)
        if not parts.cut:
            return work

        def make() -> Workspace:
            rows = np.repeat(np.arange(len(work.captions)), parts.counts)
            captions = replace(work.captions.take(rows.tolist()), candidates=parts.texts)
            return replace(work, captions=captions, _computed={})

        return work.get_or_compute(("workspace of sentences", self.get_encoder().fingerprint), make)

    def statistics(self, work: Workspace) -> Statistics:
        from caplens.metrics.infometic.inference import TEXT_LENGTH
        from caplens.metrics.infometic.region_features import NameCheck
        from caplens.vision.regions import FileProposer

        parts, reading = self.sentences(work), self.reading(work)
        scored, regions, words = self.pair_scores(reading), self.region_features(reading), self.tagged(reading)
        scores = np.full(len(work.captions), np.nan)
        judged: dict[int, Judged] = {}
        failures = {}
        confirm = NameCheck(self.embedder(reading), trusted=isinstance(self.proposer(), FileProposer))
        for row, (start, end) in enumerate(zip(parts.starts.tolist(), parts.ends.tolist(), strict=True)):
            if start not in scored:  # all sentences of a caption have its picture
                failures[row] = regions.failures[start]
                continue
            sentences = [scored[part] for part in range(start, end)]
            scores[row] = np.mean([self.overall(pair) for pair in sentences])
            image = regions.rows[start]
            judged[row] = Judged(sentences, words[start:end], confirm(image, regions.images[image]), float(scores[row]))
        details = Explained(work.captions.candidates, judged, self.percentiles(), self.overall)
        notes = self.notes(self.text_parts(reading, reading.captions.candidates))
        if parts.cut:
            notes = (*notes, parts_note(parts, TEXT_LENGTH))
        return Statistics(
            scores[:, None], details=details, notes=notes, failures=failures, facts=parts_fact("mean", parts)
        )


def _tagger() -> str:
    """The parser that is here; the name of its folder changes with the files in it."""
    from caplens.text.words import require_tagger

    try:
        return require_tagger().name
    except MissingData:
        return "absent"


class InfoMetricFamily(RegionMetric):
    """InfoMetIC and its parts.

    Args:
        encoder: ``auto`` (the one the weights were trained over), ``embedded``, ``embedded-strong``, a CLIP backbone,
            or an `Encoder`.
        weights: of the network: a path (what `caplens train infometic` wrote, or the authors' checkpoint), or a name;
            by default the shipped ones for the encoder, ``infometic`` or ``infometic-strong``.
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
        weights: str | os.PathLike[str] | None = None,
        regions: str = "detector",
        allow_pickle: bool = False,
        allow_urls: bool = False,
        **rest: Any,
    ) -> None:
        super().__init__(encoder, weights, allow_pickle, allow_urls, **rest)
        self.regions = options.text("regions", regions)

    def model(self) -> InfoMeticModel:
        """The network; loaded once per process."""
        from caplens.metrics.infometic.inference import load_model

        return load_model(os.fspath(self.weights or self._shipped()), self.allow_pickle)

    def _shipped(self) -> str:
        """The network for the encoder that was asked for; over one that has none, the first says what it needs."""
        from caplens.encoders.embedded import edition_of

        name = self.encoder if isinstance(self.encoder, str) else self.encoder.name
        return SHIPPED[edition_of(name) or "embedded"]

    def get_encoder(self) -> Encoder:
        from caplens.encoders.embedded import edition_of
        from caplens.encoders.load import load_encoder

        chosen = self.encoder
        if chosen == "auto":
            # A file without a name for its encoder is the authors'.
            chosen = edition_of(self.model().encoder) or "ViT-B-32"
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
        cut = sum(pieces.cut for pieces in self._word_pieces(self.reading(work)))
        if not cut:
            return statistics
        note = f"of {cut} sentences only the first {TEXT_LENGTH - 2} pieces of words were looked at one by one"
        return replace(statistics, notes=(*statistics.notes, note))


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
