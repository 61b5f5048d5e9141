"""METEOR's speed beside its jar: CPU seconds, same captions, one after the other.

    python -m perf.meteor [--images 40504] [--jar-images 40504] [--check 20000]

The jar runs as pycocoevalcap runs it (it reads its 62 MB paraphrase table first, as every one of its runs does), on the
tokens caplens made; caplens is timed from raw captions and, as the jar is, from tokens. `--check N` compares both on N
more pairs drawn from captions by captioning systems instead, and prints how many differ by more than 1e-6.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import time
from pathlib import Path

import numpy as np
from perf.coco import workload

from caplens import CaptionSet
from caplens.core.workspace import Workspace
from caplens.metrics.meteor import Meteor
from caplens.text.ptb import tokenize

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def resident() -> int:
    """Megabytes of this process in memory now, mapped files included."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024


def tokens_of(candidates: list[str], references: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    flat = iter(tokenize([text for texts in references for text in texts]))
    return tokenize(candidates), [[next(flat) for _ in texts] for texts in references]


def jar(candidates: list[str], references: list[list[str]]) -> tuple[float, list[float], float]:
    """Corpus score, scores and CPU seconds of the original; its process is counted when it has ended."""
    from pycocoevalcap.meteor.meteor import Meteor as Original

    before, own = children(), time.process_time()
    original = Original()
    numbers = range(len(candidates))
    corpus, scores = original.compute_score(
        dict(zip(numbers, references, strict=True)), {number: [candidates[number]] for number in numbers}
    )
    original.meteor_p.stdin.close()
    original.meteor_p.wait()
    return corpus, scores, children() - before + time.process_time() - own


def timed(metric: Meteor, candidates: list[str], references: list[list[str]]) -> tuple[float, np.ndarray, float]:
    captions = CaptionSet.of(candidates, references)
    start = time.process_time()
    result = metric.compute(Workspace(captions))
    return result.score, result.scores, time.process_time() - start


def machine_pairs(count: int) -> tuple[list[str], list[list[str]]]:
    """Captions by captioning systems with the references of their pictures."""
    references: dict[str, list[str]] = {}
    for name in ("coco/coco_captions.json", "flickr30k/flickr30k_captions.json.gz", "flickr8k/flickr8k_captions.json"):
        opened = gzip.open if name.endswith(".gz") else open
        with opened(SHARED / name, "rt", encoding="utf-8") as file:
            references |= {image: entry["captions"] for image, entry in json.load(file).items()}
    rows = []
    for path in sorted((SHARED / "machine").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows += [row for line in file if (row := json.loads(line))["image"] in references]
    chosen = random.Random(0).sample(rows, count)
    return [row["caption"] for row in chosen], [references[row["image"]] for row in chosen]


def check(count: int) -> None:
    candidates, references = machine_pairs(count)
    corpus, scores, _ = timed(Meteor(), candidates, references)
    original_corpus, original, _ = jar(*tokens_of(candidates, references))
    difference = np.abs(scores - np.array(original))
    print(f"{count} pairs: {(difference > 1e-6).sum()} differ by more than 1e-6, at most {difference.max():.1e}")
    print(f"corpus {corpus:.12f}, jar {original_corpus:.12f}")


def race(images: int, jar_images: int) -> None:
    candidates, references = workload(images)
    Meteor().compute(Workspace(CaptionSet.of(["a"], [["a"]])))  # the index is built by now
    before = resident()
    _, _, raw = timed(Meteor(), candidates, references)
    print(f"caplens, {images} images x 4 references: {raw:.2f} CPU s from raw captions, {resident()} MB resident "
          f"({before} MB before scoring)")  # fmt: skip
    tokens, reference_tokens = tokens_of(candidates, references)
    score, _, from_tokens = timed(Meteor(tokenizer="whitespace"), tokens, reference_tokens)
    print(f"caplens from tokens: {from_tokens:.2f} CPU s, corpus {score:.12f}")
    original_score, _, seconds = jar(tokens[:jar_images], reference_tokens[:jar_images])
    print(f"jar, {jar_images} images, from tokens: {seconds:.2f} CPU s, corpus {original_score:.12f}")
    if jar_images == images:
        print(f"ratio {seconds / from_tokens:.1f} from tokens, {seconds / raw:.1f} with caplens tokenizing as well")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=40_504)
    parser.add_argument("--jar-images", type=int)
    parser.add_argument("--check", type=int, help="compare on this many pairs of machine captions instead")
    given = parser.parse_args()
    if given.check:
        check(given.check)
    else:
        race(given.images, given.jar_images or given.images)
