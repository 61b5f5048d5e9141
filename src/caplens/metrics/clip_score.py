"""CLIP-S and RefCLIP-S (Hessel et al. 2021): how well a caption fits its picture in a joint space."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import MissingData
from caplens.core.types import Floats, unit
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._sentences import SentenceDetails, parts_fact
from caplens.metrics._visual import VisualMetric
from caplens.metrics.base import Statistics, reference_counts, register
from caplens.text.sentences import TextParts

PAPER = "Hessel et al. 2021, CLIPScore: A Reference-free Evaluation Metric for Image Captioning"


class CosineScore(VisualMetric):
    """w · max(cos(caption, picture), 0), and its harmonic mean with the best reference. CLIP-S and PAC-S are this."""

    scale: ClassVar[float]
    """w: stretches the cosines of the paper's encoder to about 0 to 1."""

    def __init__(self, *, prompt: str | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self.prompt = None if prompt is None else options.text("prompt", prompt)

    def used_prompt(self) -> str:
        """The prompt asked for; by default the one the encoder's metric was published with."""
        return self.get_encoder().prompt if self.prompt is None else self.prompt

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (*super().signature_parts(), ("w", f"{self.scale:g}"), ("prompt", repr(self.used_prompt().strip())))

    def text_scores(self, work: Workspace, rows: NDArray[np.int64], texts: list[str]) -> Floats:
        """The score of texts as captions of these rows; what the encoder cannot read whole has the mean of its parts.

        NaN where there is no picture.
        """
        parts = self.text_parts(work, texts, self.used_prompt())
        scores = parts.mean(self._picture_scores(work, np.repeat(rows, parts.counts), parts.texts))
        if "references" in self.needs:
            closest = parts.mean(self._reference_scores(work, np.repeat(rows, parts.counts), parts.texts))
            scores = harmonic_mean(scores, closest)
        return scores

    def _picture_scores(self, work: Workspace, rows: NDArray[np.int64], texts: list[str]) -> Floats:
        """Eq. 1."""
        pictures = self.seen(work).vectors
        vectors, which = self.distinct_texts(work, texts, self.used_prompt())
        cosine = np.empty(len(which))
        for start in range(0, len(which), 4096):  # in float64, so not all at once
            some = slice(start, start + 4096)
            cosine[some] = np.einsum("ij,ij->i", unit(vectors[which[some]]), unit(pictures[rows[some]]))
        return self.scale * np.maximum(cosine, 0.0)

    def _reference_scores(self, work: Workspace, rows: NDArray[np.int64], texts: list[str]) -> Floats:
        """max(0, cosine of the text with the most similar reference of its row)."""
        references = self._reference_parts(work)
        written, candidate = self.distinct_texts(work, texts, self.used_prompt())
        flat, which = self.distinct_texts(work, references.texts, self.used_prompt())
        candidates, partners = unit(written), unit(flat)
        counts = [len(each) for each in work.captions.references or []]
        ends = np.concatenate([[0], references.ends])[np.cumsum([0, *counts])]  # of the parts of each row's references
        best = [
            float((partners[which[ends[row] : ends[row + 1]]] @ candidates[number]).max())
            for row, number in zip(rows.tolist(), candidate, strict=True)
        ]
        return np.maximum(best, 0.0)

    def _reference_parts(self, work: Workspace) -> TextParts:
        if work.captions.references is None:
            raise MissingData(f"{self.name} compares with references and none were given")
        texts = [text for each in work.captions.references for text in each]
        return self.text_parts(work, texts, self.used_prompt())

    def statistics(self, work: Workspace) -> Statistics:
        captions = work.captions.candidates
        scores = self.text_scores(work, np.arange(len(captions)), captions)
        parts, facts = [self.text_parts(work, captions, self.used_prompt())], {}
        if "references" in self.needs:
            facts["references"] = reference_counts(work.captions.references or [])
            parts.append(self._reference_parts(work))
        return Statistics(
            scores[:, None],
            details=SentenceDetails.of_captions(captions, partial(self.text_scores, work)),
            notes=self.notes(parts[0]),
            failures=self.seen(work).failures,
            facts={**facts, **parts_fact("mean", *parts)},
        )


def harmonic_mean(first: Floats, second: Floats) -> Floats:
    """2ab / (a + b), 0 where both are 0 (the official code gives NaN there).

    >>> harmonic_mean(np.array([0.5, 0.0]), np.array([1.0, 0.0]))
    array([0.66666667, 0.        ])
    """
    total = first + second
    # NaN (no picture) stays NaN.
    return np.divide(2 * first * second, total, out=np.where(np.isnan(total), np.nan, 0.0), where=total > 0)


@register
class ClipScore(CosineScore):
    """CLIP-S."""

    name = "clip-s"
    aliases = ("clipscore",)
    needs = frozenset({"image"})
    paper = PAPER
    summary = "Fit of caption and picture, no references: 2.5 · cosine in CLIP's space."
    scale = 2.5


@register
class RefClipScore(CosineScore):
    """RefCLIP-S."""

    name = "ref-clip-s"
    aliases = ("refclipscore",)
    needs = frozenset({"image", "references"})
    paper = PAPER
    summary = "CLIP-S in harmonic mean with the cosine to the closest reference."
    scale = 2.5
