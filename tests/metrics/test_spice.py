"""SPICE and SPIDEr: against the original's values, the original program's plumbing, and bad input."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caplens
from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensError, InputError, MissingData
from caplens.core.workspace import Workspace
from caplens.metrics.spice import Spice, f_score
from caplens.storage.weights import find
from caplens.text.proposition_store import PropositionStore
from caplens.text.scenegraph import Proposition

needs_parser = pytest.mark.skipif(
    find("en_core_web_md") is None or find("wordnet-3.0") is None,
    reason="the parser is not here: caplens weights fetch en_core_web_md wordnet-3.0",
)


def spice(candidates: list[str], references: list[list[str]], **options: Any) -> Any:
    return caplens.evaluate(candidates, references, metrics=["spice"], **options)["spice"]


@needs_parser
def test_a_caption_that_says_the_same_scores_one() -> None:
    result = spice(["A young girl sits on a wooden bench."], [["A young girl sits on a wooden bench"]])
    assert result.score == 1.0
    assert {tuple(entry["text"]) for entry in result.details[0]["tuples"]} == {
        ("girl",),
        ("bench",),
        ("girl", "young"),
        ("bench", "wooden"),
        ("girl", "sit on", "bench"),
    }


@needs_parser
def test_details_name_what_is_right_wrong_and_missing() -> None:
    details = spice(["two red cars"], [["three automobiles on a street", "a red car"]]).details[0]
    assert details["tuples"] == [
        {"text": ["car"], "status": "right", "kind": "object"},
        {"text": ["car", "red"], "status": "right", "kind": "attribute"},
        {"text": ["car", "two"], "status": "wrong", "kind": "attribute"},
    ]
    assert details["missing"] == [{"text": "street"}]
    # One of one object here, one of two there; red is a colour, two and three are counts.
    assert details["categories"] == {
        "Object": pytest.approx(2 / 3),
        "Attribute": 0.5,
        "Relation": 0.0,
        "Color": 1.0,
        "Count": 0.0,
        "Size": None,
    }


@needs_parser
@pytest.mark.shared
def test_agrees_with_the_original_on_the_values_at_hand(shared: Path) -> None:
    from scipy.stats import spearmanr

    rows = [json.loads(line) for line in (shared / "golden" / "thumb_oracle.jsonl").open(encoding="utf-8")]
    coco = json.loads((shared / "data" / "coco" / "coco_captions.json").read_text("utf-8"))
    # The values were computed against all five captions of each picture.
    references = [coco[f"COCO_val2014_{int(row['image_id']):012}.jpg"]["captions"] for row in rows]
    official = np.array([row["scores"]["SPICE"] / 100 for row in rows])
    result = spice([row["caption"] for row in rows], references)
    assert spearmanr(result.scores, official).statistic >= 0.85
    assert np.abs(result.scores - official).mean() <= 0.05


@needs_parser
def test_odd_captions_are_scored() -> None:
    odd = ["", "...", "the of and", "🙂 \ud800", "dog " * 3000, "and then he said that " * 200]
    result = spice(odd, [["a dog"]] * len(odd))
    assert np.isfinite(result.scores).all()
    assert result.scores[0] == 0.0


@needs_parser
def test_references_without_any_claim_give_zero() -> None:
    result = spice(["a dog"], [["", "of the"]])
    assert result.score == 0.0
    assert set(result.details[0]["categories"].values()) == {None}


@needs_parser
def test_spider_is_the_mean_of_its_parts() -> None:
    captions = CaptionSet.of(
        ["a dog runs", "two cats on a mat", "a red car"],
        [["a dog is running fast"], ["cats sit on a mat", "two cats"], ["a blue car on a road"]],
    )
    report = caplens.evaluate(captions, metrics=["spider", "cider-d", "spice"])
    mean = (report["cider-d"].scores + report["spice"].scores) / 2
    np.testing.assert_allclose(report["spider"].scores, mean, rtol=0, atol=1e-12)
    assert report["spider"].score == pytest.approx(mean.mean())
    assert "spice.rules:" in report["spider"].signature


@needs_parser
def test_pycocoevalcap_s_interface_gives_its_categories() -> None:
    from caplens.compat.pycocoevalcap import Spice as Scorer

    score, scores = Scorer().compute_score({7: ["two red cars"]}, {7: ["a red car"]})
    assert score == scores[0]["All"]["f"] == pytest.approx(0.8)
    assert scores[0]["Color"]["f"] == 1.0
    assert scores[0]["Cardinality"]["f"] == 0.0
    assert np.isnan(scores[0]["Relation"]["f"])


@needs_parser
def test_parses_are_kept_and_a_broken_store_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser, wordnet = find("en_core_web_md"), find("wordnet-3.0")
    assert parser is not None
    assert wordnet is not None
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path))
    expected: dict[str, tuple[Proposition, ...]] = PropositionStore(parser, wordnet, "source").of(
        ["a dog runs", "a cat"]
    )
    (store,) = (tmp_path / "spice").iterdir()

    again = PropositionStore(parser, wordnet, "source")
    assert again.of(["a dog runs", "a cat"]) == expected
    assert "_parser" not in vars(again)  # nothing had to be parsed

    store.write_bytes(b"not a database" * 1000)
    assert PropositionStore(parser, wordnet, "source").of(["a dog runs", "a cat"]) == expected


def test_a_missing_parser_comes_with_the_command_that_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path))
    with pytest.raises(MissingData, match=r"caplens weights fetch en_core_web_md wordnet-3\.0$"):
        spice(["a dog"], [["a dog"]])


def test_f_score() -> None:
    assert f_score(3, 4, 8) == 0.5
    assert f_score(0, 0, 5) == 0.0
    assert f_score(0, 3, 0) is None


FAKE_JAVA = """#!/usr/bin/env python3
import json, sys, time
arguments = sys.argv[1:]
assert arguments[0] == "-Xmx3G" and arguments[1] == "-jar", arguments
MODE = open(arguments[2]).read().strip()
if MODE == "sleep":
    time.sleep(60)
