"""One signature, one number: a score is the same in any order, company and state of the cache, and with any threads.

docs/guide/first-report.md says how far: `TOLERANCE`, on one machine with the same packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import caplens
from caplens.cli import demo
from caplens.core.layers import product
from caplens.storage.paths import cache_folder

TOLERANCE = 3e-7
"""Of a score, or of 1 where that is larger."""
METRICS = ["sent-sim", "clip-s", "pac-s", "infometic", "caplens-score"]
EXAMPLES = Path(demo.__file__).parent / "examples"
ROWS = [json.loads(line) for line in (EXAMPLES / "captions.jsonl").read_text("utf-8").splitlines()][:5]
Scores = dict[str, dict[str, float]]


def scores(rows: list[dict[str, object]], *, cold: bool = True) -> Scores:
    """Metric to id to score; `cold` without what the cache has of pictures and texts."""
    if cold:
        for file in cache_folder().glob("embeddings.sqlite*"):
            file.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = caplens.evaluate(
            {row["id"]: str(row["caption"]) for row in rows},
            {row["id"]: row["references"] for row in rows},  # type: ignore[misc]
            {row["id"]: str(EXAMPLES / "images" / Path(str(row["image"])).name) for row in rows},
            metrics=METRICS,
            encoder="embedded",
        )
    if report.errors:
        pytest.skip(next(iter(report.errors.values())))
    return {result.name: dict(zip(report.captions.ids, result.scores.tolist(), strict=True)) for result in report}


def moved(one: Scores, other: Scores) -> dict[str, float]:
    """How far each metric moved, where it moved further than we promise."""
    most = {
        name: max(abs(score - one[name][key]) / max(1, abs(score)) for key, score in other[name].items())
        for name in METRICS
    }
    return {name: distance for name, distance in most.items() if distance > TOLERANCE}


@pytest.fixture(scope="module")
def together() -> Scores:
    return scores(ROWS)


def test_order_company_and_cache_change_nothing(together: Scores) -> None:
    assert moved(together, scores(ROWS[::-1])) == {}
    scores(ROWS[:0:-1])
    assert moved(together, scores(ROWS, cold=False)) == {}  # one picture and some texts were not in the cache
    assert moved(together, scores(ROWS[:1])) == {}
    assert moved(together, scores(ROWS[1:2])) == {}
    assert moved(together, scores(ROWS, cold=False)) == {}


def test_threads_change_nothing(together: Scores) -> None:
    code = "import json; from tests.attack.test_stable_scores import *; print(json.dumps(scores(ROWS)))"
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment, folder = {**os.environ, **single}, Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert moved(together, json.loads(done.stdout.splitlines()[-1])) == {}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("inputs", "outputs"), [(384, 256), (256, 256), (1024, 256), (1152, 512), (512, 1536)])
def test_a_row_gives_the_same_alone_and_among_others(inputs: int, outputs: int, transposed: bool) -> None:
    random = np.random.default_rng(0)
    rows, matrix = (random.normal(size=shape).astype(np.float32) for shape in ((73, inputs), (inputs, outputs)))
    matrix = np.asfortranarray(matrix) if transposed else matrix
    whole = product(rows, matrix)
    for size in (1, 2, 3, 7, 17, 33):
        parts = [product(rows[start : start + size], matrix) for start in range(0, len(rows), size)]
        assert np.abs(np.concatenate(parts) - whole).max() <= TOLERANCE * np.abs(whole).max()
