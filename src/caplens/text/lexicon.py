"""WordNet for the whole process: read once, whoever asks, with bounded memory for what was looked up."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from caplens.storage.digests import content_digest
from caplens.text.wordnet import WordNet

MOST_WORDS = 1 << 16
"""Words whose look-up is kept: a server meets new ones for as long as it runs."""


class BoundedWordNet(WordNet):
    """WordNet, with room for so many look-ups of each kind."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder)
        self.synsets = functools.lru_cache(MOST_WORDS)(self._synsets)
        self.base = functools.lru_cache(MOST_WORDS)(self._base)
        self.kinds = functools.lru_cache(MOST_WORDS)(self._kinds)


def open_wordnet(folder: Path) -> WordNet:
    """Return the database of a folder, read again only when its files have changed."""
    return _open(folder, content_digest(folder))


@functools.lru_cache(maxsize=2)
def _open(folder: Path, _: str) -> WordNet:
    return BoundedWordNet(folder)
