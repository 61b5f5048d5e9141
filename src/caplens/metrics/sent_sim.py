"""sent-sim: how close the caption's meaning is to the references', by the cosine of sentence embeddings.

The encoders: N. Reimers, I. Gurevych. Sentence-BERT: sentence embeddings using Siamese BERT-networks. EMNLP 2019.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics import _options as options
from caplens.metrics._sentences import SentenceDetails, parts_fact, parts_note
from caplens.metrics.base import Metric, Resources, Statistics, reference_counts, register
from caplens.storage import weights
from caplens.text.language import foreign_note
from caplens.text.sentences import TextParts, split_sentences

Against = Literal["nearest", "centroid", "both"]
ENGLISH = frozenset({"all-MiniLM-L6-v2", "all-mpnet-base-v2"})
"""Encoders that understand no other language."""


@register
class SentSim(Metric):
    """Cosine to the nearest reference, to the centroid of the references, or the mean of the two."""

    name = "sent-sim"
    needs = frozenset({"references"})
    paper = "Reimers & Gurevych 2019, EMNLP (the encoder)"
    summary = "cosine of sentence embeddings: nearest reference and centroid"

    def __init__(self, *, text_encoder: str | os.PathLike[str] = "all-MiniLM-L6-v2", against: Against = "both") -> None:
        self.text_encoder = options.path("text_encoder", text_encoder, "name or a folder of a sentence encoder")
        self.against = options.choice("against", against, ("nearest", "centroid", "both"))

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("encoder", weights.signature_name(self.text_encoder)), ("against", self.against))

    def resources(self) -> Resources:
        return {"text encoder": weights.model_digest(self.text_encoder)}

    def language_note(self, captions: CaptionSet) -> str | None:
        name = os.fspath(self.text_encoder)
        note = foreign_note(captions.candidates) if name in ENGLISH else None
        return None if note is None else f"{note}; -o text_encoder=multilingual-e5-small understands other languages"

    def statistics(self, work: Workspace) -> Statistics:
        captions = work.captions
        encoder = load_sentence_encoder(self.text_encoder)
        nearest, centroid = similarities(work, self.text_encoder)
        details = [
            {"nearest": float(near), "centroid": float(far)} for near, far in zip(nearest, centroid, strict=True)
        ]
        parts = TextParts.of(captions.candidates, encoder.fits)
        flat = TextParts.of([text for texts in captions.references or [] for text in texts], encoder.fits)
        return Statistics(
            self._chosen(nearest, centroid)[:, None],
            details=SentenceDetails.of_captions(captions.candidates, partial(self._alone, captions), details),
            notes=(parts_note(parts, encoder.longest),) if parts.cut else (),
            facts={"references": reference_counts(captions.references or []), **parts_fact("vectors", parts, flat)},
        )

    def _chosen(self, nearest: Floats, centroid: Floats) -> Floats:
        return {"nearest": nearest, "centroid": centroid, "both": (nearest + centroid) / 2}[self.against]

    def _alone(self, captions: CaptionSet, rows: NDArray[np.int64], sentences: list[str]) -> Floats:
        """How close a sentence is to the closest sentence of its row's references."""
        encoder = load_sentence_encoder(self.text_encoder)
        own = encoder.encode(sentences).astype(np.float64)
        scores = np.empty(len(sentences))
        for row in np.unique(rows):
            texts = [part for text in (captions.references or [])[row] for part in split_sentences(text) or [text]]
            scores[rows == row] = (own[rows == row] @ encoder.encode(texts).astype(np.float64).T).max(axis=1)
        return scores


def similarities(work: Workspace, encoder: str | os.PathLike[str]) -> tuple[Floats, Floats]:
    """Per caption the cosine to its nearest reference and to the centroid of its references."""
    row_of = places(work.captions)
    return to_references(load_sentence_encoder(encoder).encode(list(row_of), work.progress), row_of, work.captions)


def places(captions: CaptionSet) -> dict[str, int]:
    """The row of every distinct text: candidates first, then references."""
    texts = [*captions.candidates, *(text for each in captions.references or [] for text in each)]
    return {text: row for row, text in enumerate(dict.fromkeys(texts))}


def to_references(
    vectors: NDArray[np.floating], row_of: Mapping[str, int], captions: CaptionSet
) -> tuple[Floats, Floats]:
    """Per caption the cosine to its nearest reference and to all together; unit vectors of texts at their places."""
    vectors = vectors.astype(np.float64)
    nearest, centroid = np.empty(len(captions)), np.empty(len(captions))
    for row, (candidate, each) in enumerate(zip(captions.candidates, captions.references or [], strict=True)):
        caption = vectors[row_of[candidate]]
        against = vectors[[row_of[text] for text in each]]
        nearest[row] = (against @ caption).max()
        middle = against.sum(axis=0)
        # Vectors of opposite direction can cancel; then there is no centre to be close to.
        centroid[row] = middle @ caption / length if (length := np.linalg.norm(middle)) > 0 else 0.0
    return nearest, centroid
