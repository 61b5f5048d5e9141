"""What a metric may say about one caption: the typed structure of `.details`. docs/guide/details.md has it in prose."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, cast, overload

from caplens.core.errors import InputError, as_caplens_error
from caplens.core.plain_json import ENTRIES_AT_ONCE

Status = Literal["right", "exact", "mentioned", "stem", "synonym", "paraphrase", "partly", "wrong", "missing"]
RIGHT: frozenset[str] = frozenset({"right", "exact", "mentioned"})
PARTLY: frozenset[str] = frozenset({"stem", "synonym", "paraphrase", "partly"})


class _Remarks(TypedDict, total=False):
    status: Status
    score: float | None
    """The metric's own number for this entry."""
    note: str
    """A few words that are shown with the entry."""


class Word(_Remarks, total=False):
    """One word of the caption, as it is written there; without a status it is not judged."""

    text: str
    match: str
    """What the references or the picture have for it."""
    regions: list[int]
    """Places in `regions` of what the word names, the best first."""
    percentile: float
    """The share of words in people's captions that weigh less."""


class Sentence(_Remarks, total=False):
    """One sentence of a caption that has several; `score` is what it would score alone."""

    text: str


class Missing(_Remarks, total=False):
    """Something the caption leaves out."""

    text: str
    regions: list[int]


class Claim(_Remarks, total=False):
    """A part of a scene graph: (object,), (object, attribute) or (subject, relation, object)."""

    text: Sequence[str]
    kind: str


class Contribution(TypedDict, total=False):
    """A part of the score; `share` is what it adds, and may be negative."""

    name: str
    value: float
    share: float


class Region(_Remarks, total=False):
    """A box on the picture, as shares of its width and height: [left, top, right, bottom]."""

    box: Sequence[float]
    label: str


class Details(TypedDict, total=False):
    """Every key is optional; a metric may add keys of its own, which pages show as plain values."""

    note: str
    precision: float | None
    """Are its words right?"""
    recall: float | None
    """Does it say what is there?"""
    overall: float | None
    cosine: float
    """Of picture and caption in the encoder's space."""
    percentiles: dict[str, float]
    """For precision, recall and overall, the share of people's captions that score lower."""
    words: list[Word]
    sentences: list[Sentence]
    """Of captions that have several: which is wrong?"""
    missing: list[Missing]
    tuples: list[Claim]
    categories: dict[str, float | None]
    """A score per kind of content, such as SPICE's; None where there is nothing of the kind."""
    contributions: list[Contribution]
    regions: list[Region]


AnyDetails = Mapping[str, Any]
"""What `.details` holds: `Details`, and perhaps keys that only this metric has."""

_REQUIRED: dict[str, str] = {
    "words": "text",
    "sentences": "text",
    "missing": "text",
    "tuples": "text",
    "contributions": "name",
    "regions": "box",
}


def read_details(entry: AnyDetails) -> Details:
    """One entry of `.details` with its types; an `InputError` names what is not as docs/guide/details.md says.

    >>> details = read_details({"words": [{"text": "a"}, {"text": "cat", "status": "wrong"}], "missing": ["dog"]})
    >>> details["missing"]
    [{'text': 'dog'}]
    """
    details = dict(entry)
    if "missing" in details:  # a bare text says the same
        details["missing"] = [{"text": item} if isinstance(item, str) else item for item in _list(details, "missing")]
    for key, required in _REQUIRED.items():
        for index, item in enumerate(_list(details, key)):
            if not isinstance(item, Mapping) or required not in item:
                raise InputError(f"details have {item!r:.60} where a {required!r} is needed", where=f"{key}[{index}]")
            _check_entry(item, f"{key}[{index}]", len(_list(details, "regions")))
    return cast(Details, details)


def _list(entry: AnyDetails, key: str) -> Sequence[Any]:
    value = entry.get(key, ())
    if not isinstance(value, list | tuple):
        raise InputError(f"details have a {type(value).__name__} where a list is needed", where=key)
    return value


def _check_entry(item: AnyDetails, where: str, regions: int) -> None:
    box = item.get("box")
    if box is not None and (len(box) != 4 or not all(isinstance(side, int | float) for side in box)):
        raise InputError(f"a box is {box!r:.60}", where=where, remedy="give [left, top, right, bottom]")
    for place in item.get("regions", ()):
        if not isinstance(place, int) or not 0 <= place < regions:
            raise InputError(f"points to region {place!r} of {regions}", where=where)


class LazyDetails(Sequence[Details]):
    """Details that are worked out for the captions somebody looks at."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def of(self, row: int) -> Details:
        """The details of one caption."""

    def of_rows(self, rows: Sequence[int]) -> list[Details]:
        """The details of several captions; a subclass may know a quicker way than one by one."""
        return [self.of(row) for row in rows]

    @overload
    def __getitem__(self, row: int) -> Details: ...
    @overload
    def __getitem__(self, row: slice) -> list[Details]: ...
    def __getitem__(self, row: int | slice) -> Details | list[Details]:
        rows = range(len(self))[row]
        if isinstance(rows, int):
            return self._of_or_note(rows)
        try:
            return self.of_rows(rows)
        except Exception:
            return [self._of_or_note(row) for row in rows]

    def _of_or_note(self, row: int) -> Details:
        """The details of one caption; what goes wrong is said in its place and costs no other."""
        try:
            return self.of(row)
        except Exception as error:
            return {"note": f"cannot be explained: {as_caplens_error(error)}"}

    def __iter__(self) -> Iterator[Details]:
        for start in range(0, len(self), ENTRIES_AT_ONCE):
            yield from self[start : start + ENTRIES_AT_ONCE]
