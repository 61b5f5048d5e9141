"""Captions that try to please a metric without describing the picture: what a learned metric must not fall for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from caplens.text.ptb import tokenize
from caplens.text.stopwords import STOP_WORDS

GENERIC = (
    "a photo of a person in a room",
    "a group of people standing around",
    "a man standing in front of a building",
    "a close up of a plate of food on a table",
    "a street with cars and people on it",
    "a large body of water with a sky above it",
    "a person holding something in his hand",
    "a picture of a thing on a table",
)

# How a list begins, and what stands between its words.
LISTS = (
    ("", " "),
    ("", ", "),
    ("", " and "),
    ("a ", " and a "),
    ("a ", ", a "),
    ("a ", " with a "),
    ("there is a ", " and a "),
    ("a photo of a ", " and a "),
)


def repeat_words(honest: str, references: Sequence[str], random: np.random.Generator) -> str:
    """One of its content words, or its last words, said again and again."""
    words = honest.rstrip(" .").split()
    chosen = [word for word in words if word.lower() not in STOP_WORDS] or words
    if random.random() < 0.5:
        return " ".join([*words, *[str(random.choice(chosen))] * int(random.integers(2, 7))])
    return " ".join(words + words[-3:] * int(random.integers(1, 4)))


def shuffle_words(honest: str, references: Sequence[str], random: np.random.Generator) -> str:
    """The right words in no order."""
    words = honest.rstrip(" .").split()
    return " ".join(words[position] for position in random.permutation(len(words)))


def list_objects(honest: str, references: Sequence[str], random: np.random.Generator) -> str:
    """The content words that the references hold, as a list: all of them, or the few that most references have."""
    texts = [set(text.split()) - STOP_WORDS for text in tokenize([honest, *references])]
    mentions = Counter(word for words in texts for word in sorted(words))
    count = 16 if random.random() < 0.5 else int(random.integers(3, 9))
    chosen = [word for word, _ in mentions.most_common(count)]
    start, joint = LISTS[random.integers(len(LISTS))]
    return start + joint.join(chosen[position] for position in random.permutation(len(chosen)))


def be_generic(honest: str, references: Sequence[str], random: np.random.Generator) -> str:
    """A caption that suits many pictures a little."""
    return str(random.choice(GENERIC))


def be_long(honest: str, references: Sequence[str], random: np.random.Generator) -> str:
    """The caption, and on and on with what other captions might say."""
    more = [str(text) for text in random.choice(GENERIC, size=3, replace=False)]
    return " and ".join([honest.rstrip(" ."), *more])


Corruption = Callable[[str, Sequence[str], np.random.Generator], str]
CORRUPTIONS: dict[str, Corruption] = {
    "repeated words": repeat_words,
    "shuffled words": shuffle_words,
    "list of objects": list_objects,
    "generic caption": be_generic,
    "over-long caption": be_long,
}
