"""`caplens check`: verdicts on texts alone, on pictures, on web pages; every output says the same."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import Run

from caplens import CaptionSet
from caplens.core.errors import MissingData
from caplens.core.types import unit
from caplens.encoders.load import load_encoder
from caplens.evaluation.belonging import ENCODER, Background
from caplens.evaluation.check import Calibration, check, evidence
from caplens.storage import weights
from caplens.text.alt_text import text_problems

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDED = ("dinov2-vits14", "tinyvit-5m", "all-MiniLM-L6-v2", "efficientdet-lite0", "en_core_web_md")
STRONG = ("clip-vit-b-16-vision", "all-MiniLM-L6-v2")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", ["empty"]),
        (" … ", ["empty"]),
        ("IMG_2041.jpg", ["file-name"]),
        ("DSC00012", ["file-name"]),
        ("https://x.org/a.png", ["file-name"]),
        ("image", ["placeholder"]),
        ("Photo.", ["placeholder"]),
        ("Image of a dog", ["redundant-prefix"]),
        ("a photographer takes a picture of a bird", []),
        ("a " * 120, ["too-long"]),
        ("a dog runs along a beach", []),
        ("猫が寝ている", []),
    ],
)
def test_what_is_wrong_with_a_text_alone(text: str, kinds: list[str]) -> None:
    assert [problem.kind for problem in text_problems(text)] == kinds


def test_the_same_text_on_many_pictures() -> None:
    captions = CaptionSet.of(["our team"] * 3 + ["a red bus"])
    report = check(captions)
    assert [row.verdict for row in report.rows] == ["doubtful"] * 3 + ["fine"]
    assert "stands on 3 pictures" in report.rows[0].findings[0].message


def test_without_pictures_a_note_says_what_was_not_done() -> None:
    assert "add --images" in check(CaptionSet.of(["a red bus"])).notes[0]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "alt.csv").write_text("id,alt\n1,IMG_2041.jpg\n2,a red bus\n3,Ein roter Bus auf der Straße\n")
    return tmp_path


@pytest.mark.parametrize(("fail_on", "code"), [(None, 0), ("wrong", 1), ("doubtful", 1)])
def test_exit_code(run: Run, files: Path, fail_on: str | None, code: int) -> None:
    asked = [] if fail_on is None else ["--fail-on", fail_on]
    shown = run("check", files / "alt.csv", *asked)
    assert shown.code == code
    assert "3 texts: 1 fine, 1 doubtful, 1 wrong" in shown.stdout


def test_only_wrong_texts_fail_when_asked(run: Run, files: Path) -> None:
    (files / "alt.csv").write_text("id,alt\n2,a picture of a red bus\n")
    assert run("check", files / "alt.csv", "--fail-on", "wrong").code == 0
    assert run("check", files / "alt.csv", "--fail-on", "doubtful").code == 1


def test_every_output_says_the_same(run: Run, files: Path) -> None:
    out = {kind: files / f"out.{kind}" for kind in ("csv", "jsonl", "sarif", "html", "json")}
    shown = run("check", files / "alt.csv", *(part for kind, path in out.items() for part in (f"--{kind}", path)))
    assert shown.code == 0, shown.stderr
    verdicts = {"1": "wrong", "2": "fine", "3": "doubtful"}
    rows = json.loads(out["json"].read_text())["rows"]
    assert {row["id"]: row["verdict"] for row in rows} == verdicts
    assert {row["id"]: row["verdict"] for row in csv.DictReader(out["csv"].open())} == verdicts
    lines = [json.loads(line) for line in out["jsonl"].read_text().splitlines()]
    assert lines == rows
    sarif = json.loads(out["sarif"].read_text())
    assert [(entry["ruleId"], entry["level"]) for entry in sarif["runs"][0]["results"]] == [
        ("file-name", "error"),
        ("language", "warning"),
    ]
    data = out["html"].read_text("utf-8").partition('id="data"')[2].partition(">")[2].partition("</script>")[0]
    assert {row["id"]: row["verdict"] for row in json.loads(data)["rows"]} == verdicts


def test_a_web_page_by_line(run: Run, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    (tmp_path / "index.html").write_text(
        '<html>\n<img src="a.png" alt="IMG_1.png">\n<img src="a.png" alt="">\n<img src="a.png">\n</html>'
    )
    shown = run("check", tmp_path / "index.html", "--json", tmp_path / "c.json", "--sarif", tmp_path / "c.sarif")
    assert shown.code == 0, shown.stderr
    rows = json.loads((tmp_path / "c.json").read_text())["rows"]
    assert [row["verdict"] for row in rows] == ["wrong", "fine", "wrong"]  # an empty alt says: decoration
    locations = [
        entry["locations"][0]["physicalLocation"]["region"]["startLine"]
        for entry in json.loads((tmp_path / "c.sarif").read_text())["runs"][0]["results"]
    ]
    assert locations == [2, 4]


def test_sarif_has_what_the_standard_asks_for(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SARIF 2.1.0: version and tool, rules by id, a message, a known level, an address and a line for every result."""
    monkeypatch.chdir(tmp_path)
    pages = Path("site", "sub folder")
    pages.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(pages / "a.png")
    (pages / "ä, b.html").write_text('<html>\n<img src="a.png" alt="IMG_1.png">\n<img src="a.png">\n</html>', "utf-8")
    Path("alt.csv").write_text("id,alt\n1,a red bus\n2,IMG_2.png\n")
    Path("alt.json").write_text('[{"id": 1, "alt": "IMG_2.png"}]')
    places: dict[str, list[int | None]] = {}
    for given in ("site", "alt.csv", "alt.json"):
        assert run("check", given, "--sarif", "out.sarif").code == 0
        log = json.loads(Path("out.sarif").read_text())
        assert log["version"] == "2.1.0"
        assert log["$schema"].endswith("sarif-2.1.0.json")
        (only,) = log["runs"]
        assert only["tool"]["driver"]["name"] == "caplens"
        rules = {rule["id"] for rule in only["tool"]["driver"]["rules"]}
        for result in only["results"]:
            assert result["ruleId"] in rules
            assert result["level"] in ("error", "warning", "note")
            assert result["message"]["text"]
            (location,) = result["locations"]
            address = location["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", address)
            assert Path(unquote(address)).is_file()  # relative to where the check ran
            places.setdefault(given, []).append(location["physicalLocation"].get("region", {}).get("startLine"))
    assert places == {"site": [2, 3], "alt.csv": [3], "alt.json": [None]}


