"""Length: how many words a caption has. Not a judgment, but often the reason for one."""

from __future__ import annotations

import numpy as np

from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics.base import Metric, Statistics, register
from caplens.text.ngrams import Tokenizer, corpus_of, tokenizer_name


@register
class Length(Metric):
    """Words per caption; the corpus score is the mean."""

    name = "length"
    needs = frozenset()
    paper = ""
    summary = "words per caption"
    shown_as_percent = False

    def __init__(self, *, tokenizer: Tokenizer = "ptb") -> None:
        self.tokenizer = options.tokenizer(tokenizer)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("tokenizer", tokenizer_name(self.tokenizer)),)

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(corpus_of(work, self.tokenizer).candidates.lengths().astype(np.float64)[:, None])
