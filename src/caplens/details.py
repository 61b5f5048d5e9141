"""What a metric may say about one caption: the typed structure of `.details`. docs/details.md has it in prose."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, cast, overload

from caplens.errors import InputError

Status = Literal["right", "exact", "mentioned", "stem", "synonym", "paraphrase", "partly", "wrong", "missing"]
RIGHT: frozenset[str] = frozenset({"right", "exact", "mentioned"})
PARTLY: frozenset[str] = frozenset({"stem", "synonym", "paraphrase", "partly"})
WRONG_BELOW, DOUBTED_BELOW = 0.1, 0.25
"""Where a word stands among people's words from which readers are told that it is wrong, or doubted."""


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
    standing: float
    """The share of words in people's captions that weigh less."""


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
    standing: dict[str, float]
    """For precision, recall and overall, the share of people's captions that score lower."""
    words: list[Word]
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
    "missing": "text",
    "tuples": "text",
    "contributions": "name",
    "regions": "box",
}


def read_details(entry: AnyDetails) -> Details:
    """One entry of `.details` with its types; an `InputError` names what has another shape than docs/details.md says.

    >>> details = read_details({"words": [{"text": "a"}, {"text": "cat", "status": "wrong"}], "missing": ["dog"]})
    >>> wrong_words(details), left_out(details), details["missing"]
    (['cat'], ['dog'], [{'text': 'dog'}])
    """
    made = dict(entry)
    if "missing" in made:  # a bare text says the same
        made["missing"] = [{"text": item} if isinstance(item, str) else item for item in _list(made, "missing")]
    for key, required in _REQUIRED.items():
        for place, item in enumerate(_list(made, key)):
            if not isinstance(item, Mapping) or required not in item:
                raise InputError(f"details have {item!r:.60} where a {required!r} is needed", where=f"{key}[{place}]")
            _check_entry(item, f"{key}[{place}]", len(_list(made, "regions")))
    return cast(Details, made)


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


def reconcile(details: Details) -> Details:
    """For readers: what a metric that looks at pictures says, weighed against what else is known.

    Words are judged by where they stand among people's words, if that is known, not by the metric's own limit. Where a
    word names a region and the metric doubts one of the two, neither is the whole truth. Where no word fits the
    picture, none mentions a region, however much weight the metric gives it. Where no word was judged, nobody can say
    whether they are right, whatever number the metric has.

    >>> word: Word = {"text": "dog", "status": "wrong", "regions": [0]}
    >>> reconcile({"words": [word], "regions": [{"box": [0, 0, 1, 1]}]})["words"][0]["status"]
    'partly'
    """
    regions = details.get("regions", [])
    if not regions:
        return details
    if not any("status" in word for word in details.get("words", [])):
        unsaid: Details = {"precision": None, "overall": None}
        standing = {key: share for key, share in details.get("standing", {}).items() if key not in unsaid}
        details = {**details, **unsaid, "standing": standing}
    words: list[Word] = []
    named: set[int] = set()
    for word in map(_by_standing, details.get("words", [])):
        named.update(word.get("regions", ()))
        if word.get("status") == "wrong" and word.get("regions"):
            word = {**word, "status": "partly", "note": "doubted, yet such a thing was found"}
        words.append(word)
    seen: list[Region] = [
        {**region, "status": "partly", "note": "named, with little weight"}
        if place in named and region.get("status") == "missing"
        else region
        for place, region in enumerate(regions)
    ]
    made: Details = {**details, "words": words, "regions": seen}
    if _all_wrong(words):
        made |= _nothing_mentioned(seen, details.get("missing", []))
    made.pop("cosine", None)  # it is in the scores, and says nothing by itself
    return made


def _all_wrong(words: list[Word]) -> bool:
    judged = [word["status"] for word in words if "status" in word]
    return bool(judged) and set(judged) == {"wrong"}


def _nothing_mentioned(regions: list[Region], missing: list[Missing]) -> Details:
    """Regions and what is left out, where no word of the caption fits."""
    seen: list[Region] = []
    left_out: dict[str, Missing] = {}
    for place, region in enumerate(regions):
        if region.get("status") == "mentioned":
            region = {**region, "status": "missing", "note": "no word of the caption fits"}
            if "label" in region:
                left_out.setdefault(region["label"], {"text": region["label"], "regions": []})["regions"].append(place)
        seen.append(region)
    return {"regions": seen, "missing": [*missing, *left_out.values()]}


def _by_standing(word: Word) -> Word:
    if "standing" not in word:
        return word
    lower = f"{100 * word['standing']:.0f} % of people's words weigh less"
    if word["standing"] < WRONG_BELOW:
        return {**word, "status": "wrong", "note": lower}
    if word["standing"] < DOUBTED_BELOW:
        return {**word, "status": "partly", "note": f"doubted: {lower}"}
    return {**word, "status": "right"}


def wrong_words(details: Details) -> list[str]:
    """The words of the caption that are not supported, in its order."""
    return [word["text"] for word in details.get("words", []) if word.get("status") == "wrong"]


def left_out(details: Details) -> list[str]:
    """What the caption leaves out, the most important first."""
    return [item["text"] for item in details.get("missing", [])]


class LazyDetails(Sequence[Details]):
    """Details that are worked out for the captions somebody looks at."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def of(self, row: int) -> Details:
        """The details of one caption."""

    @overload
    def __getitem__(self, row: int) -> Details: ...
    @overload
    def __getitem__(self, row: slice) -> list[Details]: ...
    def __getitem__(self, row: int | slice) -> Details | list[Details]:
        rows = range(len(self))[row]
        return self.of(rows) if isinstance(rows, int) else [self.of(place) for place in rows]
