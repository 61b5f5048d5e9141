"""Standard streams that are closed, full, or cannot write a character: a message, and never somebody's file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = 'import sys; sys.argv[0] = "caplens"; from caplens.cli import main; main()'
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="not on Windows: a shell that closes streams")


def shell(command: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run caplens in a shell command, where it is called "$@"."""
    words = [sys.executable, "-c", RUN, *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", command, "sh", *words], capture_output=True, env={**os.environ, **environment}, timeout=120
    )


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.jsonl"
    path.write_text(json.dumps({"id": "猫", "caption": "猫 – 猫", "references": ["a cat"]}) + "\n", "utf-8")
    return path


def test_a_closed_stdout_is_said_on_stderr(captions: Path) -> None:
    done = shell('"$@" >&-', "score", captions, "-m", "bleu-1", "--json")
    assert done.returncode == 2
    assert done.stderr == b"caplens: standard output is closed; send it to a file or to /dev/null\n"


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- 2>&-"])
def test_other_closed_streams_cost_nothing(captions: Path, closed: str) -> None:
    done = shell(f'"$@" {closed}', "score", captions, "-m", "bleu-1", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["ids"] == ["猫"]
    assert done.stderr == b""


def test_no_file_takes_the_place_of_a_closed_stderr() -> None:
    # What a library writes to descriptor 2 would land in the first file that is opened.
    code = "import os; from caplens.cli import _open_closed_streams as f; f(); print(os.open('.', os.O_RDONLY))"
    done = subprocess.run(["sh", "-c", '"$@" <&- 2>&-', "sh", sys.executable, "-c", code], capture_output=True)
    assert int(done.stdout) > 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_stdout_is_said(captions: Path) -> None:
    done = shell('"$@" >/dev/full', "score", captions, "-m", "bleu-1")
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_what_an_encoding_lacks_is_written_out(captions: Path, encoding: str) -> None:
    done = shell('"$@"', "check", captions, PYTHONIOENCODING=encoding, LC_ALL="C")
    assert done.returncode == 0, done.stderr
    assert rb"\u732b" in done.stdout
    as_json = shell('"$@"', "score", captions, "-m", "bleu-1", "--json", PYTHONIOENCODING=encoding)
    assert json.loads(as_json.stdout)["ids"] == ["猫"]
