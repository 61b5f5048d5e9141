"""PAC-S and RefPAC-S (Sarto et al. 2023): CLIP-S with projections trained on positives that were generated too.

For videos (eq. 5 and 6) the score follows EMScore, in the space of the PAC-S encoder.
"""

from __future__ import annotations

from caplens.core.captions import CaptionSet
from caplens.core.workspace import Workspace
from caplens.metrics.base import Need, Statistics, register
from caplens.metrics.clip_score import CosineScore
from caplens.metrics.em_score import EmbeddingMatching

PAPER = "Sarto et al. 2023, Positive-Augmented Contrastive Learning for Image and Video Captioning Evaluation"


class PositiveAugmentedScore(EmbeddingMatching, CosineScore):
    """PAC-S of pictures; of videos where the captions come with videos and no pictures."""

    scale = 2.0
    heads = "pac"
    paper = PAPER

    def inputs(self, captions: CaptionSet) -> frozenset[Need]:
        """References weigh the words where videos are looked at, and only there."""
        weighed = captions.images is None
        return super().inputs(captions) if weighed else self.needs

    def whole_set(self, captions: CaptionSet | None = None) -> str:
        """Only with videos: their words are weighed."""
        return "" if captions is None or captions.images is not None else super().whole_set(captions)

    def statistics(self, work: Workspace) -> Statistics:
        kind = EmbeddingMatching if work.captions.images is None else CosineScore
        return kind.statistics(self, work)


@register
class PacScore(PositiveAugmentedScore):
    """PAC-S."""

    name = "pac-s"
    aliases = ("pacscore",)
    needs = frozenset({"image", "video"})
    summary = "Fit of caption and picture or video, no references, in a space trained on generated positives."


@register
class RefPacScore(PositiveAugmentedScore):
    """RefPAC-S."""

    name = "ref-pac-s"
    aliases = ("refpacscore",)
    needs = frozenset({"image", "video", "references"})
    summary = "PAC-S together with the similarity to the closest reference."
