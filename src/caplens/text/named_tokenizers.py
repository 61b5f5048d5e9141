"""Tokenizers for other languages, by name: those of sacrebleu, on lower-cased text as coco-caption's own has it."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass

from caplens.core.optional import require

NAMES = {
    "13a": "13a:Tokenizer13a",
    "intl": "intl:TokenizerV14International",
    "char": "char:TokenizerChar",
    "zh": "zh:TokenizerZh",
    "ja-mecab": "ja_mecab:TokenizerJaMecab",
    "ko-mecab": "ko_mecab:TokenizerKoMecab",
}
"""Where sacrebleu has them."""
SEGMENTING = frozenset(NAMES) - {"13a", "intl"}
"""Those that find words where there are no spaces between them."""


@dataclass(frozen=True)
class NamedTokenizer:
    """Words of a text; only the name is kept, so it pickles and compares as what it is.

    >>> NamedTokenizer("char").name
    'char'
    """

    name: str

    def __call__(self, text: str) -> list[str]:
        return _load(self.name)(text.lower()).split()

    @property
    def label(self) -> str:
        """Return name and version, for signatures."""
        _load(self.name)
        return f"{self.name}@sacrebleu-{importlib.metadata.version('sacrebleu')}"

    @property
    def identity(self) -> str:
        return self.label


@functools.cache
def _load(name: str) -> Callable[[str], str]:
    made: Callable[[str], str] = require(
        f"sacrebleu.tokenizers.tokenizer_{NAMES[name]}", purpose=f"the tokenizer {name}"
    )()
    return made
