"""`caplens score`: what it computes, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from caplens.core.details import Details
from caplens.metrics import meteor

EXAMPLE = Path(__file__).parents[2] / "examples" / "captions.jsonl"
QUICK = ["bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l", "cider-d", "cider-r"]


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """Three captions without references; one of them cannot be scored by toy-picky."""
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"x": "a cat", "y": "broken", "z": ""}))
    return path


@pytest.fixture
def references(tmp_path: Path) -> Path:
    path = tmp_path / "references.json"
    path.write_text(json.dumps({name: ["a cat sleeps"] for name in "xyz"}))
    return path


def test_the_example_runs_with_what_it_has_and_writes_a_page(run: Run, tmp_path: Path) -> None:
    shown = run("score", EXAMPLE, "--html", tmp_path / "out" / "demo.html", "--json", tmp_path / "out" / "demo.json")
    assert shown.code == 0, shown.stderr
    report = json.loads((tmp_path / "out" / "demo.json").read_text())
    assert set(QUICK) <= set(report["metrics"])
    assert report["captions"] == 12
    assert f"{report['metrics']['bleu-4']['score'] * 100:.2f}  ×100" in shown.stdout
    assert report["metrics"]["cider-r"]["signature"] not in shown.stdout
    assert report["metrics"]["cider-r"]["signature"] in run("score", EXAMPLE, "-m", "cider-r", "--signatures").stdout
    page = (tmp_path / "out" / "demo.html").read_text("utf-8")
    assert page.count("data:image/jpeg") == 12
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["demo.html", "demo.json"]


def test_details_are_worked_out_for_json_alone(
    run: Run, captions: Path, references: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They made METEOR's table take eight times as long."""
    explained: list[str] = []
    explain = meteor._explain

    def counted(caption: str, *rest: Any) -> Details:
        explained.append(caption)
        return explain(caption, *rest)

    monkeypatch.setattr(meteor, "_explain", counted)
    arguments = ("score", captions, "--references", references, "--metrics", "meteor")
    assert run(*arguments).code == 0
    assert explained == []
    assert run(*arguments, "--json").code == 0
    assert set(explained) == {"a cat", "broken", ""}


def test_json_on_standard_output_is_alone_there(run: Run) -> None:
    shown = run("score", EXAMPLE, "--metrics", "bleu,rouge-l", "--json")
    assert list(json.loads(shown.stdout)["metrics"]) == QUICK[:5]


def test_references_come_from_a_second_file(run: Run, captions: Path, references: Path) -> None:
    shown = run("score", captions, "--references", references, "-m", "rouge-l", "--json", "-")
    assert shown.code == 0
    assert json.loads(shown.stdout)["metrics"]["rouge-l"]["scores"][1:] == [0.0, 0.0]


@pytest.mark.usefixtures("toys")
def test_options_reach_the_metric_with_their_type(run: Run, captions: Path, references: Path) -> None:
    shown = run("score", captions, "-r", references, "-m", "toy-overlap", "-o", "floor=0.25", "--json")
    assert json.loads(shown.stdout)["metrics"]["toy-overlap"]["scores"] == [1.0, 0.25, 0.25]
    wrong = run("score", captions, "-r", references, "-m", "toy-overlap", "-o", "flor=1")
    assert wrong.code == 2
    assert "did you mean floor" in wrong.stderr
    assert run("score", captions, "-m", "toy-picky", "-o", "floor").code == 2


@pytest.mark.usefixtures("toys")
def test_a_metric_asked_for_that_cannot_run_gives_2_after_the_others_are_written(
    run: Run, captions: Path, tmp_path: Path
) -> None:
    shown = run("score", captions, "-m", "toy-blind,toy-weightless,toy-picky", "--json", tmp_path / "out.json")
    assert shown.code == 2
    assert "toy-blind was not computed: toy-blind looks at the image" in shown.stderr
    assert "toy-weightless lacks its weights" in shown.stderr
    assert "2 of 3" in shown.stdout
    assert "no score for y: the <picture> cannot be read" in shown.stderr
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["metrics"]["toy-picky"]["failures"] == {"y": "the <picture> cannot be read"}


