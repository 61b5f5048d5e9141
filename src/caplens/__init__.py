"""caplens judges captions of images and videos. Everything a user imports is named here."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from caplens.captions import CaptionSet
from caplens.comparison import Comparison, compare
from caplens.evaluation import evaluate
from caplens.metrics import list_metrics, load_metric
from caplens.report import Report

if TYPE_CHECKING:
    from caplens.explanation import Explanation, explain
    from caplens.reward import Reward

__version__ = version("caplens")

__all__ = [
    "CaptionSet",
    "Comparison",
    "Explanation",
    "Report",
    "Reward",
    "compare",
    "evaluate",
    "explain",
    "list_metrics",
    "load_metric",
]


def __getattr__(name: str) -> Any:
    """What few need is imported when it is first asked for."""
    if name == "Reward":
        from caplens.reward import Reward

        return Reward
    if name in {"Explanation", "explain"}:
        from caplens import explanation

        return getattr(explanation, name)
    raise AttributeError(f"module 'caplens' has no attribute {name!r}")
