"""CLIP-S and RefCLIP-S (Hessel et al. 2021): how well a caption fits its picture in a joint space."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from caplens.core.errors import MissingData
from caplens.core.types import Floats, unit
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._visual import VisualMetric
from caplens.metrics.base import Statistics, reference_counts, register

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

    def prompted(self, texts: list[str]) -> list[str]:
        """Texts behind the prompt."""
        prompt = self.used_prompt()
        return [prompt + text for text in texts]

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (*super().signature_parts(), ("w", f"{self.scale:g}"), ("prompt", repr(self.used_prompt().strip())))

    def picture_scores(self, work: Workspace) -> tuple[Floats, dict[int, str]]:
        """Eq. 1 for every caption, NaN where there is no picture, with the reasons."""
        seen = self.seen(work)
        texts, which = self.distinct_texts(work, self.prompted(work.captions.candidates))
        cosine = np.empty(len(which))
        for start in range(0, len(which), 4096):  # in float64, so not all at once
            rows = slice(start, start + 4096)
            cosine[rows] = np.einsum("ij,ij->i", unit(texts[which[rows]]), unit(seen.vectors[rows]))
        return self.scale * np.maximum(cosine, 0.0), seen.failures

    def reference_scores(self, work: Workspace) -> Floats:
        """max(0, cosine of the candidate with its most similar reference)."""
        references = work.captions.references
        if references is None:
            raise MissingData(f"{self.name} compares with references and none were given")
        written, candidate = self.distinct_texts(work, self.prompted(work.captions.candidates))
        flat, which = self.distinct_texts(work, self.prompted([text for texts in references for text in texts]))
        candidates, partners = unit(written), unit(flat)
        ends = np.cumsum([len(texts) for texts in references])
        best = [
            float((partners[which[end - len(texts) : end]] @ candidates[row]).max())
            for texts, end, row in zip(references, ends, candidate, strict=True)
        ]
        return np.maximum(best, 0.0)

    def statistics(self, work: Workspace) -> Statistics:
        scores, failures = self.picture_scores(work)
        notes = self.notes(self.prompted(work.captions.candidates))
        facts = {}
        if "references" in self.needs:
            scores = harmonic_mean(scores, self.reference_scores(work))
            facts["references"] = reference_counts(work.captions.references or [])
        return Statistics(scores[:, None], notes=notes, failures=failures, facts=facts)


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
