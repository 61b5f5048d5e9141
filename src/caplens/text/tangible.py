"""Which things can be pointed at in a picture, by WordNet: a lamp, the sea, a crowd, but no side, no day, no photo."""

from __future__ import annotations

import functools

from caplens.text.coco_objects import coco_objects
from caplens.text.lexicon import MOST_WORDS
from caplens.text.wordnet import WordNet

TANGIBLE = (
    "artifact",
    "living thing",
    "natural object",
    "substance",
    "fluid",
    "food",
    "geological formation",
    "body of water",
    "people",
    "social group",
)
"""What can be pointed at, by the names of WordNet whose kinds it is."""
ABOUT_THE_PICTURE = frozenset({"picture", "photo", "photograph", "image", "shot", "view", "scene"})


class Tangible:
    """Says of a name, as a base form, whether it is of something that can be pointed at, and which of COCO's it is."""

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._coco = coco_objects()
        self._kinds = frozenset(map(wordnet.first, TANGIBLE))
        self.coco_name = functools.lru_cache(MOST_WORDS)(self._coco_name)
        self.is_tangible = functools.lru_cache(MOST_WORDS)(self._is_tangible)

    def _coco_name(self, name: str) -> str | None:
        words = name.split()
        mentions = self._coco.mentions(words)
        return mentions[-1].name if mentions and mentions[-1].stop == len(words) else None

    def _is_tangible(self, name: str) -> bool:
        head = name if self._wordnet.first(name) is not None else name.rpartition(" ")[2]
        if head in ABOUT_THE_PICTURE:
            return False
        return self.coco_name(name) is not None or not self._kinds.isdisjoint(self._wordnet.kinds(head))
