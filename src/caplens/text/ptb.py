"""The tokenizer of coco-caption without Java: Penn Treebank tokens, lower-cased, punctuation dropped."""

from collections.abc import Sequence

from caplens.native._kernels import ptb_tokenize, ptb_tokenize_lines


def tokenize(texts: Sequence[str]) -> list[str]:
    """Tokens of each text joined by one space: what pycocoevalcap's PTBTokenizer returns (docs/research/tokenizer.md).

    >>> tokenize(["A man's dog can't swim.", ""])
    ["a man 's dog ca n't swim", '']
    """
    try:
        return ptb_tokenize(list(texts))
    except UnicodeEncodeError:
        return ptb_tokenize([well_formed(text) for text in texts])


def tokenize_in_file_order(texts: Sequence[str]) -> list[str]:
    """Tokens of each text as the jar finds them when the texts are the lines of one file, where a line may change the
    period at the end of the line before it. Scores that must not depend on the order of captions use `tokenize`.

    >>> tokenize_in_file_order(["The new Wii U.", "A dog"]), tokenize_in_file_order(["The new Wii U.", "dogs"])
    (['the new wii u', 'a dog'], ['the new wii u.', 'dogs'])
    """
    if not texts:
        return []
    # A line break inside a text is a blank, so that one text stays one line.
    return ptb_tokenize_lines(well_formed("\n".join(text.replace("\n", " ") for text in texts)))


def well_formed(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which has no utf-8 form."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
