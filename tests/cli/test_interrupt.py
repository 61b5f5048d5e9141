"""Ctrl-C in the middle of scoring, or of writing, leaves no file behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

# A parallel test runner ignores SIGINT, and its children inherit that.
LISTEN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"

SCORING = """
import sys, time
import numpy as np
from pathlib import Path
from caplens.cli import main
from caplens.metrics.base import Metric, Statistics, register

@register
class Slow(Metric):
    name, needs, paper, summary = "toy-slow", frozenset(), "-", "-"
    def statistics(self, work):
        Path(sys.argv[1], "started").touch()
        time.sleep(60)
        return Statistics(np.zeros((len(work.captions), 1)))

main(["score", sys.argv[1] + "/in.json", "-m", "length,toy-slow",
      "--json", sys.argv[1] + "/out/a.json", "--html", sys.argv[1] + "/out/a.html"])
"""

WRITING = """
import sys, time
from pathlib import Path
from caplens.cli import _show, main

def half(value):
    yield '{"captions": '
    Path(sys.argv[1], "started").touch()
    time.sleep(60)

_show.json_pieces = half
main(["score", sys.argv[1] + "/in.json", "-m", "length", "--json", sys.argv[1] + "/out/a.json"])
"""


def interrupted(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script, send it SIGINT once it says it has started, and wait for its end."""
    (folder / "in.json").write_text('{"a": "a cat"}')
    process = subprocess.Popen(
        [sys.executable, "-c", LISTEN + script, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 50
        while not (folder / "started").exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "the script never started"
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    return subprocess.CompletedProcess([], process.returncode, stdout, stderr)


def test_interrupted_while_scoring(tmp_path: Path) -> None:
    ended = interrupted(SCORING, tmp_path)
    assert ended.returncode == 130
    assert ended.stderr.splitlines()[-1] == "caplens: interrupted"
    assert "Traceback" not in ended.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in.json", "started"]


def test_interrupted_while_writing(tmp_path: Path) -> None:
    ended = interrupted(WRITING, tmp_path)
    assert ended.returncode == 130
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in.json", "out", "started"]
