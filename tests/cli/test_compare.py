"""`caplens compare`: several files against the first, exit code 1 when asked to fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Forty pictures; `good` gets all words right, `bad` half of them, `same` is `good` in another order."""
    ids = [f"p{number}" for number in range(40)]
    made = {
        "good": dict.fromkeys(ids, "a cat"),
        "bad": dict.fromkeys(ids, "a dog"),
        "same": dict.fromkeys(reversed(ids), "a cat"),
        "references": {name: ["a cat"] for name in ids},
    }
    for name, content in made.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return {name: tmp_path / f"{name}.json" for name in made}


@pytest.mark.usefixtures("toys")
def test_three_systems_are_tested_against_the_first(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    systems = (files["good"], files["bad"], files["same"])
    shown = run(
        "compare", *systems, "-r", files["references"], "-m", "toy-overlap", "--seed", 7, "--json", tmp_path / "c.json"
    )
    assert shown.code == 0, shown.stderr
    assert "** worse" in shown.stdout
    assert "seed 7" in shown.stdout
    found = json.loads((tmp_path / "c.json").read_text())
    assert (found["baseline"], found["seed"], found["captions"]) == ("good", 7, 40)
    rows = found["metrics"]["toy-overlap"]["systems"]
    assert [row["score"] for row in rows] == [1.0, 0.5, 1.0]
    assert rows[0]["difference"] is None
    assert rows[1]["difference"]["p_permutation"] == pytest.approx(1 / 1001)
    assert rows[2]["difference"]["p_permutation"] == 1.0


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(("first", "second", "code"), [("good", "bad", 1), ("bad", "good", 0), ("good", "same", 0)])
def test_fail_if_worse_is_exit_code_1(run: Run, files: dict[str, Path], first: str, second: str, code: int) -> None:
    shown = run(
        "compare", files[first], files[second], "-r", files["references"], "-m", "toy-overlap", "--fail-if-worse"
    )
    assert shown.code == code
    assert ("significantly worse" in shown.stderr) == (code == 1)


@pytest.mark.usefixtures("toys")
def test_captions_without_a_score_are_named_with_the_reason(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    broken = json.loads(files["good"].read_text()) | {"p3": "broken", "p5": "broken"}
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps(broken))
    shown = run("compare", files["good"], *(tmp_path / f"{name}.json" for name in ("one", "two")), "-m", "toy-picky")
    assert shown.code == 0, shown.stderr
    reason = "the <picture> cannot be read"
    assert shown.stderr.splitlines() == [f"no score for {name}: {reason}" for name in ("p3", "p5")]  # each once
    shown = run("compare", files["good"], tmp_path / "one.json", "-m", "toy-picky", "--json")
    compared = json.loads(shown.stdout)["metrics"]["toy-picky"]
    assert compared["captions"] == 38
    assert [system["failures"] for system in compared["systems"]] == [{}, {"p3": reason, "p5": reason}]


def test_the_examples_compare_with_the_default_metrics(run: Run) -> None:
    one, other = EXAMPLES / "captions.jsonl", EXAMPLES / "captions_b.jsonl"
    shown = run("compare", one, other, "--references", one, "--resamples", 100, "--json")
    assert shown.code == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["systems"] == ["captions", "captions_b"]
    assert "cider-d" in found["metrics"]


def test_systems_on_different_pictures_are_refused(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "short.json").write_text(json.dumps({"p1": "a cat"}))
    shown = run("compare", files["good"], tmp_path / "short.json", "-m", "length")
    assert shown.code == 2
    assert "system 'short' has no caption for id 'p0', which 'good' has" in shown.stderr
    assert run("compare", files["good"], "-m", "length").code == 2
