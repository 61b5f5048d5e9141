"""CLIP's byte-pair tokenizer: texts to ids, from the published list of merges."""

from __future__ import annotations

import functools
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from caplens.core.optional import require
from caplens.storage import weights

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PURPOSE = "CLIP's tokenizer"
START, END = "<|startoftext|>", "<|endoftext|>"
MERGES = 48_894
"""How many of the published merges CLIP uses: 49,152 entries less 256 bytes and 2 marks; the first line is a header."""
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


class ClipTokenizer:
    """Texts to token ids with start and end token."""

    def __init__(self, vocabulary: dict[str, int], merges: list[tuple[str, str]], context_length: int = 77) -> None:
        tokenizers = require("tokenizers", "ftfy", purpose=PURPOSE)
        pre_tokenizers = require("tokenizers.pre_tokenizers", purpose=PURPOSE)
        model = require("tokenizers.models:BPE", purpose=PURPOSE)(
            vocab=vocabulary, merges=merges, end_of_word_suffix="</w>", fuse_unk=False
        )
        self._tokenizer: Tokenizer = tokenizers.Tokenizer(model)
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(tokenizers.Regex(_WORDS), behavior="removed", invert=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        self.start, self.end = vocabulary[START], vocabulary[END]
        self.context_length = context_length
        content = json.dumps([sorted(vocabulary.items()), merges, context_length])
        self.fingerprint = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        """What its ids depend on."""

    @classmethod
    def published(cls, context_length: int = 77) -> ClipTokenizer:
        """The tokenizer of all CLIP models, from the vocabulary that `caplens weights` fetches."""
        return cls(*published_vocabulary(), context_length)

    @classmethod
    def from_folder(cls, folder: Path, context_length: int = 77) -> ClipTokenizer:
        """The tokenizer of a model folder in the hub's layout."""
        if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
            lines = (folder / "merges.txt").read_text("utf-8").splitlines()
            return cls(vocabulary, _pairs(line for line in lines if not line.startswith("#version")), context_length)
        if (folder / "tokenizer.json").is_file():
            model = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]
            lines = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
            return cls(model["vocab"], _pairs(lines), context_length)
        return cls.published(context_length)

    def __call__(self, text: str) -> tuple[list[int], bool]:
        """The ids, and whether the text was cut; the end token is kept, as `truncate=True` does in CLIP."""
        ids = [self.start, *self._tokenizer.encode(clean(text), add_special_tokens=False).ids, self.end]
        if len(ids) <= self.context_length:
            return ids, False
        return [*ids[: self.context_length - 1], self.end], True


def clean(text: str) -> str:
    """Mended characters, no entities, single spaces, lower case.

    >>> clean(" A  caf\\u00c3\\u00a9 &amp;amp; more\\n")
    'a café & more'
    """
    fix_text = require("ftfy:fix_text", purpose=PURPOSE)
    text = text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate has no bytes
    text = html.unescape(html.unescape(fix_text(text))).strip()
    return re.sub(r"\s+", " ", text).strip().lower()


@functools.cache
def published_vocabulary() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges as the published list gives them: bytes, bytes at a word's end, merges, two marks."""
    with gzip.open(weights.require("clip-vocabulary", purpose=PURPOSE), "rt", encoding="utf-8") as stream:
        merges = _pairs(stream.read().split("\n")[1 : MERGES + 1])
    letters = list(byte_letters().values())
    entries = [*letters, *(letter + "</w>" for letter in letters), *("".join(pair) for pair in merges), START, END]
    return {entry: number for number, entry in enumerate(entries)}, merges


def byte_letters() -> dict[int, str]:
    """A printable letter for each byte, in the order that numbers the vocabulary: printable bytes first."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    letters = {byte: chr(byte) for byte in printable}
    others = [byte for byte in range(256) if byte not in letters]
    letters.update({byte: chr(256 + number) for number, byte in enumerate(others)})
    return letters


def _pairs(lines: Iterable[str]) -> list[tuple[str, str]]:
    return [(first, second) for first, second in (line.split() for line in lines if line.strip())]
