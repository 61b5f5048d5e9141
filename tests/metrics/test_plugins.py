"""A package that names its metric under the entry point `caplens.metrics` needs nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SCORE = """
import caplens, json, warnings
listed = [entry for entry in caplens.list_metrics() if entry["name"] == "vowels"]
result = caplens.evaluate(["aabb", "xyz"], metrics=["vowels", "length"])["vowels"]
print(json.dumps([listed, result.score, result.scores.tolist(), result.signature]))
"""


def test_an_installed_package_adds_its_metric(tmp_path: Path) -> None:
    source = shutil.copytree(Path(__file__).parent / "plugin", tmp_path / "source")
    install = ["install", "-q", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "site")]
    subprocess.run([sys.executable, "-m", "pip", *install, str(source)], check=True)

    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    run = subprocess.run([sys.executable, "-c", SCORE], env=environment, capture_output=True, text=True, check=True)
    listed, score, scores, signature = json.loads(run.stdout)
    assert listed == [{"name": "vowels", "aliases": [], "needs": [], "paper": "nobody", "summary": "share of vowels"}]
    assert (score, scores) == (0.25, [0.5, 0.0])
    assert signature.startswith("vowels|letters:aeiou|caplens:")
