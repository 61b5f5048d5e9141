"""BLEU, as coco-caption computes it.

K. Papineni, S. Roukos, T. Ward, W.-J. Zhu. BLEU: a method for automatic evaluation of machine translation. ACL 2002.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._sentences import length_note
from caplens.metrics.base import Metric, Statistics, register
from caplens.text.ngrams import Tokenizer, corpus_of, tokenizer_name

# coco-caption's guards against 0/0 and log 0; they are why a caption without any match scores about 1e-16 and not 0.
TINY = 1e-15
SMALL = 1e-9


class Bleu(Metric):
    """Geometric mean of n-gram precisions up to `longest`, times the brevity penalty."""

    longest: ClassVar[int]
    needs = frozenset({"references"})
    paper = "Papineni et al. 2002, ACL"

    def __init__(self, *, tokenizer: Tokenizer = "ptb") -> None:
        self.tokenizer = options.tokenizer(tokenizer)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("tokenizer", tokenizer_name(self.tokenizer)), ("reference-length", "closest"))

    def statistics(self, work: Workspace) -> Statistics:
        """Columns: words, words of the closest reference, n-grams for n = 1..4, matched n-grams for n = 1..4."""
        corpus = corpus_of(work, self.tokenizer)
        notes = length_note(corpus, "most of their words can only count as wrong, so BLEU falls with every sentence")
        return Statistics(corpus.bleu_counts, notes=notes, facts={"references": corpus.counts_name})

    def scores(self, rows: Floats) -> Floats:
        words, closest = rows[..., 0], rows[..., 1]
        product = np.ones(rows.shape[:-1])
        for n in range(1, self.longest + 1):
            product = product * ((rows[..., 5 + n] + TINY) / (rows[..., 1 + n] + SMALL))  # p_n
        precision: Floats = product ** (1.0 / self.longest)
        ratio = (words + TINY) / (closest + SMALL)
        return np.where(ratio < 1, precision * np.exp(np.minimum(0.0, 1 - 1 / ratio)), precision)  # BP

    def corpus(self, sums: Floats, count: int) -> Floats:
        return self.scores(sums)


@register
class Bleu1(Bleu):
    name, longest = "bleu-1", 1
    summary = "share of the caption's words that a reference has"


@register
class Bleu2(Bleu):
    name, longest = "bleu-2", 2
    summary = "precision of single words and pairs of words"


@register
class Bleu3(Bleu):
    name, longest = "bleu-3", 3
    summary = "precision of sequences of up to three words"


@register
class Bleu4(Bleu):
    name, longest = "bleu-4", 4
    summary = "precision of sequences of up to four words"
