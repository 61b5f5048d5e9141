"""The words of a caption, and which say something about a picture: nouns, verbs, adjectives, adverbs, numbers."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from caplens.core.errors import MissingData
from caplens.core.optional import require
from caplens.storage import weights
from caplens.text.parse import Parser
from caplens.text.scenegraph import COPULAS
from caplens.text.stopwords import STOP_WORDS

PARSERS = ("en_core_web_md", "en_core_web_sm")
_WORD = re.compile(r"\w+(?:-\w+)*|['’]\w+|[^\w\s]+")
_SEMANTIC = ("NN", "VB", "JJ", "RB", "CD")
_HELPING = frozenset({"aux", "auxpass", "neg"})


class Word(NamedTuple):
    """A word as it stands in the caption."""

    text: str
    tag: str
    """The Penn tag; empty where no tagger was at hand."""
    semantic: bool


def split_words(text: str) -> list[str]:
    """Words and runs of punctuation, in order.

    >>> split_words("A man's t-shirt can't swim!!")
    ['A', 'man', "'s", 't-shirt', 'can', "'t", 'swim', '!!']
    """
    return _WORD.findall(text)


def require_tagger() -> Path:
    """Return the folder of a parser that works here; `MissingData` says what it lacks and how to get that."""
    purpose = "telling nouns and verbs apart"
    require("msgpack", purpose=purpose)
    folder = next((path for name in PARSERS if (path := weights.find(name)) is not None), None)
    return folder or weights.require(PARSERS[0], purpose=purpose)


def tagger_lacks() -> str:
    """Return what a parser lacks here and how to get that; empty if one works."""
    try:
        require_tagger()
    except MissingData as reason:
        return str(reason)
    return ""


def tag_words(texts: Sequence[str], folder: Path | None = None) -> list[list[Word]]:
    """The words of every text, by the parser in a folder or the first that works; without one by a list of stop words.

    >>> [word.text for word in tag_words(["a man is on the snow"])[0] if word.semantic]
    ['man', 'snow']
    """
    split = [split_words(text) for text in texts]
    try:
        parser = _parser(folder or require_tagger())
    except MissingData:
        return [[Word(word, "", _says(word) and word.lower() not in STOP_WORDS) for word in words] for words in split]
    tagged = []
    for words, parse in zip(split, parser.parse([_lower(words) for words in split]), strict=True):
        # The parser leaves the end of a very long text alone.
        rest = [Word(word, "", False) for word in words[len(parse.words) :]]
        judged = zip(words, parse.tags, parse.labels, strict=False)
        tagged.append([Word(word, tag, _is_semantic(word, tag, label)) for word, tag, label in judged] + rest)
    return tagged


@functools.cache
def _parser(folder: Path) -> Parser:
    return Parser(folder)


def _lower(words: list[str]) -> list[str]:
    """As captions in capitals are tagged worse, and SPICE's are lower-cased too."""
    return [word.lower() for word in words]


def _is_semantic(word: str, tag: str, label: str) -> bool:
    return tag.startswith(_SEMANTIC) and label not in _HELPING and word.lower() not in COPULAS and _says(word)


def _says(word: str) -> bool:
    return any(letter.isalnum() for letter in word) and word[0] not in "'’"
