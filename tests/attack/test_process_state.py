"""Nothing that threads of somebody else's program share is changed: warning filters, logging, umask, descriptors."""

from __future__ import annotations

import logging
import re
import threading
from pathlib import Path

import pytest

import caplens

SOURCE = Path(caplens.__file__).parent
SHARED = re.compile(
    r"(catch_warnings|simplefilter|filterwarnings|umask|dup2|logging\.disable|chdir|setrlimit|field_size_limit)\("
)
OWN_PROCESSES = [SOURCE / name for name in ("cli/__init__.py", "scale/worker.py", "server/worker.py")]
"""The command line's process is its own, and so is a worker's."""


def test_only_the_command_line_changes_what_a_process_shares() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        if path not in OWN_PROCESSES
        for line in path.read_text("utf-8").splitlines()
        if SHARED.search(line.split("#")[0])
    ]
    assert found == []


def test_making_8_bit_weights_leaves_other_threads_their_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from caplens.encoders import onnx

    class Quantization:
        QuantType = type("QuantType", (), {"QInt8": 0})

        @staticmethod
        def quantize_dynamic(*_: object, **__: object) -> None:
            logging.warning("advice on clean-ups")
            other = threading.Thread(target=logging.warning, args=["of another thread"])
            other.start()
            other.join()

    monkeypatch.setattr(onnx, "require", lambda *_, **__: Quantization)
    onnx._quantize(tmp_path / "model", tmp_path / "target")
    logging.warning("afterwards")
    assert caplog.messages == ["of another thread", "afterwards"]