if MODE:
    sys.stderr.write(MODE.replace("|", "\\n"))
    sys.exit(1)
score = {"f": 0.5, "pr": 0.5, "re": 0.5}
answers = [
    {
        "image_id": row["image_id"],
        "scores": {"All": {"f": len(row["refs"]) / 10}, "Object": score, "Cardinality": score, "Size": {"f": None}},
        "test_tuples": [
            {"tuple": [row["test"].split()[1]], "truth_value": True},
            {"tuple": ["dog", "big"], "truth_value": False},
        ],
        "ref_tuples": [{"tuple": ["grass"], "truth_value": False}],
    }
    for row in json.load(open(arguments[3]))
]
json.dump(answers[::-1], open(arguments[arguments.index("-out") + 1], "w"))
"""


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that answers as the original does; what is in the jar file makes it fail."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(FAKE_JAVA, "utf-8")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{java.parent}:/usr/bin:/bin")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "spice-1.0.jar").write_text("", "utf-8")
    return tmp_path / "spice-1.0.jar"


def test_the_original_program_is_asked_and_read(jar: Path, tmp_path: Path) -> None:
    result = spice(["A dog.", "a cat"], [["one"], ["one", "two"]], backend="java", jar=jar, memory="3G")
    assert result.scores.tolist() == [0.1, 0.2]  # answers come in another order
    assert result.details[1]["tuples"][0] == {"text": ["cat"], "status": "right", "kind": "object"}
    assert result.details[0]["missing"] == [{"text": "grass"}]
    assert result.details[0]["categories"]["Count"] == 0.5
    assert result.details[0]["categories"]["Size"] is None
    assert result.signature.startswith("spice|backend:java|")
    assert list((tmp_path / "cache" / "spice-jar").iterdir())  # a cache of its own


@pytest.mark.parametrize(
    ("mode", "kind", "message"),
    [
        ("sleep", CaplensError, "stopped after 1 s"),
        ("x java.lang.NoClassDefFoundError: edu/stanford/nlp/semgraph/S", MissingData, "stanford-corenlp-3.6.0"),
        ("java.lang.OutOfMemoryError: heap", CaplensError, "memory='12G'"),
        ("java.lang.NullPointerException|\tat edu.anu.spice.SpiceScorer.scoreBatch", MissingData, "Java 8 to 14"),
        ("first|something else broke", CaplensError, "something else broke"),
    ],
)
def test_its_failures_are_explained(jar: Path, mode: str, kind: type[Exception], message: str) -> None:
    jar.write_text(mode, "utf-8")
    with pytest.raises(kind, match=message):
        spice(["a dog"], [["a dog"]], backend="java", jar=jar, memory="3G", timeout=1 if mode == "sleep" else 60)


def test_java_needs_a_jar_and_a_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingData, match="needs jar="):
        spice(["a dog"], [["a dog"]], backend="java")
    with pytest.raises(MissingData, match="there is no file"):
        spice(["a dog"], [["a dog"]], backend="java", jar=tmp_path / "none.jar")
    (tmp_path / "some.jar").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingData, match="there is no java"):
        spice(["a dog"], [["a dog"]], backend="java", jar=tmp_path / "some.jar")
    with pytest.raises(InputError, match="caplens or java"):
        Spice(backend="perl")  # type: ignore[arg-type]


@pytest.mark.oracle
def test_the_jar_without_its_models_says_what_is_missing() -> None:
    pycocoevalcap = pytest.importorskip("pycocoevalcap")
    import shutil

    jar = Path(next(iter(pycocoevalcap.__path__))) / "spice" / "spice-1.0.jar"
    if shutil.which("java") is None or not jar.is_file() or list(jar.parent.glob("lib/stanford-corenlp*")):
        pytest.skip("needs java and the jar without the CoreNLP models")
    work = Workspace(CaptionSet.of(["a dog"], [["a dog"]]))
    with pytest.raises(MissingData, match="does not find CoreNLP"):
        Spice(backend="java", jar=jar, memory="1G").compute(work)
