"""The process of one job: an order on standard input, progress and the outcome on standard output, a line each."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from caplens.core.errors import as_caplens_error
from caplens.core.plain_json import json_text
from caplens.server.settings import Limits, Settings

EVERY = 0.2
"""Seconds between two lines of progress."""


def settings_json(settings: Settings) -> dict[str, Any]:
    """Return what a job has to know of the server."""
    return {
        "runs": None if settings.runs is None else str(settings.runs),
        "folders": [str(folder) for folder in settings.folders],
        "state": str(settings.state),
        "allow_urls": settings.allow_urls,
        "encoder": settings.encoder,
        "limits": asdict(settings.limits),
    }


def _settings(given: dict[str, Any]) -> Settings:
    return Settings(
        runs=None if given["runs"] is None else Path(given["runs"]),
        folders=tuple(map(Path, given["folders"])),
        state=Path(given["state"]),
        allow_urls=given["allow_urls"],
        encoder=given["encoder"],
        limits=Limits(**given["limits"]),
    )


def main() -> None:
    """Run one job."""
    if hasattr(os, "nice"):
        os.nice(5)  # whoever waits at the page comes first
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no line of ours
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with, args=(sys.stdin,), daemon=True).start()
    latest = 0.0

    def tell(message: dict[str, Any]) -> None:
        output.write(json_text(message) + "\n")
        output.flush()

    def progress(task: str, done: int, total: int) -> None:
        nonlocal latest
        if time.monotonic() - latest >= EVERY or done >= total:
            latest = time.monotonic()
            tell({"task": task, "done": done, "total": total})

    try:
        from caplens.server.tasks import JOBS  # with the metrics: errors of an import are told, too

        model, work = JOBS[order["kind"]]
        request = model.model_validate(order["request"])
        tell({"result": work(request, _settings(order["settings"]), progress)})
    except Exception as error:
        tell({"error": str(as_caplens_error(error))})
    output.flush()
    os._exit(0)  # the thread below still reads


def _end_with(stream: IO[str]) -> None:
    """End this process when the server has ended, however that came about."""
    stream.read()
    os._exit(1)


if __name__ == "__main__":
    main()
