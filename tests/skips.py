"""The only reasons for which a test may be skipped, in one place: any other skip fails the run."""

from __future__ import annotations

import re

ALLOWED = {
    r"the real data \(a folder named shared": "the rated sets are research data and not part of the repository",
    r"no chromium with chromedriver": "a browser is a system package; `make test` installs it where it may",
    r"[Jj]ava": "the official tools are oracles in Java; caplens itself needs none",
    r"reads the peak memory as Linux tells it": "the figure is not to be had elsewhere",
    r"caplens weights fetch": "no package registry was in reach when `make test` fetched them",
    r"not on Windows": "pipes, devices, modes, forks and signals are those of POSIX",
    r"only Linux seals memory": "elsewhere every worker reads the file itself",
    r"only glibc can be told": "other C libraries have no such settings",
    r"no /dev/(full|fd) here": "devices that only some systems have",
    r"could not import": "an optional package has no wheel for this system or Python",
    r"needs (torch|av|onnxruntime|ai-edge-litert|msgpack|tokenizers|transformers|httpx|sacrebleu)": "the same",
}


def unexpected(reasons: list[str]) -> list[str]:
    """Return the reasons that nobody listed."""
    return [reason for reason in reasons if not any(re.search(pattern, reason) for pattern in ALLOWED)]
