"""The language of captions; above all whether it is English, which the tagger and WordNet alone understand."""

from __future__ import annotations

import functools
import re
from collections import Counter
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


_LETTERS = {
    "ja": "\u3040-\u30ff",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "ko": "\uac00-\ud7af\u1100-\u11ff",
    "th": "\u0e00-\u0e7f",
    "lo": "\u0e80-\u0eff",
    "my": "\u1000-\u109f",
    "km": "\u1780-\u17ff",
    "ru": "\u0400-\u04ff",
    "ar": "\u0600-\u06ff",
    "he": "\u0590-\u05ff",
    "el": "\u0370-\u03ff",
    "hi": "\u0900-\u097f",
}
"""Scripts that tell a language, or the most widely written one of theirs; kana are looked for before Han."""
_COMMON = {
    "pt": "o a os as um uma de do da no na em com e que está são ao homem mulher duas dois sobre",
    "es": "el la los las un una de del en con y que está son al hombre mujer dos sobre por",
    "fr": "le la les un une des de du en dans avec et qui est sont au aux homme femme deux sur",
    "de": "der die das ein eine einen einem einer und mit auf im in ist sind mann frau zwei vor den",
    "it": "il lo la i gli le un una di del della in nel con e che è sono uomo donna due su",
    "nl": "de het een van in op met en die is zijn man vrouw twee aan voor bij naar",
}
"""Small words that captions in a language are full of."""


def detect_language(texts: Sequence[str]) -> str:
    """Return the code of the language of most texts, by script and small words; "und" where nothing tells.

    >>> [detect_language([text]) for text in ("a dog on the grass", "um cão na grama", "一只狗", "犬が走る", "xyz qrs")]
    ['en', 'pt', 'zh', 'ja', 'und']
    """
    looked = [text for text in texts[:: max(1, len(texts) // LOOKED_AT)] if _WORD.search(text)]
    votes = Counter(map(_language, looked))
    return votes.most_common(1)[0][0] if votes else "und"


def _language(text: str) -> str:
    for code, letters in _LETTERS.items():
        of_script, letters_at_all = len(re.findall(f"[{letters}]", text)), len(re.findall(r"[^\W\d_]", text))
        if of_script > (0.1 if code == "ja" else 0.4) * letters_at_all:
            return code
    if looks_english(text):
        return "en"
    words = Counter(text.lower().split())
    known = {code: sum(words[word] for word in common.split()) for code, common in _COMMON.items()}
    best = max(known, key=lambda code: known[code])
    return best if known[best] else "und"


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
        "counts as one word: take a tokenizer that finds words (--language auto, or -o tokenizer=zh, ja-mecab, "
        "ko-mecab, or char for characters), or put spaces between the words of captions and references"
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
