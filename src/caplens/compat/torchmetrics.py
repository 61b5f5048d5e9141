"""Metrics that are fed batch by batch, in the manner of torchmetrics: update, compute, reset.

>>> metric = CaptionMetric("rouge-l")
>>> metric.update(["a cat on a mat"], [["a cat on the mat"]])
>>> metric.update(["two dogs"], [["two dogs", "a pair of dogs"]])
>>> float(metric.compute())
0.9

No torch is needed: values are numpy scalars, which have `.item()` as tensors do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet, Media
from caplens.core.errors import InputError
from caplens.core.workspace import Workspace
from caplens.metrics import load_metric
from caplens.metrics.base import Metric, Result


class CaptionMetric:
    """Any caplens metric, by name; captions are collected by `update` and judged together by `compute`.

    Judging together matters: BLEU adds up counts, and CIDEr's idf looks at all references.
    """

    def __init__(self, metric: str | Metric, **options: Any) -> None:
        self.metric = metric if isinstance(metric, Metric) else load_metric(metric, **options)
        self.reset()

    @property
    def higher_is_better(self) -> bool:
        return self.metric.higher_is_better

    def reset(self) -> None:
        """Forget all captions."""
        self._candidates: list[str] = []
        self._references: list[list[str]] = []
        self._images: list[Media] = []

    def update(
        self,
        preds: Sequence[str],
        target: Sequence[Sequence[str]] | Sequence[str] | None = None,
        images: Sequence[Media] | None = None,
    ) -> None:
        """Add a batch: captions, references (a list, or one string, per caption), pictures."""
        for name, column in (("target", target), ("images", images)):
            if column is not None and len(column) != len(preds):
                raise InputError(f"{len(column)} {name} for {len(preds)} preds", remedy="give one per caption")
        self._candidates += preds
        self._references += [[texts] if isinstance(texts, str) else list(texts) for texts in target or ()]
        self._images += images or ()

    def compute(self) -> np.float64:
        """The score of all captions so far."""
        return np.float64(self.result().score)

    def result(self) -> Result:
        """Score, scores per caption and signature of all captions so far."""
        captions = CaptionSet.of(self._candidates, self._references or None, self._images or None)
        return self.metric.compute(Workspace(captions))

    @property
    def scores(self) -> NDArray[np.float64]:
        """One score per caption, in the order of the updates."""
        return self.result().scores

    def forward(self, *batch: Any, **columns: Any) -> np.float64:
        """Add a batch and return the score of this batch alone."""
        self.update(*batch, **columns)
        alone = type(self).__new__(type(self))
        alone.metric = self.metric
        alone.reset()
        alone.update(*batch, **columns)
        return alone.compute()

    __call__ = forward


class BleuScore(CaptionMetric):
    """BLEU as coco-caption computes it."""

    def __init__(self, n_gram: int = 4, **options: Any) -> None:
        super().__init__(f"bleu-{n_gram}", **options)


class RougeL(CaptionMetric):
    """ROUGE-L as coco-caption computes it."""

    def __init__(self, **options: Any) -> None:
        super().__init__("rouge-l", **options)


class CiderD(CaptionMetric):
    """CIDEr-D, which coco-caption prints as CIDEr."""

    def __init__(self, **options: Any) -> None:
        super().__init__("cider-d", **options)


class CiderR(CaptionMetric):
    """CIDEr-R."""

    def __init__(self, **options: Any) -> None:
        super().__init__("cider-r", **options)