@pytest.mark.usefixtures("toys")
def test_strict_stops_at_the_first_reason(run: Run, captions: Path, tmp_path: Path) -> None:
    for reason in ("toy-blind", "toy-weightless"):
        shown = run("score", captions, "-m", f"toy-picky,{reason}", "--strict", "--json", tmp_path / "out.json")
        assert shown.code == 2
        assert reason in shown.stderr
        assert not (tmp_path / "out.json").exists()


def test_without_references_or_pictures_the_message_says_what_to_add(run: Run, captions: Path) -> None:
    shown = run("score", captions)
    assert (shown.code, shown.stdout) == (2, "")
    assert "--references FILE" in shown.stderr
    assert "--images DIR" in shown.stderr
    counted = json.loads(run("score", captions, "-m", "length", "--json").stdout)
    assert counted["metrics"]["length"]["scores"] == [2.0, 1.0, 0.0]


def test_bad_input_is_named_with_its_row(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": "a", "caption": "fine"}\n{"id": "b", "caption": 7}\n')
    shown = run("score", path)
    assert (shown.code, shown.stdout) == (2, "")
    assert "bad.jsonl" in shown.stderr
    assert "'b'" in shown.stderr
    assert run("score", tmp_path / "absent.json").code == 2


def test_notes_about_a_number_go_to_standard_error(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": "a", "caption": "a cat", "references": ["a cat"]}\n')
    shown = run("score", path, "-m", "cider-d", "--json")
    assert shown.code == 0
    assert shown.stderr.startswith("note: cider-d: ")
    assert json.loads(shown.stdout)["metrics"]["cider-d"]["notes"]


@pytest.mark.parametrize(
    ("name", "first"), [("csv", "metric,score"), ("latex", r"\begin{tabular}"), ("markdown", "| metric")]
)
def test_another_format_is_alone_on_standard_output(run: Run, name: str, first: str) -> None:
    shown = run("score", EXAMPLE, "-m", "bleu-4", "--format", name, "--signatures")
    assert shown.code == 0, shown.stderr
    assert shown.stdout.startswith(first)
    assert "bleu-4|" not in shown.stdout
    assert "bleu-4|" in shown.stderr


def test_several_captions_per_picture(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "beams.csv"
    path.write_text("image_id,caption,references\n7,a dog,a dog|dogs\n8,cat,the cat\n7,a hound,a dog|dogs\n")
    refused = run("score", path, "-m", "rouge-l")
    assert refused.code == 2
    assert "--several" in refused.stderr
    shown = run("score", path, "-m", "rouge-l,length", "--several", "--json", tmp_path / "out.json")
    assert shown.stdout.splitlines()[0].split() == [
        "metric",
        "scale",
        "mean",
        "95",
        "%",
        "interval",
        "first",
        "best",
        "of",
        "k",
        "oracle",
    ]
    assert json.loads((tmp_path / "out.json").read_text())["groups"] == ["7", "8", "7"]
    chosen = run("score", path, "-m", "rouge-l,length", "--several", "--choose-by", "length", "--json", "-")
    assert json.loads(chosen.stdout)["several"]["chosen_by"] == "length"
    compared = run("compare", path, path, "-m", "rouge-l", "--several")
    assert "2 pictures, each with the mean of its captions" in compared.stdout


def test_the_language_is_found_or_named(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("sacrebleu")
    path = tmp_path / "captions.jsonl"
    path.write_text('{"id": 1, "caption": "一只黑色的狗在跑", "references": ["一只白色的狗在跑"]}\n', encoding="utf-8")
    found = run("score", path, "-m", "bleu-1", "--language", "auto", "--signatures")
    assert "tokenizer:zh@sacrebleu-" in found.stdout
    assert "the captions look like zh" in found.stderr
    named = run("score", path, "-m", "bleu-1", "--language", "pt", "--signatures")
    assert "tokenizer:ptb|" in named.stdout
    assert "without spaces between words" in named.stderr
    wrong = run("score", path, "-m", "bleu-1", "--language", "chinese")
    assert (wrong.code, "two or three letters" in wrong.stderr) == (2, True)
