"""Signatures: everything that changes a number, in one line; two equal signatures mean two comparable numbers."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from urllib.parse import unquote

VERSION_KEY = "caplens"

KEYS: Mapping[str, str] = {
    "against": "what a caption's sentence vector is compared with: nearest, centroid or both",
    "backend": "the program that parsed, where it is not caplens",
    "baseline": "the file of scores that unrelated sentences reach, which was subtracted, or no",
    "beta": "how much more recall counts than precision",
    "captions": "which of a picture's several captions count: mean, first, best-by-METRIC or oracle",
    "data": "sums of data files that are not those the metric was published with",
    "device": "the class of device that computed, where numbers are not float32",
    "decoder": "name and version of what decoded videos",
    "dtype": "the type of the encoder's numbers, where it is not float32",
    "encoder": "the encoder and its weights",
    "formula": "which of several published formulas",
    "frames": "which frames of a video were looked at",
    "idf": "where the weights of words come from, with the sum of the table or the number of texts",
    "images": "over how many images idf was counted",
    "k_r": "weight of the repetition penalty",
    "language": "of the words, stems and synonyms",
    "layer": "of the language model, whose states were compared",
    "media": "what was looked at, where it was not pictures",
    "modules": "METEOR's ways to match words that ran",
    "pairs": "of picture and reference that distributions were fitted to",
    "parser": "of the scene graphs",
    "part": "precision, recall or f",
    "picture": "whether pictures were looked at: where-given or no",
    "pictures": "how many captions were judged with their picture",
    "prompt": "what stood before every caption",
    "reference-length": "which reference's length the brevity penalty takes",
    "references": "how many references the captions have",
    "regions": "where the regions of a picture come from",
    "ridge": "added to the diagonal of covariances",
    "rules": "sum of the parser and of the rules that make scene graphs",
    "scaled": "how features were scaled: min-max or no",
    "sentences": "how sentences of texts too long to be read at once were joined: mean, vectors, tokens or claims",
    "sigma": "of the Gaussian on the difference in length",
    "stop-words": "the list of words that were left out",
    "tokenizer": "how text became words",
    "unit-vectors": "whether word vectors were scaled to length one",
    "vectors": "of words",
    "version": "of the program that the metric follows",
    "w": "the factor of the cosine",
    "weights": "of the metric's own network, with their sum",
}
"""Every key that caplens's own metrics use. A plug-in may use the names of its options and those it declares
(`Metric.signature_keys`), and any name behind its own and a point: ``vowels.letters``."""

_KEY = re.compile(r"[a-z][a-z0-9_-]*")
_UNSAFE = re.compile(r"[%|\x00-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True)
class Signature:
    """A metric's name, the parts that change its number in their order, and the version of caplens.

    >>> signature = Signature("cider-d", (("tokenizer", "ptb"), ("references", "5")), version="0.2.0")
    >>> str(signature)
    'cider-d|tokenizer:ptb|references:5|caplens:0.2.0'
    >>> Signature.parse(str(signature)) == signature
    True
    """

    name: str
    parts: tuple[tuple[str, str], ...]
    version: str

    def __str__(self) -> str:
        parts = (*self.parts, (VERSION_KEY, self.version))
        return "|".join([_escape(self.name), *(f"{key}:{_escape(value)}" for key, value in parts)])

    def __getitem__(self, key: str) -> str:
        """Return the value of a key; a metric inside another is asked with a point: ``spice.parser``."""
        return dict(self.parts)[key]

    @classmethod
    def of(cls, name: str, parts: Iterable[tuple[str, str]], declared: Iterable[str] = ()) -> Signature:
        """Return the signature of a number made now; keys that nobody declared, or that stand twice, are refused."""
        parts = tuple(parts)
        known = {*KEYS, *declared}
        seen: set[str] = set()
        for key, _ in parts:
            namespace, _, own = key.rpartition(".")
            if not namespace and own not in known:
                raise ValueError(
                    f"{name}: the signature key {key!r} is neither an option nor in caplens.core.signature.KEYS; "
                    "declare it in signature_keys, with what it means"
                )
            if not _KEY.fullmatch(own) or key == VERSION_KEY or key in seen:
                raise ValueError(f"{name}: {key!r} cannot be a key of its signature, or stands there twice")
            seen.add(key)
        return cls(name, parts, caplens_version())

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read what `str` wrote; anything else is a ValueError."""
        name, *parts = text.split("|")
        pairs = [tuple(map(unquote, part.split(":", 1))) for part in parts]
        if not name or not pairs or any(len(pair) != 2 for pair in pairs) or pairs[-1][0] != VERSION_KEY:
            raise ValueError(f"not a signature: {text!r}")
        return cls(unquote(name), tuple((key, value) for key, value in pairs[:-1]), pairs[-1][1])


def merge_signatures(signatures: Sequence[tuple[str, int]]) -> str:
    """Return the signature of a score over several sets, each with its own and its number of captions.

    What was found in the data adds up; whatever else differs is a ValueError.

    >>> merge_signatures([("rouge-l|references:5|caplens:1", 10), ("rouge-l|references:3-4|caplens:1", 10)])
    'rouge-l|references:3-5|caplens:1'
    >>> merge_signatures([("clip-s|w:2.5|caplens:1", 10), ("clip-s|w:2.5|sentences:mean|caplens:1", 10)])
    'clip-s|w:2.5|sentences:mean|caplens:1'
    """
    parsed = [(Signature.parse(text), captions) for text, captions in signatures]
    first = max((signature for signature, _ in parsed), key=lambda signature: len(signature.parts))
    parts = []
    for key, own in first.parts:
        values = [(dict(signature.parts).get(key, ""), captions) for signature, captions in parsed]
        if any(value != own for value, _ in values):
            if key not in _ADD_UP:
                raise ValueError(f"{first.name}: signatures differ in {key}: {sorted({value for value, _ in values})}")
            own = _ADD_UP[key](values)
        parts.append((key, own))
    return str(Signature(first.name, tuple(parts), first.version))


def _widest(values: Sequence[tuple[str, int]]) -> str:
    """The range of several numbers or ranges, such as 3-5."""
    numbers = [int(number) for value, _ in values for number in value.split("-")]
    return f"{min(numbers)}-{max(numbers)}"


def _counted(values: Sequence[tuple[str, int]]) -> str:
    return str(sum(captions if value == "all" else int(value) for value, captions in values))


def _any(values: Sequence[tuple[str, int]]) -> str:
    """What some sets have; sets of short texts alone have nothing."""
    return next(value for value, _ in values if value)


_ADD_UP = {"references": _widest, "pictures": _counted, "sentences": _any}


@functools.cache
def caplens_version() -> str:
    """Return the installed version; reading it from the metadata takes a third of a millisecond."""
    return installed_version("caplens")


def _escape(text: str) -> str:
    """Bars end a part and line breaks a signature, so in a value they are written as in an address."""
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)
