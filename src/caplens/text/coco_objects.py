"""COCO's 80 kinds of things in captions: which words name one, as CHAIR counts them (Rohrbach et al. 2018)."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from caplens.core.errors import InputError
from caplens.text.wordnet import DETACHMENT

LONGEST_NAME = 3
"""Words of the longest name that is looked for: pair of scissors."""
ANIMALS = frozenset({"bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe"})
VEHICLES = frozenset({"bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat"})
# In "baby elephant" and "passenger train" nobody is a person; the original has these pairs one by one.
NOT_PERSONS: Mapping[str, frozenset[str]] = {"baby": ANIMALS, "adult": ANIMALS, "passenger": VEHICLES}


class Mention(NamedTuple):
    """Words `start` to `stop` of a caption name a COCO object."""

    start: int
    stop: int
    name: str


@dataclass(frozen=True)
class CocoObjects:
    """Words and phrases, each with the object that it names."""

    name_of: Mapping[str, str]

    @functools.cached_property
    def digest(self) -> str:
        """What results made with these words are kept under."""
        return hashlib.sha256(repr(sorted(self.name_of.items())).encode()).hexdigest()

    @classmethod
    def parse(cls, text: str, where: str = "") -> CocoObjects:
        """Read lines of names that mean the same, the object's own first: the layout of CHAIR's synonyms.txt.

        >>> CocoObjects.parse("dog, puppy\\ncat, kitten").name_of["puppy"]
        'dog'
        """
        name_of: dict[str, str] = {}
        for line in (line for line in text.splitlines() if not line.startswith("#")):
            names = [" ".join(name.lower().split()) for name in line.split(",")]
            for name in filter(None, names):
                name_of.setdefault(name, names[0])
        if not name_of:
            raise InputError(
                "no names of objects", where=where, remedy="give one object a line: its name, then synonyms, by commas"
            )
        return cls(name_of)

    def mentions(self, words: Sequence[str]) -> list[Mention]:
        """Return the objects that the words of a caption name, the longest name first wherever two begin.

        >>> coco_objects().mentions("two hot dogs near a baby elephant".split())
        [Mention(start=1, stop=3, name='hot dog'), Mention(start=6, stop=7, name='elephant')]
        """
        lowered = [word.lower() for word in words]
        found: list[Mention] = []
        start = 0
        while start < len(lowered):
            for stop in range(min(start + LONGEST_NAME, len(lowered)), start, -1):
                name = self._name(lowered[start:stop])
                if name is not None:
                    found.append(Mention(start, stop, name))
                    start = stop
                    break
            else:
                start += 1
        following = {mention.start: mention.name for mention in found}
        return [
            mention
            for mention in found
            if following.get(mention.stop) not in NOT_PERSONS.get(lowered[mention.start], frozenset())
        ]

    def _name(self, words: list[str]) -> str | None:
        """What a word or phrase names, in the singular or the plural."""
        *before, last = words
        singulars = (last[: -len(ending)] + old for ending, old in DETACHMENT["noun"] if last.endswith(ending))
        forms = (" ".join([*before, form]) for form in (last, *singulars))
        return next((self.name_of[form] for form in forms if form in self.name_of), None)


@functools.cache
def coco_objects() -> CocoObjects:
    """Return the table that ships, made from COCO's names and WordNet by tools/coco_objects.py."""
    return CocoObjects.parse(files("caplens.text").joinpath("coco_objects.txt").read_text("utf-8"))
