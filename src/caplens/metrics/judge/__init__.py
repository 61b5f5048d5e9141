"""Judges: language models that are asked what a caption is worth, over any OpenAI-compatible server."""

from caplens.metrics.judge.metric import Clair, Fleur, GVEval, Judge

__all__ = ["Clair", "Fleur", "GVEval", "Judge"]
