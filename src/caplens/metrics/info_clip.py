"""InfoCLIP (Hu et al. 2023, appendix D): InfoMetIC's scoring on the encoder's own vectors, with nothing trained.

α of regions is the softmax of scale · cosine(caption, region), with zero for the null region; α of words the same for
the picture and every token, encoded alone. It is the baseline that shows what InfoMetIC's network adds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from caplens.core.types import Floats, unit
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics.base import register
from caplens.metrics.infometic.metric import PAPER, RegionMetric

if TYPE_CHECKING:
    from caplens.encoders.base import Encoder
    from caplens.metrics.infometic.inference import PairScores, WordPieces


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
    shown_as_percent = False

    def __init__(
        self,
        encoder: str | Encoder = "auto",
        weights: str | os.PathLike[str] | None = None,
        regions: str = "detector",
        allow_pickle: bool = False,
        allow_urls: bool = False,
    ) -> None:
        super().__init__(encoder, weights, allow_pickle, allow_urls)
        self.regions = options.text("regions", regions)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (*super().signature_parts(), ("regions", self.proposer().name))

    def pair_scores(self, work: Workspace) -> dict[int, PairScores]:
        from caplens.metrics.infometic.inference import token_table, tokenize_words

        encoder, regions, words = self.get_encoder(), self.region_features(work), self.tagged(work)
        texts = unit(self.text_vectors(work, work.captions.candidates))
        pieces = [tokenize_words(encoder, [word.text for word in tagged]) for tagged in words]
        table = token_table(self.embedder(work), [text.ids for text in pieces])
        lone = unit(table.vectors)
        pictures = [unit(picture.vectors) for picture in regions.images]
        return {
            row: score_bare_pair(
                pictures[picture],
                texts[row],
                lone[[table.row_of[token] for token in pieces[row].ids]],
                pieces[row],
                len(words[row]),
                encoder.scale,
            )
            for row, picture in enumerate(regions.rows)
            if picture >= 0
        }


def score_bare_pair(
    picture: Floats, text: Floats, tokens: Floats, pieces: WordPieces, words: int, scale: float
) -> PairScores:
    """One pair, from unit vectors: the picture (whole first, then regions), the caption, its tokens, each alone."""
    from caplens.metrics.infometic.inference import PairScores, sum_by_word

    whole, parts = picture[0], picture[1:]
    inner = [position for position, word in enumerate(pieces.words) if word >= 0]
    regions, seen = attend(text, np.vstack([parts, np.zeros_like(whole)]), scale)
    alphas = np.zeros(len(pieces.ids))
    alphas[inner], read = attend(whole, tokens[inner], scale)
    return PairScores(
        precision=scale * float(unit(read) @ text),
        recall=scale * float(unit(seen) @ whole),
        cosine=float(text @ whole),
        regions=regions,
        words=sum_by_word(alphas, pieces, words),
    )


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
