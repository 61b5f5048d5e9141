"""The tokenizer on COCO val2014 (40,504 images, 5 captions each): caplens against pycocoevalcap's PTBTokenizer in Java.

CPU seconds of this process and, for the peer, of the Java process it starts. Run: python -m perf.tokenizer
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from perf import coco
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from caplens.text.ptb import tokenize

REPEATS = 10  # of ours, which is over too soon to time once

T = TypeVar("T")


def cpu_seconds(work: Callable[[], T]) -> tuple[float, T]:
    """What the work took, children included, and its result."""
    before = os.times()
    result = work()
    after = os.times()
    return sum(after[:4]) - sum(before[:4]), result


def main() -> None:
    captions = {image: texts[:5] for image, texts in coco.captions().items()}
    texts = [text for group in captions.values() for text in group]
    size = sum(len(text.encode()) for text in texts) / 1e6

    start = time.process_time()
    for _ in range(REPEATS):
        ours = tokenize(texts)
    our_seconds = (time.process_time() - start) / REPEATS

    rows = {image: [{"caption": text} for text in group] for image, group in captions.items()}
    peer_seconds, theirs = cpu_seconds(lambda: PTBTokenizer().tokenize(rows))

    # The jar sees the next caption behind "Wii U."; caplens looks at one caption alone (docs/research/tokenizer.md).
    different = sum(a != b for a, b in zip(ours, (text for group in theirs.values() for text in group), strict=True))
    print(f"captions            {len(texts):,} ({size:.1f} MB), {different} of them differ")
    print(f"caplens             {our_seconds:8.3f} CPU s ({size / our_seconds:.0f} MB/s)")
    print(f"pycocoevalcap       {peer_seconds:8.3f} CPU s")
    print(f"ratio               {peer_seconds / our_seconds:8.1f}")


if __name__ == "__main__":
    main()
