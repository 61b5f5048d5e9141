"""Ctrl-C ends every kernel soon, however large the one row is that it works on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

# Each works for far longer than the test waits. A parallel test runner ignores SIGINT, and its children inherit that.
PRELUDE = """
import signal
import numpy as np
from caplens.native import _kernels as kernels
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
def ints(values, dtype=np.int32):
    return np.array(values, dtype)
def corpus(words, references):
    text = " ".join(f"w{number}" for number in range(words))
    index = kernels.References([[text + " end"] * references, ["w1 w2"]], "whitespace")
    return index, kernels.Candidates(index, [text], ints([0], np.int64))
"""
KERNELS = {
    "rouge": """
index, candidates = corpus(200_000, 20)
START
candidates.common_subsequences()
""",
    "bleu": """
index, candidates = corpus(200_000, 20_000)
START
candidates.bleu_counts()
""",
    "cider": """
index, candidates = corpus(200_000, 20_000)
grams = kernels.NgramIndex(kernels.References([["a b"]], "whitespace"))
index, candidates = corpus(200_000, 20_000)
table = [np.zeros(0, np.uint32)] * 3
weights = kernels.TfIdf(kernels.NgramIndex(index, [], *table), np.zeros(1), 1.0)
START
candidates.consensus(weights, True, np.ones(20_000))
""",
    "repetitions": """
index, candidates = corpus(200_000, 20_000)
runs = kernels.WordRuns(index, True)
START
candidates.repetitions(runs)
""",
    "document-frequencies": """
index, candidates = corpus(200_000, 20_000)
START
kernels.NgramIndex(index)
""",
    "tokenizer": """
text = "." * 1_000_000
START
kernels.ptb_tokenize([text] * 2000)
""",
    "references": """
text = "." * 1_000_000
texts = [f"{text}{number}" for number in range(300)]
START
for _ in range(100):
    kernels.References([texts], "ptb")
""",
    "meteor-search": """
kernel = kernels.Meteor([], None, None)
text = "dog " * 990
START
kernel.score([text], [[text + "cat"] * 1000])
""",
    "meteor-greedy": """
kernel = kernels.Meteor([], None, None)
text = " ".join(f"w{number}" for number in range(100_000))
START
kernel.score([text], [[text + " cat"] * 1000])
""",
    "meteor-normalizer": """
text = "a-b, 'c' ... " * 500_000
START
kernels.meteor_normalize([text] * 100)
""",
    "wmd": """
vectors = rng.normal(size=(9000, 8)).astype(np.float32)
START
kernels.wmd_nearest(vectors, ints([0, 4500, 9000], np.int64), np.arange(9000), rng.integers(1, 9, 9000),
                    ints([0], np.int64), ints([0, 1], np.int64), ints([1], np.int64))
""",
    "kendall-resampled": """
count = 3_000_000
ranks = [rng.permutation(count).astype(np.int32) for _ in range(2)]
weights = np.ones((100, 1), np.int32)
START
kernels.kendall_resampled(*ranks, np.zeros(count, np.int32), weights)
""",
    "kendall-swapped": """
count = 3_000_000
ranks = [rng.permutation(count).astype(np.int32) for _ in range(3)]
masks = np.ones((100, 1), np.uint8)
START
kernels.kendall_swapped(*ranks, np.zeros(count, np.int32), masks)
""",
    "parser": """
hidden, labels = 64, 100
floats = lambda *shape: rng.normal(size=shape).astype(np.float32)
lengths = np.full(100_000, 100, np.int32)
rows = np.zeros(int(lengths.sum()), np.int32)
START
kernels.parse_arcs(floats(9, 16 * hidden), rows, lengths, floats(16 * hidden), floats(2 * hidden),
                   floats(labels, hidden), floats(labels), ints(rng.integers(0, 5, labels)))
""",
    "paraphrase-table": """
builder = kernels.ParaphraseBuilder()
chunk = b"".join(b"1\\na%d b\\nb a%d\\n" % (number % 60_000, number) for number in range(60_000))
START
for number in range(1000):
    builder.feed(chunk)
""",
}


@pytest.mark.parametrize("name", KERNELS)
def test_ctrl_c_ends_a_long_kernel(name: str) -> None:
    code = PRELUDE + KERNELS[name].replace("START", "print('started', flush=True)")
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n", process.communicate()[1]
        time.sleep(0.5)
        assert process.poll() is None, "the kernel was too quick to be interrupted"
        sent = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        waited = time.monotonic() - sent
    finally:
        process.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert waited < 30  # about a tenth of a second where nothing else runs
