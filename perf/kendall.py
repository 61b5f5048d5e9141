"""Kendall τb of 47,830 rows with 2,000 bootstrap samples over 1,000 images: caplens against scipy row by row.

scipy sorts every resample again, so it is timed on a few samples and scaled up. Run: python -m perf.kendall
"""

from __future__ import annotations

import time

import numpy as np
import scipy.stats

from caplens.bench.agreement import correlate, draw_weights

ROWS, IMAGES, SAMPLES, PEER_SAMPLES = 47_830, 1_000, 2_000, 20


def main() -> None:
    random = np.random.default_rng(1)
    units = np.sort(random.integers(0, IMAGES, ROWS)).astype(np.int32)
    ratings = random.integers(0, 13, ROWS) / 12
    scores = ratings + random.normal(size=ROWS)
    weights = draw_weights(IMAGES, SAMPLES, seed=1)

    start = time.process_time()
    ours = correlate("tau-b", scores, ratings, units, weights)
    our_seconds = time.process_time() - start

    start = time.process_time()
    theirs = []
    for drawn in weights[:PEER_SAMPLES]:
        rows = np.repeat(np.arange(ROWS), drawn[units])
        theirs.append(scipy.stats.kendalltau(scores[rows], ratings[rows]).statistic)
    peer_seconds = (time.process_time() - start) * SAMPLES / PEER_SAMPLES

    print(f"largest difference  {np.abs(ours[:PEER_SAMPLES] - theirs).max():.1e}")
    print(f"caplens             {our_seconds:8.2f} CPU s for {SAMPLES:,} samples")
    print(f"scipy.stats         {peer_seconds:8.2f} CPU s (from {PEER_SAMPLES} samples)")
    print(f"ratio               {peer_seconds / our_seconds:8.1f}")


if __name__ == "__main__":
    main()
