"""`caplens caption`: pictures in, a file that `caplens score` reads out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.captioning.random_network import random_network
from tests.cli.conftest import Run

from caplens.captioning.captioner import Captioner, FeatureSpec
from caplens.captioning.vocabulary import Vocabulary
from caplens.core.errors import MissingData
from caplens.encoders.load import load_encoder
from caplens.storage.weights import shipped

PICTURES = sorted((Path(__file__).parents[2] / "examples" / "images").iterdir())[:3]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captioner of random words."""
    try:
        spec = FeatureSpec("embedded", load_encoder("embedded").grid_identity, 2)
    except MissingData as missing:
        pytest.skip(str(missing))
    words = Vocabulary(("<end>", "<unknown>", "a", "dog", "runs", "|"))
    network = random_network(2, features=384, vocabulary=len(words), refining_layers=1)
    path = tmp_path_factory.mktemp("captioner") / "captioner.safetensors"
    Captioner(network, words, spec, longest=6).save(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three pictures, one that is broken, and a file that is no picture."""
    made = tmp_path / "pictures"
    made.mkdir()
    for picture in PICTURES:
        (made / picture.name).write_bytes(picture.read_bytes())
    (made / "broken.jpg").write_bytes(PICTURES[0].read_bytes()[:200])
    (made / "notes.txt").write_text("no picture")
    return made


def test_what_it_writes_is_what_score_reads(run: Run, folder: Path, weights: Path, tmp_path: Path) -> None:
    references = tmp_path / "references.json"
    references.write_text(json.dumps({picture.name: ["a dog runs"] for picture in PICTURES[:2]}))
    output = tmp_path / "out" / "captions.jsonl"
    shown = run("caption", folder, "--weights", weights, "-r", references, "--output", output)
    assert shown.code == 0, shown.stderr
    assert "broken.jpg was not captioned" in shown.stderr
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == [picture.name for picture in PICTURES[:2]]
    assert all((output.parent / row["image"]).samefile(folder / row["id"]) for row in rows)
    scored = run("score", output, "-m", "cider-r,length", "--json")
    assert scored.code == 0, scored.stderr
    assert json.loads(scored.stdout)["captions"] == 2


def test_beams_and_json(run: Run, weights: Path) -> None:
    said = {}
    for beam in (1, 4):
        shown = run("caption", *PICTURES[:2], "--weights", weights, "--beam", beam, "--json")
        rows = json.loads(shown.stdout)
        assert [row["id"] for row in rows] == [picture.stem for picture in PICTURES[:2]]
        said[beam] = [row["caption"] for row in rows]
    assert said[1] != said[4]


@pytest.mark.parametrize("strict", [[], ["--strict"]])
def test_pictures_that_cannot_be_read(run: Run, folder: Path, weights: Path, strict: list[str]) -> None:
    shown = run("caption", folder / "broken.jpg", "--weights", weights, *strict)
    assert shown.code == 2
    assert "broken.jpg" in shown.stderr


def test_names_of_pictures_do_not_steer_the_terminal(run: Run, weights: Path, tmp_path: Path) -> None:
    whole = tmp_path / "a\x1b]0;x\x07.jpg"
    whole.write_bytes(PICTURES[0].read_bytes())
    broken = tmp_path / "b\x9b31m\u202e.jpg"
    broken.write_bytes(b"nothing")
    shown = run("caption", whole, broken, "--weights", weights)
    assert shown.code == 0, shown.stderr
    assert r"a\x1b]0;x\x07" in shown.stdout
    assert r"b\x9b31m\u202e.jpg was not captioned" in shown.stderr
    assert not set("\x1b\x07\x9b\u202e") & set(shown.stdout + shown.stderr)


def test_what_is_wrong_is_said(run: Run, folder: Path, weights: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"elephant": ["an elephant"]}))
    for arguments, reason in {
        (empty, "--weights", weights): "no pictures are in this folder",
        (folder, "--weights", folder / "none"): "caplens train captioner makes one",
        (folder, "--weights", folder / "notes.txt"): "not a captioner",
        (PICTURES[0], "--weights", weights, "-r", other): "none of the pictures is in it",
    }.items():
        shown = run("caption", *arguments)
        assert shown.code == 2
        assert reason in shown.stderr


def test_a_captioner_of_other_patches_is_refused(run: Run, weights: Path, tmp_path: Path) -> None:
    captioner = Captioner.load(weights)
    captioner.spec = FeatureSpec("embedded", "dinov2-of-yesterday@123", 2)
    captioner.save(tmp_path / "old.safetensors")
    shown = run("caption", PICTURES[0], "--weights", tmp_path / "old.safetensors")
    assert shown.code == 2
    assert "dinov2-of-yesterday" in shown.stderr


def test_the_captioner_that_comes_along(run: Run, weights: Path) -> None:
    del weights  # skips where the encoder's weights are absent
    path = shipped("captioner")
    assert path.stat().st_size < 4_000_000
    shown = run("caption", PICTURES[0].with_name("horse.jpg"), "--json")
    (row,) = json.loads(shown.stdout)
    assert len(row["caption"].split()) > 3
    assert not {"<end>", "<unknown>"} & set(row["caption"].split())
