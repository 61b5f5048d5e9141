"""What can be wrong with an alt text before anybody looks at its picture: empty, a file name, "image of", too long."""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 200
"""Characters; guides for alt texts say 100 to 150, and screen readers do not let one pause inside it."""
MANY_PICTURES = 3
"""On so many different pictures, one text describes none of them."""

_FILE_NAME = re.compile(
    r"^\S+\.(?:jpe?g|png|gif|webp|svg|bmp|tiff?|avif|heic)$"  # beach.jpg
    r"|^(?:img|dsc[nf]?|image|photo|pict?|screenshot|screen shot|untitled|unnamed|wp|p)[-_ ]?\d[\d\W_]*$"  # IMG_2041
    r"|^[0-9a-f]{16,}$|^\d+$",
    re.IGNORECASE,
)
_PLACEHOLDERS = frozenset(
    """
    alt image images img photo photograph picture pic graphic icon logo banner thumbnail untitled unnamed placeholder
    todo tbd test null none undefined n/a na spacer caption description
    """.split()  # noqa: SIM905
) | {"alt text", "image description"}
_PREFIX = re.compile(
    r"^(?:an?|the|this(?: is)?(?: an?)?)?\s*(?:image|picture|photo|photograph|pic)\s+(?:of|showing|shows)\b",
    re.IGNORECASE,
)


class Problem(NamedTuple):
    """Something that is wrong with the text itself."""

    kind: str
    message: str
    serious: bool
    """Whether the text is useless, rather than worth a second look."""


def text_problems(text: str, pictures_with_it: int = 1) -> list[Problem]:
    """Return what is wrong with an alt text as a text.

    Args:
        text: the alt text.
        pictures_with_it: how many different pictures have this very text.

    >>> [problem.kind for problem in text_problems("IMG_2041.jpg")], text_problems("a dog runs along a beach")
    (['file-name'], [])
    """
    stripped = " ".join(text.split())
    if not stripped or not any(map(str.isalnum, stripped)):
        return [Problem("empty", "the text is empty", True)]
    if _FILE_NAME.match(stripped):
        return [Problem("file-name", f"{stripped!r} is a file name, not a description", True)]
    if stripped.lower().strip(" .:") in _PLACEHOLDERS:
        return [Problem("placeholder", f"{stripped!r} says nothing about the picture", True)]
    problems = []
    prefix = _PREFIX.match(stripped)
    if prefix:
        opening = prefix.group().strip()
        problems.append(Problem("redundant-prefix", f"{opening!r} can go: readers know that it is a picture", False))
    if len(stripped) > LONGEST:
        problems.append(Problem("too-long", f"{len(stripped)} characters are hard to listen to", False))
    if pictures_with_it >= MANY_PICTURES:
        problems.append(Problem("repeated", f"the same text stands on {pictures_with_it} pictures", False))
    return problems
