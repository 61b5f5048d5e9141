"""InfoCLIP (Hu et al. 2023, appendix D): InfoMetIC's scoring on the encoder's own vectors, with nothing trained.

α of regions is the softmax of scale · cosine(caption, region), with zero for the null region; α of words the same for
the picture and every token, encoded alone. It is the baseline that shows what InfoMetIC's network adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from caplens.metrics.base import Floats, Workspace, register
from caplens.metrics.infometic import PAPER, RegionMetric

if TYPE_CHECKING:
    from caplens.encoders.base import Encoder
    from caplens.encoders.grounding import Judgement


@register
class InfoClip(RegionMetric):
    """InfoMetIC without a network.

    Args:
        encoder: as for clip-s.
        weights: other weights for that encoder: a path or a name.
        regions: ``detector``, ``grid`` (needs no weights), a json or tsv file of boxes, or a transformers detector.
        allow_pickle: read pickled weight files, with weights_only.
        allow_urls: fetch pictures that are given as URLs.
    """

    name = "info-clip"
    aliases = ("infoclip",)
    needs = frozenset({"image"})
    paper = PAPER
    summary = "InfoMetIC's scoring on bare encoder vectors: the baseline without training."
    percent = False

    def __init__(
        self,
        encoder: str | Encoder = "auto",
        weights: str | None = None,
        regions: str = "detector",
        allow_pickle: bool = False,
        allow_urls: bool = False,
    ) -> None:
        super().__init__(encoder, weights, allow_pickle, allow_urls)
        self.regions = regions

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (*super().signature_parts(), ("regions", self.proposer().name))

    def judged(self, work: Workspace) -> dict[int, Judgement]:
        from caplens.encoders.base import unit
        from caplens.encoders.grounding import Judgement, spell, sum_by_word, token_table

        encoder, looked, words = self.loaded(), self.looked(work), self.tagged(work)
        texts = unit(self.text_vectors(work, work.captions.candidates))
        spelt = [spell(encoder, [word.text for word in found]) for found in words]
        table = token_table(self.embedder(work), [text.ids for text in spelt])
        lone = unit(table.vectors)
        pictures = [unit(look.vectors) for look in looked.looks]
        made = {}
        for row, look in enumerate(looked.rows):
            if look < 0:
                continue
            whole, parts = pictures[look][0], pictures[look][1:]
            inner = [place for place, word in enumerate(spelt[row].words) if word >= 0]
            tokens = lone[[table.place[spelt[row].ids[place]] for place in inner]]
            regions, seen = attend(texts[row], np.vstack([parts, np.zeros_like(whole)]), encoder.scale)
            alphas = np.zeros(len(spelt[row].ids))
            alphas[inner], read = attend(whole, tokens, encoder.scale)
            made[row] = Judgement(
                precision=encoder.scale * float(unit(read) @ texts[row]),
                recall=encoder.scale * float(unit(seen) @ whole),
                cosine=float(texts[row] @ whole),
                regions=regions,
                words=sum_by_word(alphas, spelt[row], len(words[row])),
            )
        return made


def attend(query: Floats, keys: Floats, scale: float) -> tuple[Floats, Floats]:
    """Softmax weights of the keys and their weighted sum; nothing to look at gives zeros.

    >>> attend(np.array([1.0, 0.0]), np.eye(2), 0.0)
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """
    if not len(keys):
        return np.zeros(0), np.zeros_like(query)
    raised = np.exp(scale * (keys @ query - (keys @ query).max()))
    weights = raised / raised.sum()
    return weights, weights @ keys