def test_the_calibration_is_of_the_shipped_weights() -> None:
    shipped = weights.digest(weights.shipped("infometic"))[:12]
    assert Calibration.load().measured_with == shipped, "measure anew: python tools/calibrate_check.py --over infometic"


def test_the_calibration_is_of_the_shipped_strong_encoder() -> None:
    if missing := [name for name in STRONG if weights.find(name) is None]:
        pytest.skip(f"caplens weights fetch {' '.join(missing)}")
    strong = load_encoder(ENCODER).weights_hash
    assert Calibration.load(ENCODER).measured_with == strong, "measure anew: python tools/calibrate_check.py"


def test_evidence_is_the_cosine_and_where_it_stands() -> None:
    rng = np.random.default_rng(0)
    background = Background(*(unit(rng.normal(size=(7, 4))) for _ in range(2)))
    pictures, captions = rng.normal(size=(2, 3, 4))
    found = background.evidence(pictures, captions)
    for row, (picture, caption) in enumerate(zip(unit(pictures), unit(captions), strict=True)):
        cosine = picture @ caption
        expected = [cosine]
        for others in ([caption @ other for other in background.pictures], [picture @ x for x in background.captions]):
            expected += [(cosine - np.mean(others)) / np.std(others), np.mean([other > cosine for other in others])]
        np.testing.assert_allclose(found[row], expected)


def test_without_the_strong_encoder_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    if missing := [name for name in NEEDED if weights.find(name) is None]:
        pytest.skip(f"caplens weights fetch {' '.join(missing)}")
    monkeypatch.setattr("caplens.evaluation.check.belonging", refuse)
    report = check(CaptionSet.of(["a cup of coffee"], images=[EXAMPLES / "images" / "coffee.jpg"]))
    assert report.notes == ("verdicts would be surer with the encoder embedded-strong: its weights are not here",)
    assert report.calibration == Calibration.load("infometic")


def refuse(*_: object, **options: object) -> None:
    raise MissingData("its weights are not here")


def test_nothing_is_said_where_nothing_was_judged() -> None:
    assert evidence({}) is None
    assert evidence({"words": [{"text": "a"}], "cosine": 0.5, "percentiles": {"overall": 0.5}}) is None


def test_captions_of_other_pictures_are_wrong(run: Run, tmp_path: Path) -> None:
    missing = [name for name in NEEDED if weights.find(name) is None]
    if missing:
        pytest.skip(f"caplens weights fetch {' '.join(missing)}")
    texts = {"cat.jpg": "two football players run after a ball", "horse.jpg": "the silhouette of a black horse"}
    rows = "".join(f"{name},{text}\n" for name, text in texts.items())
    (tmp_path / "alt.csv").write_text(f"filename,alt_text\n{rows}")
    shown = run("check", tmp_path / "alt.csv", "--images", EXAMPLES / "images", "--json", tmp_path / "c.json")
    assert shown.code == 0, shown.stderr
    found = json.loads((tmp_path / "c.json").read_text())["rows"]
    assert [row["verdict"] for row in found] == ["wrong", "fine"]
    assert "another picture" in found[0]["reasons"][0]["message"]
