"""Tokenizers for other languages, by name: sacrebleu's, jieba and fugashi, on lower-cased text as ptb has it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from caplens.core.optional import require

_SACREBLEU = {
    "13a": "13a:Tokenizer13a",
    "intl": "intl:TokenizerV14International",
    "char": "char:TokenizerChar",
    "zh": "zh:TokenizerZh",
    "ja-mecab": "ja_mecab:TokenizerJaMecab",
    "ko-mecab": "ko_mecab:TokenizerKoMecab",
}
"""Where sacrebleu has them."""
NAMES = (*_SACREBLEU, "jieba", "fugashi")
SEGMENTING = frozenset(NAMES) - {"13a", "intl"}
"""Those that find words where there are no spaces between them."""
_SPACED = "ar cs da de el en es fi fr he hi hu it nl no pl pt ro ru sv tr uk vi".split()  # noqa: SIM905
FOR_LANGUAGE = {
    **dict.fromkeys(_SPACED, "ptb"),
    "zh": "zh",
    "ja": "ja-mecab",
    "ko": "ko-mecab",
    **dict.fromkeys(("th", "lo", "my", "km"), "char"),
}
"""What to take for a language; ptb does well where there are spaces between words."""

Words = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class NamedTokenizer:
    """Words of a text; only the name is kept, so it pickles and compares as what it is.

    >>> NamedTokenizer("char").name
    'char'
    """

    name: str

    def __call__(self, text: str) -> list[str]:
        return [word for word in _load(self.name)(text.lower()) if word.strip()]

    @property
    def label(self) -> str:
        """Return name and version, for signatures."""
        _load(self.name)
        packages = {"jieba": ("jieba",), "fugashi": ("fugashi", "unidic-lite")}.get(self.name, ("sacrebleu",))
        return f"{self.name}@{'+'.join(f'{package}-{version(package)}' for package in packages)}"

    @property
    def identity(self) -> str:
        return self.label


def tokenizer_for(language: str) -> str | NamedTokenizer:
    """Return what finds the words of a language.

    >>> tokenizer_for("pt"), tokenizer_for("zh")
    ('ptb', NamedTokenizer(name='zh'))
    """
    name = FOR_LANGUAGE.get(language, "ptb")  # most languages have spaces, and a note says where there are none
    return name if name == "ptb" else NamedTokenizer(name)


@functools.cache
def _load(name: str) -> Words:
    purpose = f"the tokenizer {name}"
    if name == "jieba":
        return _jieba(purpose)
    if name == "fugashi":
        tagger: Any = require("fugashi:Tagger", "unidic_lite", purpose=purpose)("-Owakati")
        return lambda text: tagger.parse(text).split()
    made: Callable[[str], str] = require(f"sacrebleu.tokenizers.tokenizer_{_SACREBLEU[name]}", purpose=purpose)()
    return lambda text: made(text).split()


def _jieba(purpose: str) -> Words:
    """Its dictionary read by itself: jieba would keep a copy in a folder that other users can write to."""
    tokenizer = require("jieba:Tokenizer", purpose=purpose)()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    words: Words = tokenizer.lcut
    return words
