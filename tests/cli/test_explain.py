"""`caplens explain`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from tests.cli.conftest import Run

from caplens.cli.explain import PLAIN, RED, YELLOW, mark
from caplens.core.details import Details

REFERENCES = ("--reference", "a dog sleeps", "--reference", "the dog is asleep")


def test_it_prints_marks_scores_and_what_is_left_out(run: Run, tmp_path: Path) -> None:
    shown = run("explain", "A cat, sleeping.", *REFERENCES, "--html", tmp_path / "page.html")
    assert shown.code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "Compared with 2 references:"
    assert lines[2] == "  A [cat], (sleeping)."
    assert lines[4] == "  are its words right?        50 %"
    assert "  not supported: cat" in lines
    assert "  close:         sleeping (stem: sleeps)" in lines
    assert any(line.startswith("  left out:      dog (in 2 of 2 references)") for line in lines)
    assert lines[-1] == f"wrote {tmp_path / 'page.html'}"
    assert "caplens explain" in (tmp_path / "page.html").read_text("utf-8")


def test_json_on_standard_output_is_alone_there(run: Run) -> None:
    shown = run("explain", "a cat", *REFERENCES, "--json")
    made = json.loads(shown.stdout)
    assert (made["caption"], made["image"]) == ("a cat", None)
    assert made["explanations"]["references"]["words"][1]["status"] == "wrong"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lines.txt", "a dog sleeps\n\nthe dog is asleep\n"),
        ("one.json", '{"anything": ["a dog sleeps", "the dog is asleep"]}'),
        ("many.json", '{"photo": ["a dog sleeps", "the dog is asleep"], "other": ["a bird"]}'),
        (
            "rows.jsonl",
            '{"id": "photo.png", "references": ["a dog sleeps", "the dog is asleep"]}\n{"id": 2, "caption": "x"}\n',
        ),
    ],
)
def test_references_come_from_a_file(run: Run, tmp_path: Path, name: str, content: str) -> None:
    Image.new("RGB", (30, 20)).save(tmp_path / "photo.png")
    (tmp_path / name).write_text(content)
    shown = run("explain", tmp_path / "photo.png", "a cat", "--references", tmp_path / name, "--json")
    assert shown.code == 0, shown.stderr
    assert json.loads(shown.stdout)["references"] == ["a dog sleeps", "the dog is asleep"]


def test_what_cannot_be_used_is_named(run: Run, tmp_path: Path) -> None:
    Image.new("RGB", (30, 20)).save(tmp_path / "photo.png")
    (tmp_path / "text.jpg").write_text("no picture")
    (tmp_path / "many.json").write_text('{"a": ["a dog"], "b": ["a bird"]}')
    cases: dict[str, list[str | Path]] = {
        "there is no caption; write: caplens explain": [tmp_path / "photo.png"],
        "is not a picture in a known format": [tmp_path / "text.jpg", "a cat"],
        "no such file": [tmp_path / "absent.jpg", "a cat"],
        "the caption is empty": [tmp_path / "photo.png", " "],
        "nothing to compare the caption with": ["a cat"],
        "references of 2 pictures and 'photo' is not among them": [
            *(tmp_path / "photo.png", "a cat"),
            *("--references", tmp_path / "many.json"),
        ],
        "no picture says which to take": ["a cat", "--references", tmp_path / "many.json"],
    }
    for message, arguments in cases.items():
        shown = run("explain", *arguments)
        assert (shown.code, shown.stdout) == (2, ""), message
        assert message in shown.stderr


def test_colour_and_markers() -> None:
    details: Details = {
        "words": [
            {"text": "a"},
            {"text": "red", "status": "partly"},
            {"text": "cat", "status": "wrong"},
            {"text": "cats", "status": "wrong"},
        ]
    }
    assert mark("A red CAT!\x1b[2J", details, colored=False) == r"A (red) [CAT]!\x1b[2J"
    assert mark("A red CAT!", details, colored=True) == f"A {YELLOW}red{PLAIN} {RED}CAT{PLAIN}!"
