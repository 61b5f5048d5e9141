"""A reward for self-critical training: 250 sampled captions a batch, references of 113,287 COCO images indexed.

The peer is pycocoevalcap's CIDEr-D scorer with document frequencies at hand, which is how training loops use it.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from functools import partial
from typing import Any

from perf.coco import captions
from perf.measure import measure, show
from pycocoevalcap.cider.cider_scorer import CiderScorer

import caplens
from caplens.text.ptb import tokenize

IMAGES, BATCH, BATCHES = 113_287, 250, 40


def score(reward: caplens.Reward, batches: list[tuple[Any, ...]], place: int) -> None:
    for batch in batches:
        reward(batch[0], batch[place])


def main() -> None:
    source = {**captions("train2014"), **captions("val2014")}
    references = {key: texts[:5] for key, texts in list(source.items())[:IMAGES]}
    draw = random.Random(0)
    keys = list(references)
    words = [
        "<end>",
        *sorted({word for texts in references.values() for text in tokenize(texts) for word in text.split()}),
    ]
    number = {word: place for place, word in enumerate(words)}
    batches = []
    for _ in range(BATCHES):
        ids = [draw.choice(keys) for _ in range(BATCH)]
        # A caption of the image with a few words replaced: what sampling from a captioner gives.
        texts = []
        for text in tokenize([draw.choice(references[key]) for key in ids]):
            spoken = text.split()[:20]
            texts.append(" ".join(word if draw.random() < 0.8 else draw.choice(words[1:]) for word in spoken))
        rows = [[number[word] for word in text.split()] + [0] for text in texts]
        batches.append((ids, texts, rows))

    tokenized = {key: tokenize(references[key]) for ids, _, _ in batches for key in ids}

    def peer() -> None:
        ids, texts, _ = batches[0]
        scorer = CiderScorer()
        scorer.document_frequency = defaultdict(float)
        for key, text in zip(ids, texts, strict=True):
            scorer += (text, tokenized[key])
        scorer.compute_cider()

    slow, _ = measure(peer, runs=10)
    for name in ("cider-d", "cider-r"):
        start = time.process_time()
        reward = caplens.Reward(name, references=references, vocabulary=words)
        reward(*batches[0][:2])
        reward(batches[0][0], batches[0][2])
        print(f"{name}: references of {len(references):,} images indexed in {time.process_time() - start:.1f} CPU s")
        for kind, place in (("text", 1), ("token numbers", 2)):
            fast, _ = measure(partial(score, reward, batches, place), runs=10)
            each = fast / BATCHES
            show(f"  {BATCH} captions as {kind}, {1000 * each:.2f} ms (bar 2 ms)", slow, each, 100)


if __name__ == "__main__":
    main()
