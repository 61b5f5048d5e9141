"""wmd against POT's exact solver, called pair by pair as gensim calls it, on COCO captions with four references.

`python -m perf.wmd [IMAGES]` prints CPU seconds of both, the ratio, and the largest difference of a score.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import ot
from perf.coco import workload

from caplens import CaptionSet
from caplens.core.workspace import Workspace
from caplens.metrics.wmd import Wmd
from caplens.text.ptb import tokenize
from caplens.text.stopwords import STOP_WORDS
from caplens.text.vectors import load_vectors


def with_pot(candidates: list[str], references: list[list[str]]) -> np.ndarray:
    """exp(−distance) to the nearest reference, one solver call per pair."""
    vectors = load_vectors("glove-6b-50d")
    texts = [*candidates, *(text for each in references for text in each)]
    words = [[word for word in text.split() if word not in STOP_WORDS] for text in tokenize(texts)]
    vocabulary = sorted({word for each in words for word in each})
    rows = vectors.rows(vocabulary)
    unit = dict(zip(vocabulary, vectors.unit(np.maximum(rows, 0)).astype(np.float64), strict=True))
    known = {word for word, row in zip(vocabulary, rows, strict=True) if row >= 0}
    bags = []
    for each in words:
        distinct = sorted(known.intersection(each))
        counts = np.array([each.count(word) for word in distinct], dtype=np.float64)
        bags.append((np.array([unit[word] for word in distinct]), counts / max(1, counts.sum())))
    others = iter(bags[len(candidates) :])
    scores = np.zeros(len(candidates))
    for row, each in enumerate(references):
        for _ in each:
            matrix, weights = next(others)
            if len(weights) and len(bags[row][1]):
                cost = np.sqrt(((bags[row][0][:, None] - matrix[None]) ** 2).sum(axis=2))
                scores[row] = max(scores[row], np.exp(-ot.emd2(bags[row][1], weights, cost)))
    return scores


def main(images: int) -> None:
    candidates, references = workload(images)
    load_vectors("glove-6b-50d")  # the conversion of the table is paid once per machine
    start = time.process_time()
    theirs = with_pot(candidates, references)
    middle = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        ours = Wmd().compute(Workspace(CaptionSet.of(candidates, references))).scores
    end = time.process_time()
    print(f"{images} captions, 4 references: POT {middle - start:.2f} s, caplens {end - middle:.2f} s")
    print(f"ratio {(middle - start) / (end - middle):.1f}, largest difference {np.abs(ours - theirs).max():.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
