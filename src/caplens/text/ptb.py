"""The tokenizer of coco-caption without Java: Penn Treebank tokens, lower-cased, punctuation dropped."""

from collections.abc import Sequence

from caplens.native._kernels import ptb_tokenize


def tokenize(texts: Sequence[str]) -> list[str]:
    """Tokens of each text joined by one space: what pycocoevalcap's PTBTokenizer returns (docs/research/tokenizer.md).

    >>> tokenize(["A man's dog can't swim.", ""])
    ["a man 's dog ca n't swim", '']
    """
    try:
        return ptb_tokenize(list(texts))
    except UnicodeEncodeError:
        return ptb_tokenize([well_formed(text) for text in texts])


def well_formed(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which has no utf-8 form."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
