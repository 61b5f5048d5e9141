"""caplens judges captions of images and videos. Everything a user imports is named here."""

from __future__ import annotations

from importlib.metadata import version

from caplens.captions import CaptionSet
from caplens.comparison import Comparison, compare
from caplens.evaluation import evaluate
from caplens.metrics import list_metrics, load_metric
from caplens.report import Report

__version__ = version("caplens")

__all__ = ["CaptionSet", "Comparison", "Report", "compare", "evaluate", "list_metrics", "load_metric"]
