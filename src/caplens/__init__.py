"""caplens judges captions of images and videos. Everything a user imports is named here."""

from __future__ import annotations

from importlib.metadata import version

from caplens import compat as _compat
from caplens import report as _report
from caplens.captioning.reward import Reward
from caplens.core.captions import CaptionSet
from caplens.evaluation.compare import Comparison, compare
from caplens.evaluation.evaluate import evaluate
from caplens.evaluation.explain import Explanation, explain
from caplens.evaluation.results import Report
from caplens.metrics import list_metrics, load_metric
from caplens.readers import ReadLimits, read
from caplens.scale.batch import score_batch
from caplens.scale.evaluate import evaluate_shards

__version__ = version("caplens")

__all__ = [
    "CaptionSet",
    "Comparison",
    "Explanation",
    "ReadLimits",
    "Report",
    "Reward",
    "compare",
    "evaluate",
    "evaluate_shards",
    "explain",
    "list_metrics",
    "load_metric",
    "read",
    "score_batch",
]
del _compat, _report
