"""What people see: tables and bars on a terminal, plain text in a pipe."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest
from tests.cli.conftest import Run

from caplens.cli import _show


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
