"""Whether a caption looks English, the only language that the tagger, WordNet and the shipped encoder understand."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

from caplens.text.stopwords import STOP_WORDS

LEAST_KNOWN = 0.5
"""Share of known words under which a caption is in another language (docs/research/infometic.md)."""
MANY = 0.1
"""Share of such captions from which a whole set is worth a note: among English ones it is 0.01 %."""
LOOKED_AT = 500
"""Captions of a set that are looked at: enough to tell that share, and quick."""
UNTRUSTED = (
    "this caption does not look English, the only language understood here: no verdict on its words can be trusted"
)

_WORD = re.compile(r"[^\W\d_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]{4}"
)
"""Four letters in a row of Thai, Lao, Burmese, Khmer, Japanese or Chinese: segmented words are shorter, mostly."""


def looks_english(text: str) -> bool:
    """Whether at least half of its words are known.

    A capital inside it may begin a name, which nobody has to know, and a single word may be a rare one.

    >>> [looks_english(text) for text in ("A dog in Reykjavík", "Ein Hund auf einem Stuhl", "猫", "axolotl", "42!")]
    [True, False, False, True, True]
    """
    words: list[str] = _WORD.findall(text)
    plain = [word for place, word in enumerate(words) if not place or word[0].islower()]
    counted = plain if len(plain) > 1 else words
    if len(counted) == 1:
        return counted[0].isascii()
    known = _known()
    return sum(word.lower() in known for word in counted) >= LEAST_KNOWN * len(counted)


def foreign_note(texts: Sequence[str]) -> str | None:
    """What to tell the reader of a score that only English captions can have; None where they are English.

    >>> foreign_note(["a cat", "a dog"]), (foreign_note(["un gato negro", "a dog"]) or "")[:45]
    (None, 'about 50 % of the captions do not look Englis')
    """
    if len(texts) == 1:
        return None if looks_english(texts[0]) else UNTRUSTED
    share = _share(texts, lambda text: not looks_english(text))
    if share < MANY:
        return None
    return (
        f"about {100 * share:.0f} % of the captions do not look English, the only language understood here: "
        "their scores cannot be trusted"
    )


def unsegmented_note(texts: Sequence[str]) -> str | None:
    """What to tell the reader of a score over words where the texts have no spaces between them; None where they have.

    >>> unsegmented_note(["a cat", "a dog"]), (unsegmented_note(["一只猫在垫子上", "a dog"]) or "")[:52]
    (None, 'about 50 % of the captions are in a script without s')
    """
    share = _share(texts, lambda text: _UNSPACED.search(text) is not None)
    if share < MANY:
        return None
    return (
        f"about {100 * share:.0f} % of the captions are in a script without spaces between words, so a whole phrase "
        "counts as one word: take a tokenizer that finds words (-o tokenizer=zh, ja-mecab, ko-mecab, or char for "
        "characters), or put spaces between the words of captions and references"
    )


def _share(texts: Sequence[str], is_so: Callable[[str], bool]) -> float:
    """Return of how many texts this is so, by looking at some."""
    looked = texts[:: max(1, len(texts) // LOOKED_AT)]
    return sum(map(is_so, looked)) / max(1, len(looked))


@functools.cache
def _known() -> frozenset[str]:
    """Stop words and the words of the captions that the composite metric was trained on."""
    from caplens.storage import weights  # every metric imports this file, and few need it
    from caplens.text.idf import IdfTable

    return STOP_WORDS.union(IdfTable.load(weights.shipped("caplens-idf")).words)
