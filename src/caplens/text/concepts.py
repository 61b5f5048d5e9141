"""Scene graphs whose words are WordNet concepts: synonyms are one object, and two graphs can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from caplens.text.scenegraph import Proposition

Synsets = Callable[[str], frozenset[int]]


class Concept:
    """A few words that mean the same here, with every synset they are in."""

    __slots__ = ("synsets", "words")

    def __init__(self, word: str, synsets: frozenset[int]) -> None:
        self.words = {word}
        self.synsets = synsets

    def resembles(self, other: Concept) -> bool:
        """Whether the two share a word or a synset."""
        return not self.words.isdisjoint(other.words) or not self.synsets.isdisjoint(other.synsets)

    def overlap(self, synsets: frozenset[int]) -> float:
        """Share of common synsets."""
        common = len(self.synsets & synsets)
        return common / len(self.synsets | synsets) if common else 0.0

    def absorb(self, word: str, synsets: frozenset[int]) -> None:
        self.words.add(word)
        self.synsets |= synsets

    def __str__(self) -> str:
        return "/".join(sorted(self.words))


class Claim(NamedTuple):
    """(object,), (object, attribute) or (subject, relation, object)."""

    concepts: tuple[Concept, ...]

    @property
    def text(self) -> list[str]:
        return [str(concept) for concept in self.concepts]

    def resembles(self, other: Claim) -> bool:
        return len(self.concepts) == len(other.concepts) and all(
            mine.resembles(theirs) for mine, theirs in zip(self.concepts, other.concepts, strict=True)
        )


class SceneGraph:
    """The claims of one caption, or of several captions of the same picture, without repetition.

    A word joins the object it shares most synsets with; attributes of one object, and relations between two, join the
    first of their kind that resembles them.
    """

    def __init__(self, propositions: Iterable[Proposition], synsets: Synsets) -> None:
        self._synsets = synsets
        self._objects: list[Concept] = []
        self._object_of: dict[str, int] = {}
        self._attributes: dict[int, list[Concept]] = {}
        self._relations: dict[tuple[int, int], list[Concept]] = {}
        for proposition in dict.fromkeys(propositions):
            subject = self._object(proposition[0])
            if len(proposition) == 2:
                self._add(self._attributes.setdefault(subject, []), proposition[1])
            elif len(proposition) == 3:
                between = (subject, self._object(proposition[1]))
                self._add(self._relations.setdefault(between, []), proposition[2].removeprefix("be "))

    def _object(self, word: str) -> int:
        known = self._object_of.get(word)
        if known is None:
            synsets = self._synsets(word)
            overlaps = [concept.overlap(synsets) for concept in self._objects]
            best = max(overlaps, default=0.0)
            if best > 0:
                known = overlaps.index(best)
                self._objects[known].absorb(word, synsets)
            else:
                known = len(self._objects)
                self._objects.append(Concept(word, synsets))
            self._object_of[word] = known
        return known

    def _add(self, concepts: list[Concept], word: str) -> None:
        if any(word in concept.words for concept in concepts):
            return
        synsets = self._synsets(word)
        for concept in concepts:
            if not concept.synsets.isdisjoint(synsets):
                concept.absorb(word, synsets)
                return
        concepts.append(Concept(word, synsets))

    def claims(self) -> list[Claim]:
        """Objects, then attributes, then relations."""
        objects = self._objects
        return [
            *(Claim((concept,)) for concept in objects),
            *(Claim((objects[of], concept)) for of, concepts in self._attributes.items() for concept in concepts),
            *(
                Claim((objects[one], concept, objects[other]))
                for (one, other), concepts in self._relations.items()
                for concept in concepts
            ),
        ]


def matches(candidates: list[Claim], references: list[Claim]) -> list[bool]:
    """Which claims the references make too; several may be backed by the same one."""
    return [any(claim.resembles(other) for other in references) for claim in candidates]
