"""Every metric of caplens as a module of Hugging Face evaluate, by the name of the metric.

    import evaluate
    from caplens.compat.evaluate import MODULE

    cider = evaluate.load(MODULE, "cider-r")
    cider.compute(predictions=["a cat"], references=[["the cat", "a cat sleeps"]], k_r=0.5)

This file is the module itself: evaluate copies it into its own cache, and nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import caplens
from caplens.compat._collected import collect, judge
from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.metrics import find_metric

MODULE = __file__
"""What `evaluate.load` takes, with the name of a metric after it."""
evaluate = require("evaluate", purpose="caplens.compat.evaluate")
datasets = require("datasets", purpose="caplens.compat.evaluate")


class CaptionMetric(evaluate.Metric):  # type: ignore[misc,name-defined]
    """A metric of caplens; `config_name` says which."""

    def _info(self) -> Any:
        if self.config_name in (None, "default"):
            raise InputError(
                "evaluate.load got no name of a metric",
                remedy='give one of `caplens metrics`: evaluate.load(MODULE, "cider-d")',
            )
        metric = find_metric(self.config_name)
        text = datasets.Value("string")
        columns: dict[str, Any] = {"predictions": text}
        if metric.needs & {"image", "video"}:
            columns["images"] = text
        formats = [{**columns, "references": each} for each in (datasets.Sequence(text), text)]
        return evaluate.MetricInfo(
            description=metric.summary,
            citation=metric.paper,
            inputs_description=CaptionMetric._compute.__doc__,
            features=[datasets.Features(each) for each in (formats if "references" in metric.needs else [columns])],
        )

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[Sequence[str]] | Sequence[str] | None = None,
        images: Sequence[str] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Return the score under the metric's name, one score per caption, and the signature.

        Args:
            predictions: captions.
            references: a list of references, or one, per caption.
            images: paths of the pictures, for metrics that look at them.
            options: the metric's own, such as ``k_r=0.5``.
        """
        nothing = [None] * len(predictions)
        rows = zip(predictions, references or nothing, images or nothing, strict=True)
        result = judge(caplens.load_metric(self.config_name, **options), [collect(*row) for row in rows])
        return {result.name: result.score, "scores": result.scores.tolist(), "signature": result.signature}
