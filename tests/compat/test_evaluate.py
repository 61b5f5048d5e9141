"""Hugging Face evaluate loads every metric from the file that comes with caplens, offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import caplens

pytest.importorskip("evaluate")
pytest.importorskip("datasets")

PREDICTIONS = ["a cat on a mat", "two dogs run", ""]
REFERENCES = [["a cat on the mat", "the cat"], ["two dogs"], ["one bird flies", "a bird"]]
PROGRAM = """
import json, sys
import evaluate
from caplens.compat.evaluate import MODULE

answers = []
for name, columns in json.load(sys.stdin):
    metric = evaluate.load(MODULE, name)
    try:
        answers.append(metric.compute(**columns))
    except Exception as error:
        answers.append(f"{type(error).__name__}: {error}")
try:
    evaluate.load(MODULE)
except Exception as error:
    answers.append(f"{type(error).__name__}: {error}")
sys.stdout.write(json.dumps(answers))
"""


def computed(folder: Path, *asked: tuple[str, dict[str, Any]]) -> list[Any]:
    """What the metrics answer, in a process whose home is empty and which may not go online."""
    environment = {**os.environ, "HF_HOME": str(folder), "HF_EVALUATE_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, input=json.dumps(asked), env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
def test_modules_give_what_an_evaluation_gives(tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        paths.append(str(tmp_path / f"{number}.png"))
        Image.fromarray(np.full((48, 64, 3), 80 * number, np.uint8)).save(paths[-1])
    both = {"predictions": PREDICTIONS, "references": REFERENCES}
    single = {"predictions": PREDICTIONS, "references": [texts[0] for texts in REFERENCES]}
    seen = {"predictions": PREDICTIONS, "images": paths}
    *answers, refused, nameless = computed(
        tmp_path,
        ("cider-d", both),
        ("cider", both),
        ("cider-r", {**both, "k_r": 0.5}),
        ("bleu-4", single),
        ("clip-s", {**seen, "encoder": "embedded"}),
        ("pac-s", {**seen, "encoder": "embedded"}),
        ("clip-s", {"predictions": PREDICTIONS}),
    )
    text = caplens.evaluate(PREDICTIONS, REFERENCES, metrics=["cider-d"])["cider-d"]
    short = caplens.evaluate(PREDICTIONS, [texts[:1] for texts in REFERENCES], metrics=["bleu-4"])["bleu-4"]
    robust = caplens.evaluate(PREDICTIONS, REFERENCES, metrics=["cider-r"], k_r=0.5)["cider-r"]
    looked = caplens.evaluate(PREDICTIONS, images=paths, metrics=["clip-s", "pac-s"], encoder="embedded")
    if looked.errors:
        pytest.skip(next(iter(looked.errors.values())))
    for answer, result in zip(answers, [text, text, robust, short, looked["clip-s"], looked["pac-s"]], strict=True):
        assert answer == {
            result.name: result.score,
            "scores": pytest.approx(result.scores.tolist(), abs=1e-6),
            "signature": result.signature,
        }
    assert "images" in refused
    assert "got no name of a metric" in nameless
