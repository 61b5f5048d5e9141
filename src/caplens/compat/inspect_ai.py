"""A scorer of captions for Inspect (inspect_ai).

    from inspect_ai import Task, task
    from caplens.compat.inspect_ai import caption_scorer

    @task
    def captions():
        return Task(dataset, scorer=caption_scorer("cider-d", idf=[sample.target for sample in dataset]))

A target is a list of references, the picture is the one in the input. The value of a sample is its caption's score,
the figure of the task the metric's own corpus score, which for BLEU and METEOR is no mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caplens.compat._collected import Collected, collect, judge
from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.metrics import load_metric

inspect_scorer = require("inspect_ai.scorer", purpose="caplens.compat.inspect_ai")
if TYPE_CHECKING:
    from inspect_ai.scorer import SampleScore, Score, Scorer, Target
    from inspect_ai.solver import TaskState
else:  # Inspect reads the annotations of a metric
    SampleScore = inspect_scorer.SampleScore


def caption_scorer(metric: str, **options: Any) -> Scorer:
    """Return a scorer by a metric of `caplens metrics`, with its options.

    CIDEr's words are weighted by a whole set of references, and a sample stands alone: give them as ``idf``.
    """
    if isinstance(options.get("idf"), list):  # targets, of which one alone is a string
        options["idf"] = [[texts] if isinstance(texts, str) else texts for texts in options["idf"]]
    judging = load_metric(metric, **options)
    if "idf" in judging.options() and "idf" not in options:
        raise InputError(
            f"caption_scorer({metric!r}) knows one sample at a time, and {metric} weights words by a whole set",
            remedy="give its references: idf=[sample.target for sample in dataset]",
        )

    def collected(score: Score) -> Collected:
        return collect(**(score.metadata or {}))

    @inspect_scorer.metric(name=metric)  # type: ignore[untyped-decorator]
    def corpus() -> Any:
        def compute(scores: list[SampleScore]) -> float:
            return judge(judging, [collected(each.score) for each in scores]).score

        return compute

    @inspect_scorer.scorer(metrics=[corpus(), inspect_scorer.stderr()], name=metric)  # type: ignore[untyped-decorator]
    def build() -> Any:
        async def score(state: TaskState, target: Target) -> Score:
            row = {"caption": state.output.completion, "references": list(target) or None, "image": _picture(state)}
            result = judge(judging, [collect(**row)])
            if result.failures:
                raise InputError(f"sample {state.sample_id!r}: {result.failures[0]}")
            made: Score = inspect_scorer.Score(
                value=result.score, answer=row["caption"], explanation=result.signature, metadata=row
            )
            return made

        return score

    made: Scorer = build()
    return made


def _picture(state: TaskState) -> str | None:
    """The last picture of the conversation, as it was given: a path or an address."""
    messages = state.messages
    parts = [part for message in messages if not isinstance(message.content, str) for part in message.content]
    pictures = [part.image for part in parts if part.type == "image"]
    return pictures[-1] if pictures else None
