"""A metric from another package: the share of vowels in a caption."""

from __future__ import annotations

import numpy as np

from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric, Statistics, register


@register
class Vowels(Metric):
    """Vowels per character."""

    name = "vowels"
    needs = frozenset()
    paper = "nobody"
    summary = "share of vowels"

    def __init__(self, *, letters: str = "aeiou") -> None:
        self.letters = letters

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("letters", self.letters),)

    def statistics(self, work: Workspace) -> Statistics:
        shares = [
            sum(text.count(letter) for letter in self.letters) / max(1, len(text)) for text in work.captions.candidates
        ]
        return Statistics(np.array(shares)[:, None])
