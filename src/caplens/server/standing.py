"""Where a caption's scores stand among those of captions that people wrote."""

from __future__ import annotations

import functools
import json
from importlib.resources import files
from typing import Any

import numpy as np

from caplens.core.types import Floats

TABLE = "standing.json"
MOST_REFERENCES = 4
"""More references than so many hardly move a score; people's captions were held against one to so many."""


def standing(scores: dict[str, Any]) -> dict[str, list[float | None]]:
    """Return for every metric the share of people's captions that score lower; none where that was not measured."""
    found = {}
    for name, entry in scores["metrics"].items():
        measured = _measured().get(comparable(entry["signature"]))
        if "details" in entry and any("percentiles" in details for details in entry["details"]):  # it knows by itself
            found[name] = [details.get("percentiles", {}).get("overall") for details in entry["details"]]
        elif measured is not None:
            found[name] = [None if score is None else _share(score, measured) for score in entry["scores"]]
    return found


def comparable(signature: str) -> str:
    """Return a signature without the version, and with at most `MOST_REFERENCES` references.

    >>> comparable("rouge-l|tokenizer:ptb|references:5|caplens:0.2.0")
    'rouge-l|tokenizer:ptb|references:4'
    """
    parts = [part for part in signature.split("|") if not part.startswith("caplens:")]
    return "|".join(_few(part) if part.startswith("references:") else part for part in parts)


def _few(part: str) -> str:
    name, _, count = part.partition(":")
    return f"{name}:{min(MOST_REFERENCES, int(count))}" if count.isdigit() else part


@functools.cache
def _measured() -> dict[str, Floats]:
    """Comparable signature to 101 quantiles; made by tools/standing.py."""
    path = files("caplens.server") / TABLE
    if not path.is_file():
        return {}
    content = json.loads(path.read_text("utf-8"))
    return {signature: np.array(quantiles) for signature, quantiles in content["quantiles"].items()}


def _share(score: float, quantiles: Floats) -> float:
    """The share of people's captions below a score, to a hundredth.

    >>> _share(0.5, np.linspace(0, 1, 101)), _share(2.0, np.linspace(0, 1, 101))
    (0.5, 1.0)
    """
    below, upto = np.searchsorted(quantiles, score, "left"), np.searchsorted(quantiles, score, "right")
    return round(float(min(1.0, (below + max(below, upto - 1)) / 2 / (len(quantiles) - 1))), 2)
