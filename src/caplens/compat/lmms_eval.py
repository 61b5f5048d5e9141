"""Caption metrics for the tasks of lmms-eval: what stands in the `utils.py` beside a task's yaml file.

    from caplens.compat.lmms_eval import aggregation, results_of

    process_results = results_of("cider-d", "cider-r", references="answer")
    cider_d = aggregation("cider-d")
    cider_r = aggregation("cider-r")

The yaml file then says `process_results: !function utils.process_results` and, in its `metric_list`,
`metric: cider-d` with `aggregation: !function utils.cider_d`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from caplens.compat._collected import Collected, collect, judge
from caplens.metrics import find_metric, load_metric


def results_of(
    *metrics: str, references: str | None = "answer", image: str | None = None
) -> Callable[[Mapping[str, Any], Sequence[str]], dict[str, Collected]]:
    """Return a `process_results` for these metrics.

    Args:
        metrics: names of `caplens metrics`, which are the names in `metric_list`, too.
        references: the document's column of references; None for metrics that need none.
        image: the document's column of pictures, for metrics that look at them.
    """

    def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Collected]:
        texts = None if references is None else doc[references]
        row = collect(results[0] if results else "", texts, None if image is None else doc[image])
        return dict.fromkeys(metrics, row)

    for name in metrics:
        find_metric(name)  # a name that is wrong is so before the model has run for hours
    return process_results


def aggregation(metric: str, **options: Any) -> Callable[[Sequence[Collected]], float]:
    """Return the function that turns all documents' results into one score."""
    loaded = load_metric(metric, **options)

    def aggregate(items: Sequence[Collected]) -> float:
        return judge(loaded, items).score

    return aggregate
