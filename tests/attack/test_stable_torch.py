"""The same for metrics over somebody else's weights, made here and small: CLIP on torch, bert-score, NNEval and MID.

docs/guide/first-report.md says how far they may move.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.attack.test_stable_scores import EXAMPLES, ROWS
from tests.encoders.tiny_bert import write_tiny_model

import caplens
from caplens.metrics import load_metric
from caplens.metrics.base import Metric
from caplens.storage.paths import cache_folder

pytest.importorskip("torch")
pytest.importorskip("transformers")

TOLERANCE, OF_MID = 1e-6, 1e-4
"""Of a score, or of 1 where that is larger. MID divides by what its pictures hardly differ in."""
Scores = dict[str, float]


@functools.cache
def clip() -> object:
    """CLIP as wide as ViT-B/32 and two layers deep, with random weights."""
    import torch
    from tests.encoders.random_clip import VOCABULARY, tokenizer
    from transformers import CLIPConfig, CLIPModel

    from caplens.encoders.clip import ClipEncoder

    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "vocab_size": len(VOCABULARY), "max_position_embeddings": 20}
    ends = {"bos_token_id": len(VOCABULARY) - 2, "eos_token_id": len(VOCABULARY) - 1, "pad_token_id": 0}
    config = CLIPConfig(text_config={**sizes, **ends}, vision_config={"num_hidden_layers": 2})
    return ClipEncoder(CLIPModel(config).eval(), tokenizer(), "clip-random", "0")


@functools.cache
def language_model(kind: str) -> str:
    return str(write_tiny_model(Path(tempfile.mkdtemp()) / kind, kind))


KINDS: dict[str, Callable[[], Metric]] = {
    "clip-s": lambda: load_metric("clip-s", encoder=clip()),
    "ref-clip-s": lambda: load_metric("ref-clip-s", encoder=clip()),
    "mid": lambda: load_metric("mid", encoder=clip()),
    "bert": lambda: load_metric("bert-score", text_encoder=language_model("bert"), layer=2),
    "mpnet": lambda: load_metric("bert-score", text_encoder=language_model("mpnet"), layer=2),
    "nneval": lambda: load_metric("nneval"),
}


def scores(kind: str, rows: list[dict[str, object]], *, cold: bool = True) -> Scores:
    """Id to score; `cold` without what the cache has of pictures and texts."""
    if cold:
        for file in cache_folder().glob("embeddings.sqlite*"):
            file.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = caplens.evaluate(
            {row["id"]: str(row["caption"]) for row in rows},
            {row["id"]: row["references"] for row in rows},  # type: ignore[misc]
            {row["id"]: str(EXAMPLES / "images" / Path(str(row["image"])).name) for row in rows},
            metrics=[KINDS[kind]()],
        )
    if report.errors:
        pytest.skip(next(iter(report.errors.values())))
    (result,) = report
    return dict(zip(report.captions.ids, result.scores.tolist(), strict=True))


def moved(kind: str, one: Scores, other: Scores) -> bool:
    limit = OF_MID if kind == "mid" else TOLERANCE
    return any(abs(score - one[key]) > limit * max(1, abs(score)) for key, score in other.items())


@pytest.mark.parametrize("kind", KINDS)
def test_order_company_and_cache_change_nothing(kind: str) -> None:
    together = scores(kind, ROWS)
    assert len(set(together.values())) > 1
    assert not moved(kind, together, scores(kind, ROWS[::-1]))
    if kind != "mid":  # which is made of all pictures and references by definition
        scores(kind, ROWS[:0:-1])
        assert not moved(kind, together, scores(kind, ROWS, cold=False))  # some were not in the cache
        assert not moved(kind, together, scores(kind, ROWS[:1]))
    assert not moved(kind, together, scores(kind, ROWS, cold=False))


def test_threads_change_nothing() -> None:
    code = (
        "import json, sys; from tests.attack.test_stable_torch import *\n"
        "print(json.dumps({kind: scores(kind, ROWS) for kind in KINDS if kind != 'nneval'}))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    folder = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    for kind, single in json.loads(done.stdout.splitlines()[-1]).items():
        assert not moved(kind, scores(kind, ROWS), single), kind
