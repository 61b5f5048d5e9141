"""How a caption's InfoMetIC numbers stand among those of people's captions: by themselves they say nothing to a reader.

Scores are multiples of cosines. The α of a caption's words add up to 1, so the more it says the less each word has, and
β = 0.1 calls most words of a long caption wrong: a word's α times the number of words that count is compared instead.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

import numpy as np

Key = Literal["precision", "recall", "overall", "word"]
SCORES: tuple[Literal["precision", "recall", "overall"], ...] = ("precision", "recall", "overall")
KEYS: tuple[Key, ...] = (*SCORES, "word")


@dataclass(frozen=True)
class Standing:
    """Quantiles of people's captions, from the lowest to the highest."""

    quantiles: dict[Key, tuple[float, ...]]

    def share(self, key: Key, value: float) -> float:
        """The share of people's captions that score lower (or of their words that weigh less).

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
