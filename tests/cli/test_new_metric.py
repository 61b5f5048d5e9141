"""`caplens new-metric`: what it writes works as it is, by file and by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run


def test_the_skeleton_scores_and_its_own_test_passes(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shown = run("new-metric", "vowel-share", "--output", folder)
    assert shown.code == 0, shown.stderr
    (tmp_path / "captions.json").write_text('{"1": "aabb", "2": "xyz"}')
    scored = run("score", tmp_path / "captions.json", "-m", f"{folder / 'caplens_vowel_share.py'}:VowelShare")
    assert scored.code == 0, scored.stderr
    assert "vowel-share  25.00" in scored.stdout
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert "4 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [("Vowel Share", "is no name"), ("../x", "is no name"), ("bleu-4", "there is a metric 'bleu-4'")],
)
def test_bad_names_are_refused(run: Run, tmp_path: Path, name: str, message: str) -> None:
    shown = run("new-metric", name, "--output", tmp_path / "x")
    assert shown.code == 2
    assert message in shown.stderr
    assert not (tmp_path / "x").exists()


def test_nothing_is_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    shown = run("new-metric", "vowel-share", "--output", tmp_path)
    assert shown.code == 2
    assert "not empty" in shown.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("x = (", "x.py:A", "cannot be imported (SyntaxError"),
        ("import nothing_like_it", "x.py", "cannot be imported (ModuleNotFoundError"),
        ("A = 1", "x.py:A", "no metric 'A' in it; a metric is a subclass"),
        (None, "x.py:A", "there is no such file"),
    ],
)
def test_a_file_without_the_metric_says_so(
    run: Run, tmp_path: Path, content: str | None, name: str, message: str
) -> None:
    if content is not None:
        (tmp_path / "x.py").write_text(content)
    (tmp_path / "captions.json").write_text('{"1": "aabb"}')
    shown = run("score", tmp_path / "captions.json", "-m", tmp_path / name)
    assert shown.code == 2
    assert message in shown.stderr
