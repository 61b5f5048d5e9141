"""What people see: tables and bars on a terminal, plain text in a pipe."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests.cli.conftest import Outcome, Run

from caplens.cli import _show
from caplens.core.errors import CaplensWarning


def test_a_table_is_drawn_on_a_terminal_only(run: Run) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "caplens", "metrics"]
    process = subprocess.Popen(command, stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm"})
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end was closed
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert process.wait(timeout=30) == 0
    assert "───" in shown.decode()
    assert "\x1b[" in shown.decode()
    plain = run("metrics").stdout
    assert "─" not in plain
    assert "\x1b" not in plain
    assert re.search(r"^bleu-1 +references +\S", plain, re.MULTILINE)


def test_wrong_words_are_red_on_a_terminal_unless_colour_is_unwanted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "a \x1b[1;4;31mcat\x1b[0m\n" in run("explain", "a cat", "--reference", "a dog").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "a [cat]\n" in run("explain", "a cat", "--reference", "a dog").stdout


def test_brackets_in_a_cell_are_not_markup(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _show.show_table(None, ["caption"], [["[bold]a cat[/bold] [/x]"]])
    assert "[bold]a cat[/bold] [/x]" in capsys.readouterr().out


def test_a_bar_is_drawn_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with _show.progress_bar() as progress:
        progress("encode", 1, 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with _show.progress_bar() as progress:
        progress("encode", 1, 2)
        progress("encode", 2, 2)
    drawn = capsys.readouterr().err
    assert "encode" in drawn
    assert "2/2" in drawn


EVIL = "\x1b]0;x\x07\x9b31m\x1b[2J\r\n\x08\x7f\u202e\u2066z"
"""A title, a color, a cleared screen, an overwritten line, text from right to left."""
STEERING = re.compile("[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]|\x1b(?!\\[[0-9;]*m)")
"""What may not reach a terminal: all but line ends and, where there is one, the colors of our own tables."""


@pytest.fixture(params=["pipe", "terminal"])
def output(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where standard output leads."""
    if request.param == "terminal":
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", "400")
    name: str = request.param
    return name


def check(shown: Outcome, *, said: str = r"\x1b]0;x\x07") -> None:
    """Nothing steers the terminal, and what would have is told in words."""
    for text in (shown.stdout, shown.stderr):
        assert not STEERING.search(text), repr(STEERING.search(text))
        assert "\x1b[2J" not in text
    assert said in shown.stdout + shown.stderr


def write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


@pytest.mark.usefixtures("toys", "output")
def test_ids_and_names_do_not_steer_the_terminal_in_score(run: Run, tmp_path: Path) -> None:
    evil = write(tmp_path, "captions.json", {EVIL: "broken", "b": EVIL})
    check(run("score", evil, "-m", "toy-picky,toy-weightless"))
    check(run("score", evil, "-m", "length", "--html", tmp_path / f"page{EVIL}.html"))
    check(run("score", tmp_path / f"{EVIL}.json"))
    check(run("score", evil, EVIL))
    check(run("score", evil, f"--{EVIL}"))
    check(run("score", evil, "-m", EVIL))
    check(run("score", evil, "-m", "length", "-o", EVIL))
    check(run("score", evil, "-m", "length", "--format", "csv", "-r", write(tmp_path, "r.json", {EVIL + "9": ["a"]})))
    check(run(EVIL))


@pytest.mark.usefixtures("toys", "output")
def test_rows_of_any_reader_do_not_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "captions.csv"
    table.write_text(f'id,caption\n"{EVIL}",broken\n"{EVIL}",again\n', newline="")
    check(run("score", table, "-m", "length"))
    lines = tmp_path / "captions.jsonl"
    lines.write_text(json.dumps({"id": EVIL, "caption": 5}) + "\n")
    check(run("score", lines, "-m", "length"))


