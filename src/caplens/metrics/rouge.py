"""ROUGE-L, as coco-caption computes it.

C.-Y. Lin. ROUGE: a package for automatic evaluation of summaries. ACL workshop Text Summarization Branches Out, 2004.
"""

from __future__ import annotations

import numpy as np

from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics.base import Metric, Statistics, register
from caplens.text.ngrams import Tokenizer, corpus_of, tokenizer_name

BETA = 1.2  # how much more recall counts than precision; coco-caption's value


@register
class RougeL(Metric):
    """F-measure of the longest common subsequence; precision and recall are each the best over the references."""

    name = "rouge-l"
    needs = frozenset({"references"})
    paper = "Lin 2004, Text Summarization Branches Out"
    summary = "longest common subsequence with a reference"

    def __init__(self, *, tokenizer: Tokenizer = "ptb") -> None:
        self.tokenizer = options.tokenizer(tokenizer)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("tokenizer", tokenizer_name(self.tokenizer)), ("beta", str(BETA)))

    def statistics(self, work: Workspace) -> Statistics:
        corpus = corpus_of(work, self.tokenizer)
        common, candidate_length, reference_length = corpus.candidates.common_subsequences().T
        precision = np.maximum.reduceat(common / candidate_length, corpus.first_pairs)
        recall = np.maximum.reduceat(common / reference_length, corpus.first_pairs)
        denominator = recall + BETA**2 * precision
        scores = np.zeros(len(precision))
        np.divide((1 + BETA**2) * precision * recall, denominator, out=scores, where=denominator > 0)
        return Statistics(scores[:, None], facts={"references": corpus.counts_name})
