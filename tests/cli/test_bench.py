"""`caplens bench` on a small set and on a user's own ratings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from tests.cli.conftest import Run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    entry = {"image": "s.png", "caption_b": "one", "caption_c": "one two", "votes": [-1] * 48}
    entry["references"] = [f"one two {number}" for number in range(48)]
    data = tmp_path / "data"
    data.mkdir()
    (data / "abstract50s.json").write_text(json.dumps([entry, {**entry, "image": "t.png"}]))
    return data


def test_list_says_what_is_found_and_where_it_was_looked_for(run: Run, folder: Path) -> None:
    shown = run("bench", "list", "--data", folder)
    assert shown.code == 0
    assert "abstract-50s  found" in shown.stdout
    assert "thumb  not found" in shown.stdout
    assert str(folder) in shown.stdout
    listed = {entry["name"]: entry for entry in json.loads(run("bench", "list", "--data", folder, "--json").stdout)}
    assert listed["abstract-50s"]["found"]
    assert listed["vatex-eval"]["missing"]
    assert all(entry["license"] and entry["get it"] for entry in listed.values())


def test_a_set_becomes_a_table_json_and_a_page(run: Run, folder: Path, tmp_path: Path) -> None:
    page, out = tmp_path / "page.html", tmp_path / "out.json"
    shown = run("bench", "abstract50s", "--data", folder, "-m", "length,rouge-l", "--html", page, "--json", out)
    assert shown.code == 0
    assert "Abstract-50S" in shown.stdout
    assert "100.00" in shown.stdout
    assert "abstract-50s|references:5|draws:5|seed:1|ties:half" in shown.stdout
    (only,) = json.loads(out.read_text())["sets"]
    assert {row["metric"]: row["value"] for row in only["figures"]} == {"length": 100.0, "rouge-l": 100.0}
    assert "Abstract-50S" in page.read_text()


def test_all_takes_what_is_there_but_not_what_must_be_named(run: Run, folder: Path) -> None:
    pictures = {name: {"split": "test", "captions": [name]} for name in ("a.png", "b.png")}
    (folder / "flickr8k_captions.json").write_text(json.dumps(pictures))
    for name in pictures:
        Image.new("RGB", (2, 2)).save(folder / name)
    few = ("--data", folder, "-m", "length", "--resamples", 5, "--permutations", 0, "--json")
    shown = run("bench", "all", *few)
    assert shown.code == 0
    names = [entry["set"] for entry in json.loads(shown.stdout)["sets"]]
    assert names == ["abstract-50s", "curve-abstract-50s", "retrieval-flickr8k"]
    (named,) = json.loads(run("bench", "retrieval-flickr8k-whole", *few).stdout)["sets"]
    assert named["set"] == "retrieval-flickr8k-whole"


def test_a_set_that_is_not_there_ends_with_2_and_says_where_to_get_it(run: Run, folder: Path) -> None:
    shown = run("bench", "thumb", "abstract-50s", "--data", folder, "-m", "length")
    assert shown.code == 2
    assert "jungokasai/THumB" in shown.stderr
    assert "Abstract-50S" in shown.stdout  # what could run was not lost


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "list"),
        (("nonsense",), "no rating set is called"),
        (("all",), "--data"),
        (("thumb", "--data", "/no/such/folder"), "not a folder"),
    ],
)
def test_bad_arguments_end_with_2(run: Run, arguments: tuple[str, ...], words: str) -> None:
    shown = run("bench", *arguments)
    assert shown.code == 2
    assert words in shown.stderr


def test_scores_from_a_file_are_measured_alone_or_beside_metrics(run: Run, folder: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("image,caption,judge\ns.png,one,0\ns.png,one two,1\nt.png,one,1\nt.png,one two,0\n")
    few = ("--data", folder, "--scores", scores, "--resamples", 5, "--permutations", 0, "--json")
    (alone,) = json.loads(run("bench", "abstract50s", *few).stdout)["sets"]
    assert {row["metric"]: row["value"] for row in alone["figures"]} == {"judge": 50.0}
    (beside,) = json.loads(run("bench", "abstract50s", *few, "-m", "length").stdout)["sets"]
    assert {row["metric"]: row["value"] for row in beside["figures"]} == {"judge": 50.0, "length": 100.0}


def test_own_ratings(run: Run, folder: Path, tmp_path: Path) -> None:
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("id,caption,rating\na,one,1\nb,one two,2\nc,one two three,3\n")
    shown = run("bench", "--ratings", ratings, "-m", "length")
    assert shown.code == 0
    assert "Kendall τc" in shown.stdout
    assert run("bench", "thumb", "--ratings", ratings, "-m", "length").code == 2


@pytest.mark.parametrize("option", ["--resamples", "--permutations"])
def test_a_thousand_million_draws_are_refused(run: Run, folder: Path, option: str) -> None:
    shown = run("bench", "flickr8k-expert", "--data", folder, "-m", "length", option, 10**9)
    assert shown.code == 2
    assert "1000000000; give 0 to 1,000,000" in shown.stderr


def test_own_ratings_without_captions_or_metrics_say_what_to_give(run: Run, folder: Path, tmp_path: Path) -> None:
    """It spoke of --data folders, or of columns that no file of ratings has; and a line for every metric."""
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("id,rating\na,1\nb,2\n")
    shown = run("bench", "--ratings", ratings)
    assert shown.code == 2
    assert "there are ratings but no captions in it; give the captions they are about: --captions FILE" in shown.stderr
    ratings.write_text("id,caption,rating\na,one,1\nb,one two,2\nc,one two three,3\n")
    shown = run("bench", "--ratings", ratings, "--resamples", 5, "--permutations", 0)
    assert shown.code == 0
    told = [line for line in shown.stdout.splitlines() if line.startswith("not measured: ")]
    assert "--data" not in shown.stdout
    assert any("bleu-1, bleu-2" in line and "compares with references and none were given" in line for line in told)
    assert any("clip-s" in line and "--images DIR" in line for line in told)
    assert len(told) < 10  # reasons are told once each, not once per metric