@pytest.mark.usefixtures("toys", "output")
def test_systems_do_not_steer_the_terminal_in_compare(run: Run, tmp_path: Path) -> None:
    first = write(tmp_path, f"one{EVIL}.json", {"a": "a cat", EVIL: "broken"})
    second = write(tmp_path, f"two{EVIL}.json", {"a": "a cat sleeps", EVIL: "broken"})
    for layout in ("table", "csv", "latex", "markdown"):
        check(run("compare", first, second, "-m", "toy-picky", "--format", layout, "--resamples", 5))
    check(run("compare", second, first, "-m", "length", "--fail-if-worse", "--resamples", 50))


@pytest.mark.usefixtures("output")
def test_captions_and_references_do_not_steer_the_terminal_in_explain(run: Run, tmp_path: Path) -> None:
    check(run("explain", f"a cat{EVIL}", "--reference", f"a dog{EVIL}"))
    check(run("explain", tmp_path / f"{EVIL}.png", "a cat"))
    references = write(tmp_path, "references.json", {EVIL: ["a dog"], "b": ["a cat"]})
    check(run("explain", f"{EVIL}x.png", "a cat", "--references", references))


@pytest.mark.usefixtures("toys", "output")
def test_ratings_do_not_steer_the_terminal_in_bench(run: Run, tmp_path: Path) -> None:
    captions = write(tmp_path, f"{EVIL}.json", {EVIL: "broken", "b": "a cat", "c": "a cat sleeps"})
    ratings = tmp_path / f"ratings{EVIL}.csv"
    with ratings.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "rating"], [EVIL, 1], ["b", 2], ["c", 3]])
    check(
        run("bench", "--ratings", ratings, "--captions", captions, "-m", "toy-picky", "--resamples", 5), said="2 of 3"
    )
    with ratings.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "rating"], [EVIL, EVIL]])
    check(run("bench", "--ratings", ratings, "--captions", captions, "-m", "length"))
    check(run("bench", EVIL))
    check(run("bench", "list", "--data", tmp_path / EVIL))


def test_notes_warnings_and_tracebacks_do_not_steer_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def noted() -> list[dict[str, object]]:
        warnings.warn(EVIL, CaplensWarning, stacklevel=1)
        warnings.warn(EVIL, UserWarning, stacklevel=1)
        raise RuntimeError(EVIL)

    monkeypatch.setattr("caplens.metrics.list_metrics", noted)
    shown = run("metrics")
    assert shown.code == 3
    assert r"note: \x1b]0;x\x07" in shown.stderr
    assert r"RuntimeError: \x1b]0;x\x07" in shown.stderr
    check(shown)


def test_json_on_standard_output_is_safe_and_the_same(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "captions.json", {EVIL: "a cat"})
    shown = run("score", path, "-m", "length", "--json")
    check(shown, said="\\u001b]0;x\\u0007\\u009b31m")
    assert json.loads(shown.stdout)["ids"] == [EVIL]
    run("score", path, "-m", "length", "--json", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == json.loads(shown.stdout)


def test_tasks_of_a_bar_are_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "300")
    with _show.progress_bar() as progress:
        progress(f"[/bold][red]{EVIL}", 1, 2)
    drawn = capsys.readouterr().err
    assert r"[/bold][red]\x1b]0;x\x07\x9b31m" in drawn
    assert "\x1b]0;" not in drawn


def test_only_one_file_of_the_command_line_prints() -> None:
    """A verb that prints by itself would print what it was given."""
    folder = Path(_show.__file__).parent
    printing = re.compile(r"\bprint\(|\becho\(|\.stdout\.write|\.stderr\.write|Console\(")
    found = {path.name for path in folder.rglob("*.py") if printing.search(path.read_text("utf-8"))}
    assert found == {"_show.py", "__init__.py"}, "print through caplens.cli._show"
    main = (folder / "__init__.py").read_text("utf-8")
    assert printing.findall(main) == ["echo("], "the version is all it prints by itself"


def test_a_terminal_without_our_characters_gets_them_written_out(tmp_path: Path) -> None:
    path = write(tmp_path, "captions.json", {"猫": "a cat"})
    done = subprocess.run(
        [sys.executable, "-m", "caplens", "score", str(path), "-m", "length,clip-s"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert b"length" in done.stdout
