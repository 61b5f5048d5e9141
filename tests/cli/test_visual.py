"""Metrics that look, from the command line: which encoder, and pictures behind addresses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.cli.conftest import Run
from tests.encoders.random_clip import random_encoder
from tests.vision.test_fetch import server
from tests.vision.test_images import RED_LEFT, encoded

from caplens.core.errors import MissingData
from caplens.encoders import load
from caplens.encoders.embedded import load_embedded
from caplens.vision import fetch as fetching


@pytest.fixture(autouse=True)
def small_clip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Under the name ViT-B-32 a small random model, and a cache of its own."""
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(load, "load_clip", lambda *_, **__: random_encoder())
    load._load.cache_clear()
    yield
    load._load.cache_clear()


def captions(folder: Path, picture: str) -> Path:
    path = folder / "captions.jsonl"
    path.write_text(json.dumps({"id": "a", "caption": "the cat", "image": picture}) + "\n")
    return path


def test_encoder_names_the_encoder_of_every_metric_that_looks(run: Run, tmp_path: Path) -> None:
    (tmp_path / "red.png").write_bytes(encoded(RED_LEFT, "PNG"))
    file = captions(tmp_path, "red.png")
    shown = run("score", file, "-m", "clip-s,pac-s,length", "--encoder", "ViT-B-32", "--json")
    results = json.loads(shown.stdout)["metrics"]
    assert "encoder:clip-random-0@0" in results["clip-s"]["signature"]
    assert "encoder:clip-random-0@0" in results["pac-s"]["signature"]
    assert results["pac-s"]["score"] == pytest.approx(0.8 * results["clip-s"]["score"])  # w is 2 and 2.5
    wrong = run("score", file, "-m", "length", "--encoder", "ViT-B-32")
    assert wrong.code == 2
    assert "encoder" in wrong.stderr


def test_an_address_is_fetched_only_when_allowed_and_public(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server() as address:
        file = captions(tmp_path, f"{address}/picture")

        def score(*more: str) -> tuple[float | None, str]:
            shown = run("score", file, "-m", "clip-s", "--encoder", "ViT-B-32", "--json", *more)
            result = json.loads(shown.stdout)["metrics"]["clip-s"]
            return result["scores"][0], json.dumps(result)

        value, told = score()
        assert value is None
        assert "--allow-urls" in told
        value, told = score("--allow-urls")
        assert value is None
        assert "not on the public internet" in told
        monkeypatch.setattr(fetching, "public_address", lambda host, port: "127.0.0.1")
        fetched, _ = score("--allow-urls")
    (tmp_path / "red.png").write_bytes(encoded(RED_LEFT, "PNG"))
    shown = run("score", captions(tmp_path, "red.png"), "-m", "clip-s", "--encoder", "ViT-B-32", "--json")
    assert fetched == json.loads(shown.stdout)["metrics"]["clip-s"]["scores"][0]


def test_captions_that_the_encoder_does_not_understand_get_one_note_below_the_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "red.png").write_bytes(encoded(RED_LEFT, "PNG"))
    german = tmp_path / "de.csv"
    german.write_text("id,caption,image\na,ein hund läuft,red.png\nb,eine katze schläft,red.png\n")
    shown = run("score", german, "-m", "clip-s,pac-s", "--encoder", "ViT-B-32")
    assert [line for line in shown.stderr.splitlines() if "English" in line] == [
        "note: clip-s, pac-s: about 100 % of the captions do not look English, the only language understood here: "
        "their scores cannot be trusted"
    ]


def test_an_encoder_may_understand_more_than_english(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "red.png").write_bytes(encoded(RED_LEFT, "PNG"))
    german = tmp_path / "de.csv"
    german.write_text("id,caption,image\na,ein hund läuft,red.png\nb,eine katze schläft,red.png\n")
    monkeypatch.setattr("caplens.encoders.base.Encoder.english_only", False)
    assert "English" not in run("score", german, "-m", "clip-s", "--encoder", "ViT-B-32").stderr


def test_tables_and_pages_say_what_clip_s_ran_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "red.png").write_bytes(encoded(RED_LEFT, "PNG"))
    file, page = captions(tmp_path, "red.png"), tmp_path / "page.html"
    plain = run("score", file, "-m", "clip-s", "--encoder", "ViT-B-32")
    assert plain.stdout.splitlines()[1].startswith("clip-s  ")
    try:
        load_embedded()
    except MissingData as missing:
        pytest.skip(str(missing))
    for layout in ("table", "csv", "latex", "markdown"):
        shown = run("score", file, "-m", "clip-s", "--encoder", "embedded", "--format", layout, "--html", page)
        assert shown.code == 0
        assert "clip-s over embedded" in shown.stdout
        compared = run("compare", file, file, "-m", "clip-s", "--encoder", "embedded", "--format", layout)
        assert "clip-s over embedded" in compared.stdout
    assert 'data-metric="0">clip-s over embedded</button>' in page.read_text("utf-8")
