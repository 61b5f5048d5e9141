"""BLEU, ROUGE-L, CIDEr-D and CIDEr-R: pycocoevalcap and caplens side by side on COCO val2014, in CPU seconds.

Both start from the same tokenized strings; the last part starts from raw captions and includes the tokenizing.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial

import numpy as np
from perf.coco import workload
from perf.measure import measure, run_alone, show
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer
from scipy.stats import gmean

import caplens
from caplens.text.ptb import tokenize

# The CIDEr-R authors' scorer is not on PyPI; this is what it needed, measured once with its own code.
AUTHORS_SECONDS_PER_IMAGE = 9.9 / 1000
ALL = """
import caplens
from perf import coco
report = caplens.evaluate(*coco.workload(), metrics=["bleu", "rouge-l", "cider-d", "cider-r"])
"""
LOAD = "import caplens; from perf import coco; coco.workload()"


def stand_in_penalties(candidates: list[str], references: list[list[str]]) -> None:
    r"""The penalties of CIDEr-R as the authors' scorer works: \w+ words and a geometric mean, for each n anew."""
    for candidate, texts in zip(candidates, references, strict=True):
        for text in texts:
            for _ in range(4):
                own, other = Counter(re.findall(r"\w+", candidate)), Counter(re.findall(r"\w+", text))
                gmean([1 / (1 + (abs(own[word] - other[word]) if word in other else own[word] - 1)) for word in own])


def main() -> None:
    candidates, references = workload(5000)
    candidates, references = tokenize(candidates), [tokenize(texts) for texts in references]
    gts = dict(enumerate(references))
    res = {row: [text] for row, text in enumerate(candidates)}

    def mine(*metrics: str) -> caplens.Report:
        return caplens.evaluate(candidates, references, metrics=metrics, tokenizer="whitespace")

    print("5,000 images of COCO val2014, tokenized strings in, all scores out")
    peers = {"bleu": (Bleu(), 40), "rouge-l": (Rouge(), 40), "cider-d": (Cider(), 60)}
    seconds = {}
    for name, (scorer, bar) in peers.items():
        seconds[name], (_, official) = measure(partial(scorer.compute_score, gts, res))
        fast, report = measure(partial(mine, name), runs=5)
        ours = [result.scores for result in report]
        difference = np.abs(np.array(ours) - np.reshape(official, (len(ours), -1))).max()
        show(f"{name} (largest difference {difference:.0e})", seconds[name], fast, bar)
    penalties, _ = measure(lambda: stand_in_penalties(candidates[:500], references[:500]))
    fast, _ = measure(lambda: mine("cider-r"), runs=5)
    show("cider-r, stand-in for the authors' scorer", seconds["cider-d"] + 10 * penalties, fast, 300)
    show("cider-r, authors' scorer as measured once", 5000 * AUTHORS_SECONDS_PER_IMAGE, fast, 300)

    print("\n40,504 images of COCO val2014, raw captions in: tokenizing, BLEU, ROUGE-L, CIDEr-D")
    candidates, references = workload()

    def peer() -> None:
        tokenizer = PTBTokenizer()
        gts = tokenizer.tokenize({row: [{"caption": text} for text in texts] for row, texts in enumerate(references)})
        res = tokenizer.tokenize({row: [{"caption": text}] for row, text in enumerate(candidates)})
        for scorer in (Bleu(), Rouge(), Cider()):
            scorer.compute_score(gts, res)

    slow, _ = measure(peer)
    fast, _ = measure(lambda: caplens.evaluate(candidates, references, metrics=["bleu", "rouge-l", "cider-d"]), runs=3)
    show("tokenizing and three metrics", slow, fast, 40)
    fast, _ = measure(
        lambda: caplens.evaluate(candidates, references, metrics=["bleu", "rouge-l", "cider-d", "cider-r"]), runs=3
    )
    authors = 40_504 * AUTHORS_SECONDS_PER_IMAGE
    show("tokenizing and four metrics", slow + authors, fast, 40)
    show("four metrics here, three at the peer", slow, fast, 40)
    everything, loading = run_alone(ALL)["memory"], run_alone(LOAD)["memory"]
    print(f"peak memory of the four metrics {everything:.0f} MB, of loading the text {loading:.0f} MB (bar 500 MB)")


if __name__ == "__main__":
    main()
