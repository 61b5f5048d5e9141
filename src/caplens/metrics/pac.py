"""PAC-S and RefPAC-S (Sarto et al. 2023): CLIP-S with projections trained on positives that were generated too.

For videos (eq. 5 and 6) the score follows EMScore, in the space of the PAC-S encoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from caplens.metrics.base import Statistics, Workspace, register
from caplens.metrics.clipscore import CosineScore
from caplens.metrics.emscore import matching

if TYPE_CHECKING:
    from caplens.encoders.base import Encoder

PAPER = "Sarto et al. 2023, Positive-Augmented Contrastive Learning for Image and Video Captioning Evaluation"


class PositiveAugmentedScore(CosineScore):
    """PAC-S of pictures; of videos where the captions come with videos and no pictures."""

    scale = 2.0
    heads = "pac"
    paper = PAPER

    def __init__(
        self,
        encoder: str | Encoder = "auto",
        weights: str | None = None,
        prompt: str | None = None,
        frames: str = "all",
        idf: str = "auto",
        allow_pickle: bool = False,
        allow_urls: bool = False,
    ) -> None:
        super().__init__(encoder, weights, prompt, allow_pickle, allow_urls)
        self.frames, self.idf = frames, idf

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        extra = tuple(
            (key, value) for key, value in (("frames", self.frames), ("idf", self.idf)) if value not in {"all", "auto"}
        )
        return (*super().signature_parts(), *extra)

    def statistics(self, work: Workspace) -> Statistics:
        if work.captions.images is None:
            return matching(self, work, self.frames, self.idf, "references" in self.needs)
        return super().statistics(work)


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
