"""WordNet as SPICE asks it: which synsets a word or phrase is in, and what the base form of an inflected word is."""

from __future__ import annotations

import functools
import itertools
import os
from pathlib import Path
from typing import Literal

WORDNET = "wordnet-3.0"
"""The database's name among the weights: the version that METEOR and SPICE use."""
Part = Literal["noun", "verb", "adj", "adv"]
PARTS: tuple[Part, ...] = ("noun", "verb", "adj", "adv")

# Endings that inflection adds, and what stood there before: Morphy's detachment rules (WordNet manual, morphy(7WN)).
DETACHMENT: dict[Part, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}


class WordNet:
    """The index files of a WordNet 3 database folder; lines are read at once and understood when asked for."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        root = Path(folder)
        self._nouns = root / "data.noun"
        self._index: dict[Part, dict[str, str]] = {}
        self._irregular: dict[Part, dict[str, tuple[str, ...]]] = {}
        for part in PARTS:
            lines = (root / f"index.{part}").read_text("utf-8").splitlines()
            # The license at the top of each file is indented.
            self._index[part] = {line[: line.index(" ")]: line for line in lines if not line.startswith(" ")}
            words = (line.split() for line in (root / f"{part}.exc").read_text("utf-8").splitlines())
            self._irregular[part] = {form: tuple(bases) for form, *bases in words}
        self.synsets = functools.cache(self._synsets)
        self.base = functools.cache(self._base)
        self.kinds = functools.cache(self._kinds)

    def _synsets(self, phrase: str) -> frozenset[int]:
        """Every synset that has the phrase or a base form of it, whatever the part of speech."""
        word = phrase.strip().lower().replace(" ", "_")
        found: set[int] = set()
        for number, part in enumerate(PARTS):
            for form in {word, *self._bases(word, part)}:
                line = self._index[part].get(form)
                if line is not None:
                    fields = line.split()
                    # lemma, part, number of synsets, …, their offsets; offsets repeat between parts of speech.
                    found.update(int(offset) * len(PARTS) + number for offset in fields[-int(fields[2]) :])
        return frozenset(found)

    def first(self, noun: str) -> int | None:
        """The most frequent synset of a noun, numbered as in `synsets`."""
        word = noun.strip().lower().replace(" ", "_")
        for form in (word, *self._bases(word, "noun")):
            line = self._index["noun"].get(form)
            if line is not None:
                fields = line.split()
                return int(fields[-int(fields[2])]) * len(PARTS)
        return None

    def _kinds(self, noun: str) -> frozenset[int]:
        """The most frequent synset of a noun and all above it: a puppy is a dog, an animal, a thing."""
        own = self.first(noun)
        if own is None:
            return frozenset()
        found, waiting = {own}, [own]
        while waiting:
            fields = self._noun_lines[waiting.pop() // len(PARTS)].partition("|")[0].split()
            for mark, place in itertools.pairwise(fields):
                if mark in ("@", "@i") and (above := int(place) * len(PARTS)) not in found:
                    found.add(above)
                    waiting.append(above)
        return frozenset(found)

    @functools.cached_property
    def _noun_lines(self) -> dict[int, str]:
        """Lines by the offset they begin with; in some copies it is no longer their place in the file."""
        lines = self._nouns.read_text("utf-8").splitlines()
        return {int(line[:8]): line for line in lines if not line.startswith(" ")}

    def has(self, phrase: str, part: Part) -> bool:
        """Whether the phrase is an entry of this part of speech."""
        return phrase.replace(" ", "_") in self._index[part]

    def _bases(self, word: str, part: Part) -> list[str]:
        """The forms a word can be inflected from, irregular ones first; only such as WordNet knows."""
        irregular = self._irregular[part].get(word)
        if irregular:
            return list(irregular)
        known = self._index[part]
        if part == "noun" and word.endswith("ss"):
            return []
        bases = [word[: -len(ending)] + old for ending, old in DETACHMENT[part] if word.endswith(ending)]
        return [base for base in bases if base in known]

    def _base(self, word: str, part: Part) -> str:
        """The base form of a word known to be inflected; the word itself where there is none.

        Doubled consonants (running) are in WordNet's list of irregular forms.
        """
        bases = self._bases(word, part)
        return bases[0] if bases else word
