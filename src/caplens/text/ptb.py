"""The tokeniser of coco-caption without Java: Penn Treebank tokens, lower-cased, punctuation dropped."""

from collections.abc import Sequence

from caplens.native._kernels import ptb_tokenise


def tokenise(texts: Sequence[str]) -> list[str]:
    """Tokens of each text joined by one space, exactly the strings pycocoevalcap's PTBTokenizer returns.

    >>> tokenise(["A man's dog can't swim.", ""])
    ["a man 's dog ca n't swim", '']
    """
    # A lone surrogate has no utf-8 form; Java would read U+FFFD in its place.
    return ptb_tokenise([text if _encodable(text) else text.encode("utf-8", "surrogatepass") for text in texts])


def _encodable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
