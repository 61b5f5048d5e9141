"""Prompts: texts with places for the caption and its references, shipped or in a file of the user's."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from caplens.core.errors import InputError
from caplens.readers.source import Source

# Our own names of the places, and those in the files that CLAIR's and G-VEval's authors distribute.
CAPTION_PLACES = ("{caption}", "{{Caption}}", "{candidate_statements}")
REFERENCES_PLACES = ("{references}", "{{Reference}}", "{target_statements}")
_PLACE = re.compile("|".join(map(re.escape, (*CAPTION_PLACES, *REFERENCES_PLACES))))


@dataclass(frozen=True)
class Prompt:
    """A text with places."""

    name: str
    text: str

    @classmethod
    def shipped(cls, name: str) -> Prompt:
        """Return a prompt that comes with caplens."""
        file = files("caplens.metrics.judge") / "shipped" / f"{name}.txt"
        return cls(name, file.read_text(encoding="utf-8"))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Prompt:
        """Return the prompt in a file; one without a place for the caption is refused."""
        with Source(path) as source:
            text = source.decode(source.short_bytes())
        if not any(place in text for place in CAPTION_PLACES):
            raise InputError(
                "the prompt has no place for the caption",
                where=os.fspath(path),
                remedy="write {caption} where it goes, and {references} where those of people go",
            )
        return cls(os.path.basename(os.fspath(path)), text)

    @property
    def wants_references(self) -> bool:
        return any(place in self.text for place in REFERENCES_PLACES)

    @property
    def wants_json(self) -> bool:
        """Whether it asks for JSON: servers refuse JSON mode for a prompt that does not speak of it."""
        return "json" in self.text.lower()

    @property
    def label(self) -> str:
        """Name and sum, for signatures."""
        return f"{self.name}@{hashlib.sha256(self.text.encode()).hexdigest()[:12]}"

    def fill(self, caption: str, references: Sequence[str]) -> str:
        """Return the text with everything in its place; what looks like a place inside a caption stays as it is.

        >>> Prompt("mine", "Is {caption} like {references}?").fill("{references}", ["a dog", "dogs"])
        'Is {references} like - a dog\\n- dogs?'
        """
        listed = "\n".join(f"- {text}" for text in references)
        return _PLACE.sub(lambda place: caption if place[0] in CAPTION_PLACES else listed, self.text)
