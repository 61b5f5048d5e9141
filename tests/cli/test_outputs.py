"""What verbs may write to."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from caplens.cli import main

PREDICTIONS = '{"id": "1", "caption": "a dog", "references": ["a dog", "the dog"]}\n'


TRAIN = ["train", "nneval", "--human", "r.json", "--machine", "r.json", "--validation", "p.jsonl"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "p.jsonl", "-m", "length", "--json", "p.jsonl"],
        ["score", "p.jsonl", "-m", "length", "--html", "./p.jsonl"],
        ["score", "p.jsonl", "-r", "r.json", "-m", "length", "--html", "r.json"],
        ["compare", "p.jsonl", "q.jsonl", "-m", "length", "--json", "q.jsonl"],
        ["compare", "p.jsonl", "q.jsonl", "-m", "length", "--html", "p.jsonl"],
        ["score", "p.jsonl", "-m", "cider-d", "-o", "idf=r.json", "--json", "r.json"],
        ["bench", "--ratings", "r.txt", "--captions", "p.jsonl", "-m", "length", "--html", "r.txt"],
        ["bench", "--ratings", "r.txt", "--captions", "p.jsonl", "-m", "length", "--json", "p.jsonl"],
        [*TRAIN, "--config", "r.txt", "--output", "out", "--json", "r.txt"],
        ["generate", "positives", "--images", ".", "--captions", "r.json", "--output", "out", "--json", "r.json"],
        ["explain", "a dog", "-r", "r.txt", "--json", "r.txt"],
        ["explain", "a dog", "-r", "r.txt", "--html", "r.txt"],
        ["check", "p.jsonl", "--jsonl", "p.jsonl"],
        ["check", "p.jsonl", "--csv", "p.jsonl"],
        ["idf", "build", "r.safetensors", "--output", "r.safetensors"],
        ["idf", "build", "r.json", "--output", "idf.safetensors", "--json", "r.json"],
    ],
)
def test_no_verb_overwrites_what_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = dict.fromkeys(("p.jsonl", "q.jsonl"), PREDICTIONS)
    files |= {"r.json": '{"1": ["a dog"]}', "r.safetensors": '{"1": ["a dog"]}', "r.txt": "a dog\n"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "would be overwritten" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


@pytest.mark.parametrize("option", ["--output", "--json"])
def test_captions_do_not_overwrite_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    pytest.importorskip("torch")
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(SystemExit) as stop:
        main(["caption", str(tmp_path), option, str(tmp_path / "a.png")])
    assert stop.value.code == 2
    assert "would be overwritten" in capsys.readouterr().err
    assert Image.open(tmp_path / "a.png").size == (8, 8)
