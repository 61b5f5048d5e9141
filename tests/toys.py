"""Small metrics for tests of what stands around metrics: reports, pages, the command line."""

from __future__ import annotations

import numpy as np

from caplens.core.errors import MissingData
from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric, Statistics


class Overlap(Metric):
    """Share of a caption's words that some reference has, with every word marked."""

    name = "toy-overlap"
    needs = frozenset({"references"})
    paper = "Nobody, never"
    summary = "Share of the caption's words that a reference has."

    def __init__(self, floor: float = 0.0) -> None:
        self.floor = floor

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("floor", str(self.floor)),)

    def statistics(self, work: Workspace) -> Statistics:
        rows, details = [], []
        assert work.captions.references is not None
        for caption, references in zip(work.captions.candidates, work.captions.references, strict=True):
            known = set(" ".join(references).split())
            right = [word in known for word in caption.split()]
            rows.append([max(self.floor, float(np.mean(right)) if right else 0.0)])
            words = [
                {"text": word, "status": "right" if found else "wrong"}
                for word, found in zip(caption.split(), right, strict=True)
            ]
            details.append({"words": words, "missing": sorted(known - set(caption.split()))})
        return Statistics(np.array(rows).reshape(-1, 1), details=details)


class Picky(Metric):
    """Caption length over 100, except that captions with 'broken' in them cannot be scored."""

    name = "toy-picky"
    needs = frozenset()
    paper = "Nobody, never"
    summary = "Length over 100; refuses some."
    shown_as_percent = False

    def statistics(self, work: Workspace) -> Statistics:
        lengths = np.array([[len(caption) / 100] for caption in work.captions.candidates]).reshape(-1, 1)
        failures = {}
        for row, caption in enumerate(work.captions.candidates):
            if "broken" in caption:
                lengths[row] = np.nan
                failures[row] = "the <picture> cannot be read"
        return Statistics(lengths, failures=failures)


class Blind(Picky):
    """Needs a picture that the tests do not give."""

    name = "toy-blind"
    needs = frozenset({"image"})


class Weightless(Picky):
    """Cannot even be made."""

    name = "toy-weightless"

    def __init__(self) -> None:
        raise MissingData("toy-weightless lacks its weights: caplens weights fetch toy")
