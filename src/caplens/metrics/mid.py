"""MID (Kim et al. 2022): pointwise mutual information of picture and caption under Gaussians fitted to good pairs.

The good pairs are the pictures with their references. With x, y, z = (x, y) of a picture and a candidate, x and y of
length one, Σ the covariances over good pairs and D² the squared Mahalanobis distance to their mean:

    MID(x, y) = ½ (log det Σx + log det Σy − log det Σz) + ½ (D²x + D²y − D²z)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.errors import MissingData
from caplens.core.types import Floats, unit
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._sentences import parts_fact
from caplens.metrics._visual import VisualMetric
from caplens.metrics.base import Statistics, reference_counts, register


@register
class MutualInformationDivergence(VisualMetric):
    """MID."""

    name = "mid"
    needs = frozenset({"image", "references"})
    paper = "Kim et al. 2022, Mutual Information Divergence: A Unified Metric for Multimodal Generative Models"
    summary = "Mutual information of picture and caption under Gaussians fitted to the references."
    shown_as_percent = False

    RIDGE = 5e-4
    """Added to the covariances' diagonals: the value the authors advise for sets below 30,000 pairs."""

    def __init__(self, *, ridge: float = RIDGE, **rest: Any) -> None:
        super().__init__(**rest)
        self.ridge = options.number("ridge", ridge, low=0, above=True)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (
            *super().signature_parts(),
            ("ridge", f"{self.ridge:g}"),
            ("prompt", repr(self.get_encoder().prompt.strip())),
        )

    def whole_set(self, captions: CaptionSet | None = None) -> str:
        return "its Gaussians are fitted to all pictures and references"

    def statistics(self, work: Workspace) -> Statistics:
        references = work.captions.references
        if references is None:
            raise MissingData(f"{self.name} fits its Gaussians to references and none were given")
        seen = self.seen(work)
        usable = np.asarray(np.isfinite(seen.vectors).all(axis=1))
        # The same picture may stand in many rows; as a good pair it counts once per distinct reference.
        rows, texts = _good_pairs(work, references, usable)
        if len(rows) < 2:
            raise MissingData(f"{self.name} needs at least two readable pictures with references")
        prompt = self.get_encoder().prompt
        pictures = unit(seen.vectors)
        good_x, good_y = pictures[rows], unit(self.text_vectors(work, texts, prompt))
        candidates = unit(self.text_vectors(work, work.captions.candidates, prompt))
        scores = np.full(len(work.captions), np.nan)
        scores[usable] = pointwise(good_x, good_y, pictures[usable], candidates[usable], self.ridge)
        parts, good = self.text_parts(work, work.captions.candidates, prompt), self.text_parts(work, texts, prompt)
        notes = list(self.notes(parts))
        enough = 10 * (good_x.shape[1] + good_y.shape[1])
        if len(rows) < enough:
            notes.append(
                f"the Gaussians rest on {len(rows)} pairs of picture and reference; fewer than {enough} "
                f"(ten times the dimension) give rough numbers that do not compare across sets"
            )
        facts = {"references": reference_counts(references), "pairs": str(len(rows))}
        facts |= parts_fact("vectors", parts, good)
        return Statistics(scores[:, None], notes=tuple(notes), failures=seen.failures, facts=facts)


def _good_pairs(work: Workspace, references: list[list[str]], usable: NDArray[np.bool_]) -> tuple[list[int], list[str]]:
    images = work.captions.images or []
    pairs: dict[tuple[str, str], int] = {}
    for row, texts in enumerate(references):
        if usable[row]:
            for text in texts:
                pairs.setdefault((str(images[row]), text), row)
    return list(pairs.values()), [text for _, text in pairs]


def pointwise(good_x: Floats, good_y: Floats, x: Floats, y: Floats, ridge: float) -> Floats:
    """MID of every row of (x, y) under Gaussians fitted to the rows of (good_x, good_y)."""
    good = np.hstack([good_x, good_y])
    mean = good.mean(axis=0)
    spread = np.cov(good, rowvar=False) + ridge * np.eye(good.shape[1])
    split = good_x.shape[1]
    shifted = np.hstack([x, y]) - mean
    picture, caption = slice(0, split), slice(split, None)
    total = np.zeros(len(x))
    for part, sign in ((picture, 1), (caption, 1), (slice(None), -1)):
        # Cholesky: the log determinant is twice the sum over the diagonal, and no inverse is formed.
        factor = np.asarray(np.linalg.cholesky(spread[part, part]), np.float64)
        distance = (_forward(factor, shifted[:, part].T) ** 2).sum(axis=0)
        total += sign * (2 * np.log(np.diag(factor)).sum() + distance)
    return total / 2


def _forward(factor: Floats, right: Floats) -> Floats:
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(factor, right, lower=True))
