"""Everything that `--json` prints is what the schema says, for every verb."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.schemas import check_output, schema
from typer.main import get_command

import caplens
from caplens.cli import build_app

EXAMPLES = Path(caplens.__file__).parent / "cli" / "examples"
CAPTIONS, RATINGS, CAT = EXAMPLES / "captions.jsonl", EXAMPLES / "ratings.csv", EXAMPLES / "images" / "cat.jpg"
# What each verb is run with; where it has several outputs, the name of the definition comes first.
CASES: dict[str, list[tuple[str, list[object]]]] = {
    "bench": [
        ("bench", ["--ratings", RATINGS, "--captions", CAPTIONS, "-m", "rouge-l,bleu-1"]),
        ("bench-list", ["list"]),
    ],
    "caption": [("caption", [CAT]), ("caption", [EXAMPLES / "images", "-r", CAPTIONS])],
    "check": [("check", [CAPTIONS]), ("check", ["{folder}/alt.csv"])],
    "compare": [
        ("compare", [CAPTIONS, EXAMPLES / "captions_b.jsonl", "-r", CAPTIONS, "-m", "rouge-l", "--resamples", "20"])
    ],
    "doctor": [("doctor", [])],
    "explain": [("explain", [CAT, "a dog on a mat"]), ("explain", ["a dog", "--reference", "a cat"])],
    "export": [("export", ["{folder}/runs", "{folder}/site"])],
    "filter": [("filter", ["{folder}/alt.csv", "--keep", "length > 1", "--output", "{folder}/kept", "--workers", "1"])],
    "idf build": [("idf-build", [CAPTIONS, "--output", "{folder}/idf.safetensors"])],
    "metrics": [("metrics", []), ("metric", ["cider"])],
    "new-metric": [("new-metric", ["vowels", "--output", "{folder}/vowels"])],
    "report": [("report", ["{folder}/scores"])],
    "score": [
        ("report", ["{folder}/alt.csv", "-m", "length", "--output", "{folder}/out", "--workers", "1"]),
        ("score", [CAPTIONS, "-m", "classical,infometic,clip-s"]),
        ("score", ["{folder}/alt.csv", "-m", "length"]),
        ("score", ["{folder}/alt.csv", "-m", "cider-d,length"]),
        ("score", ["{folder}/several.csv", "-m", "cider-d,length", "--several"]),
    ],
    "weights fetch": [("weights-fetch", ["wordnet-3.0"])],
    "weights list": [("weights-list", [])],
    "weights path": [("weights-path", ["wordnet-3.0"])],
}
# Minutes of work: checked where they run anyway.
ELSEWHERE = {"demo": "demo", "generate positives": "generate-positives", "train": "train"}


def verbs(command: Any = None, path: str = "") -> Iterator[str]:
    """Every verb that has `--json`."""
    command = command or get_command(build_app())
    for name, inner in getattr(command, "commands", {}).items():
        yield from verbs(inner, f"{path} {name}".strip())
    if any("--json" in parameter.opts for parameter in command.params):
        yield path


def test_every_verb_has_a_schema_and_is_run() -> None:
    listed = {verb if not verb.startswith("train ") else "train" for verb in verbs()}
    assert listed == {*CASES, *ELSEWHERE}
    named = {name for cases in CASES.values() for name, _ in cases} | {*ELSEWHERE.values()}
    assert {*schema()["$defs"]} == named | {"details", "interval", "verdict"}


@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
@pytest.mark.parametrize(("verb", "name", "arguments"), [(v, *case) for v, cases in CASES.items() for case in cases])
def test_what_a_verb_prints(run: Run, tmp_path: Path, verb: str, name: str, arguments: list[object]) -> None:
    (tmp_path / "alt.csv").write_text("id,alt\n1,a dog\n2,\n3,IMG_0001.jpg\n", "utf-8")
    several = "image_id,caption,references\n1,a dog,a hound\n1,a cat,a hound\n2,two birds,birds\n"
    (tmp_path / "several.csv").write_text(several, "utf-8")
    if verb == "report":
        pytest.importorskip("pyarrow")
        caplens.evaluate_shards(tmp_path / "alt.csv", "length", output=tmp_path / "scores", workers=1)
    if verb == "export":
        caplens.evaluate(["a cat"], [["a cat"]], metrics=["rouge-l"]).to_json(tmp_path / "runs" / "one.json")
    filled = [str(argument).replace("{folder}", str(tmp_path)) for argument in arguments]
    outcome = run(*verb.split(), *filled, "--json")
    if not outcome.stdout and "needs" in outcome.stderr:
        pytest.skip(outcome.stderr.strip())
    assert check_output(name, outcome.stdout), outcome.stderr


def test_what_a_generator_leaves_behind(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    positives = pytest.importorskip("caplens.training.positives")
    monkeypatch.setattr(positives, "load_captioner", lambda name: name)  # a model of its own is tested elsewhere
    monkeypatch.setattr(positives, "generate_captions", lambda *arguments: {"cat": "a cat"})
    pairs = {f"{split}.jpg": {"split": split, "captions": ["a cat"]} for split in ("train", "val")}
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    places = ["--images", EXAMPLES / "images", "--captions", tmp_path / "pairs.json", "--output", tmp_path]
    outcome = run("generate", "positives", *places, "--captioner", "any", "--json")
    assert check_output("generate-positives", outcome.stdout) == {"captions": 1}


def test_what_the_schema_does_not_know_is_noticed() -> None:
    validation = pytest.importorskip("jsonschema").ValidationError
    with pytest.raises(validation, match="'speed' was unexpected"):
        check_output("doctor", json.dumps({"ok": True, "findings": [], "speed": 3}))
    with pytest.raises(validation, match="is not of type"):
        check_output("weights-path", json.dumps({"a": 3}))
