"""How a caption's InfoMetIC scores stand among those of people's captions: scale · cosine says nothing to a reader."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

import numpy as np

Key = Literal["precision", "recall", "overall"]
KEYS: tuple[Key, ...] = ("precision", "recall", "overall")


@dataclass(frozen=True)
class Standing:
    """Quantiles of people's captions, from the lowest to the highest."""

    quantiles: dict[Key, tuple[float, ...]]

    def share(self, key: Key, value: float) -> float:
        """The share of people's captions that score lower.

        >>> Standing({"recall": (1.0, 2.0, 4.0)}).share("recall", 3.0)
        0.75
        """
        levels = self.quantiles[key]
        return round(float(np.interp(value, levels, np.linspace(0, 1, len(levels)))), 3)


def place() -> Path:
    """The file, written by tools/infometic_standing.py."""
    return Path(str(files("caplens") / "weights_data" / "infometic-standing.json"))


@functools.cache
def standing_of(weights_hash: str) -> Standing | None:
    """For these weights; None for others than those it was measured with."""
    if not place().is_file():
        return None
    content = json.loads(place().read_text("utf-8"))
    if content["weights"] != weights_hash:
        return None
    return Standing({key: tuple(content[key]) for key in KEYS})
