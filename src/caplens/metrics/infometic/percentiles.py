"""How a caption's InfoMetIC numbers stand among those of people's captions: by themselves they say nothing to a reader.

Scores are multiples of cosines, and were trained together with the encoder's own, so they are compared with it
added, as in InfoMetIC+. The α of a caption's words add up to 1: the more it says the less each word has, so that
β = 0.1 calls most words of a long caption wrong, and in a caption of another picture no word is worse than the rest.
What is compared instead is α times the number of words that count, less where the caption is far from the picture.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

import numpy as np

Key = Literal["precision", "recall", "overall", "word"]
SCORES: tuple[Literal["precision", "recall", "overall"], ...] = ("precision", "recall", "overall")
KEYS: tuple[Key, ...] = (*SCORES, "word")
FIT = 8.0
"""How much it tells about a caption's words that it is far from the picture. From a logistic regression on captions of
Flickr8k's validation photos: people's, with a word replaced, of similar and of any photos."""


@dataclass(frozen=True)
class HumanPercentiles:
    """Quantiles of people's captions, from the lowest to the highest."""

    quantiles: dict[Key, tuple[float, ...]]
    scale: float = 0.0
    """Of the encoder's cosine, where it is added to a score."""
    fits_from: float = 0.35
    """A caption whose cosine is lower is far from the picture."""

    def of_score(self, key: Key, score: float, cosine: float) -> float:
        """The share of people's captions that score lower."""
        return self.share(key, score + self.scale * cosine)

    def of_word(self, alpha: float, count: int, cosine: float) -> float:
        """The share of people's words that weigh less."""
        return self.share("word", word_weight(alpha, count, cosine, self.fits_from))

    def share(self, key: Key, value: float) -> float:
        """The share of what people wrote that is lower.

        >>> HumanPercentiles({"recall": (1.0, 2.0, 4.0)}).share("recall", 3.0)
        0.75
        """
        levels = self.quantiles[key]
        return round(float(np.interp(value, levels, np.linspace(0, 1, len(levels)))), 3)


def word_weight(alpha: float, count: int, cosine: float, fits_from: float) -> float:
    """α of a word among `count` that are judged, in a caption with this cosine.

    >>> round(word_weight(0.2, 5, 0.6, 0.35), 2), round(word_weight(0.2, 5, 0.0, 0.35), 2)
    (1.0, 0.06)
    """
    return count * alpha * math.exp(-FIT * max(0.0, fits_from - cosine))


def percentiles_path() -> Path:
    """The file, written by tools/infometic_percentiles.py: an entry for each of the shipped weights."""
    return Path(str(files("caplens") / "storage" / "shipped" / "infometic-percentiles.json"))


@functools.cache
def percentiles_of(weights_hash: str) -> HumanPercentiles | None:
    """For these weights; None for others than those it was measured with."""
    if not percentiles_path().is_file():
        return None
    entry = json.loads(percentiles_path().read_text("utf-8")).get(weights_hash)
    if entry is None:
        return None
    quantiles = {key: tuple(entry[key]) for key in KEYS}
    return HumanPercentiles(quantiles, float(entry["scale"]), float(entry["fits_from"]))
