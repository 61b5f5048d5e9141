"""A real server in a process of its own, with runs to show."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

import caplens
from caplens.core.captions import CaptionSet
from caplens.evaluation.check import check
from caplens.evaluation.evaluate import evaluate

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
import httpx

EXAMPLES = Path(caplens.__file__).parent / "cli" / "examples"
IMAGES = EXAMPLES / "images"
NAMES = sorted(path.stem for path in IMAGES.glob("*.jpg"))
REFERENCES = {name: [f"a photo of a {name}", f"the {name} in a picture"] for name in NAMES}
SYSTEMS = {
    "plain": {name: f"a {name}" for name in NAMES},
    "wordy": {name: f"a photo of a {name} in a picture" for name in NAMES},
}


def write_runs(folder: Path) -> Path:
    """Two systems that were scored, and verdicts on the texts of one."""
    folder.mkdir(parents=True, exist_ok=True)
    images = {name: IMAGES / f"{name}.jpg" for name in NAMES}
    for name, captions in SYSTEMS.items():
        evaluate(captions, REFERENCES, images, metrics=["bleu-1", "rouge-l", "meteor", "length"]).to_json(
            folder / f"{name}.json"
        )
    check(CaptionSet.of({**SYSTEMS["plain"], "cat": "IMG_2041.jpg"})).to_json(folder / "verdicts.json")
    return folder


@dataclass
class Running:
    """A server that was started, and how to reach it."""

    address: str
    process: subprocess.Popen[str]
    state: Path

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.address, timeout=60, **options)

    def kill(self) -> None:
        """End it as a crash would: nothing is told to it, and nothing is tidied up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def start(state: Path, *arguments: object, **environment: str) -> Iterator[Running]:
    """Start a server and wait until it says where it is."""
    command = [sys.executable, "-m", "caplens", "serve", "--port", "0", "--state", state, *arguments]
    process = subprocess.Popen(
        [str(word) for word in command], stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    assert process.stderr is not None
    try:
        yield Running(_address(process.stderr), process, state)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stderr.close()


def _address(lines: IO[str]) -> str:
    told = []
    for line in lines:
        told.append(line)
        found = re.search(r"serves at (http://\S+?)/?(login\S*)?$", line.strip())
        if found:
            return found[1]
    raise AssertionError("".join(told))


def wait_for_job(client: httpx.Client, job: str, seconds: float = 120) -> dict[str, object]:
    """The job, when it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found: dict[str, object] = client.get(f"/v1/jobs/{job}").json()
        if found["state"] in ("done", "failed", "canceled"):
            return found
        time.sleep(0.1)
    raise AssertionError(f"the job has not ended: {found}")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_runs(tmp_path_factory.mktemp("serve") / "runs")


@pytest.fixture(scope="session")
def server(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for all tests that only ask."""
    with start(tmp_path_factory.mktemp("state"), runs, "--images", IMAGES) as running:
        yield running


@pytest.fixture(scope="session")
def client(server: Running) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened
