"""Which metrics find hallucinations, and the words: HAT and nocaps-FOIL, with the explanation by references beside.

    python -m tools.hallucination DATA

Prints the tables of docs/research/hallucination.md.
"""

from __future__ import annotations

import sys

import numpy as np

from caplens.bench.base import find_sets
from caplens.bench.data import DataFolders
from caplens.bench.run import run
from caplens.core.workspace import Workspace
from caplens.evaluation.reference_support import ReferenceMatcher
from caplens.metrics import load_metric
from caplens.metrics.base import Metric, Statistics

METRICS = ("hallucination", "chair-i", "chair-s", "meteor", "spice", "cider-d", "sent-sim")


class Explanation(Metric):
    """What `caplens explain` says by references: the share of right words, and which are wrong."""

    name = "explanation"
    needs = frozenset({"references"})
    paper = ""
    summary = "the share of words that references support"

    def statistics(self, work: Workspace) -> Statistics:
        details = ReferenceMatcher().explain(work.captions.candidates, work.captions.references or [])
        precisions = [entry["precision"] for entry in details]
        scores = [1.0 if precision is None else precision for precision in precisions]
        return Statistics(np.array(scores)[:, None], details=details)


def main(data: str) -> None:
    metrics = [Explanation(), *map(load_metric, METRICS)]
    report = run(find_sets(["hat", "nocaps-foil"]), metrics, DataFolders([data]))
    print(report.to_markdown())


if __name__ == "__main__":
    main(sys.argv[1])
