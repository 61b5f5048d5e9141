"""CaptionSet: what is judged, as columns, validated once."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Protocol, TypeVar, runtime_checkable

from caplens.core.errors import CaplensWarning, InputError

T = TypeVar("T")


@runtime_checkable
class BinarySource(Protocol):
    """A picture or video that is not a file of its own, such as a member of a tar archive."""

    @property
    def name(self) -> str: ...

    def open(self) -> BinaryIO: ...


Media = str | os.PathLike[str] | BinarySource
"""Where a picture or a video is: a path, a URL (only fetched when allowed) or something that opens as bytes."""


IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"})
VIDEO_SUFFIXES = frozenset({".mp4", ".mkv", ".webm", ".avi", ".mov", ".m4v", ".mpg", ".mpeg"})


@dataclass(frozen=True)
class CaptionSet:
    """Captions to judge, with what they are judged against; every column has one entry per caption.

    >>> captions = CaptionSet.of({"cat": "a cat sleeps"}, references={"cat": ["a sleeping cat", "cat asleep"]})
    >>> captions.ids, captions.candidates, captions.references
    (['cat'], ['a cat sleeps'], [['a sleeping cat', 'cat asleep']])
    """

    ids: list[str]
    candidates: list[str]
    references: list[list[str]] | None = None
    images: list[Media | None] | None = None
    videos: list[Media | None] | None = None
    source: str = field(default="", compare=False)
    """Where the captions came from, for messages."""
    groups: list[str] | None = None
    """The id of the picture that each caption belongs to, where a picture has several: beams, samples."""

    def __post_init__(self) -> None:
        count = len(self.candidates)
        for name in ("groups", "ids", "references", "images", "videos"):
            column = getattr(self, name)
            if column is not None and len(column) != count:
                raise InputError(
                    f"{len(column)} {name} for {count} candidates",
                    where=self.source,
                    remedy="give one entry per candidate",
                )
        _check_ids(self.ids, self.source)
        for row, text in enumerate(self.candidates):
            if type(text) is not str:
                raise self._wrong_type(row, "the candidate", "a string", text)
        if self.references is not None:
            for row, texts in enumerate(self.references):
                if type(texts) is not list and not isinstance(texts, list | tuple):
                    raise self._wrong_type(row, "references", "a list of strings", texts)
                for text in texts:
                    if type(text) is not str:
                        raise self._wrong_type(row, "a reference", "a string", text)
        for row, group in enumerate(self.groups or ()):
            if type(group) is not str:
                raise self._wrong_type(row, "the group", "a string", group)

    def _wrong_type(self, row: int, what: str, expected: str, value: object) -> InputError:
        return InputError(
            f"{what} must be {expected}, not {type(value).__name__} ({value!r:.60})", where=self.where(row)
        )

    def __len__(self) -> int:
        return len(self.candidates)

    def where(self, row: int) -> str:
        """The place of a row, as messages name it."""
        return f"{self.source + ', ' if self.source else ''}row {row + 1}, id {self.ids[row]!r}"

    def take(self, rows: Iterable[int]) -> CaptionSet:
        """The same set with only these rows, in this order."""
        rows = list(rows)

        def pick(column: list[T] | None) -> list[T] | None:
            return None if column is None else [column[row] for row in rows]

        ids = [self.ids[row] for row in rows]
        if len(set(ids)) != len(ids):  # a resample repeats rows
            ids = [f"{name}#{position}" for position, name in enumerate(ids)]
        return CaptionSet(
            ids,
            [self.candidates[row] for row in rows],
            pick(self.references),
            pick(self.images),
            pick(self.videos),
            self.source,
            pick(self.groups),
        )

    def named(self, ids: list[str]) -> CaptionSet:
        """The same captions under other ids, one per picture."""
        return replace(self, ids=ids, groups=None)

    @classmethod
    def of(
        cls,
        candidates: Sequence[str] | Mapping[Any, str],
        references: Sequence[Sequence[str]] | Mapping[Any, Sequence[str]] | None = None,
        images: Sequence[Media | None] | Mapping[Any, Media | None] | None = None,
        videos: Sequence[Media | None] | Mapping[Any, Media | None] | None = None,
        ids: Sequence[object] | None = None,
        source: str = "",
        groups: Sequence[object] | Mapping[Any, object] | None = None,
    ) -> CaptionSet:
        """Build a set from lists (one entry per caption) or from mappings (id to entry).

        With `groups`, the ids of the pictures, a picture may have several captions: mappings of references, images and
        videos then go by the picture, and captions without ids get theirs from it.

        >>> captions = CaptionSet.of(["a cat", "cats"], {"cat": ["a cat asleep"]}, groups=["cat", "cat"])
        >>> captions.ids, captions.references
        (['cat#0', 'cat#1'], [['a cat asleep'], ['a cat asleep']])
        """
        if isinstance(candidates, str):
            raise InputError("candidates is one string", where=source, remedy="put it into a list: [caption]")
        if isinstance(candidates, Mapping):
            if ids is not None:
                raise InputError("ids were given twice", remedy="candidates as a mapping already has them; drop ids=")
            keys: list[object] = list(candidates)
            texts = list(candidates.values())
        else:
            texts = list(candidates)
            keys = list(range(len(texts))) if ids is None else list(ids)
        pictures = keys
        if isinstance(groups, str):
            raise InputError("groups is one string", where=source, remedy="put it into a list")
        if groups is not None:
            pictures = list(align("groups", keys, groups, source, True) if isinstance(groups, Mapping) else groups)
            if ids is None and not isinstance(candidates, Mapping):
                keys = _number_in_groups(pictures)

        def column(name: str, values: Sequence[T] | Mapping[Any, T] | None, required: bool) -> list[T | None] | None:
            if values is None:
                return None
            if not isinstance(values, Mapping):
                if isinstance(values, str):
                    raise InputError(f"{name} is one string", where=source, remedy="put it into a list")
                return list(values)
            return align(name, pictures, values, source, required)

        reference_column = column("references", references, required=True)
        return cls(
            ids=[str(key) for key in keys],
            candidates=texts,
            references=None
            if reference_column is None
            else [list(texts) if isinstance(texts, tuple) else texts for texts in reference_column],  # type: ignore[misc]
            images=column("images", images, required=False),
            videos=column("videos", videos, required=False),
            source=source,
            groups=None if groups is None else [str(group) for group in pictures],
        )


def rows_by_picture(captions: CaptionSet) -> dict[str, list[int]]:
    """Return the rows of every picture's captions; without groups, every caption has a picture of its own."""
    rows: dict[str, list[int]] = {}
    for row, key in enumerate(captions.groups or captions.ids):
        rows.setdefault(key, []).append(row)
    return rows


def stretches(captions: CaptionSet, most: int) -> Iterator[tuple[range, list[str]]]:
    """Cut the captions into rows that follow each other and have at most so many texts, references included.

    A text that stands there again and again, as those of a picture with many captions do, counts once.

    >>> some = CaptionSet.of(["a", "b", "c"], [["d"], ["d"], ["e"]])
    >>> list(stretches(some, 3))
    [(range(0, 2), ['a', 'd', 'b']), (range(2, 3), ['c', 'e'])]
    """
    start, texts = 0, dict[str, None]()
    for row, candidate in enumerate(captions.candidates):
        own = dict.fromkeys([candidate, *(captions.references[row] if captions.references else ())])
        if row > start and len(texts) + sum(text not in texts for text in own) > most:
            yield range(start, row), list(texts)
            start, texts = row, {}
        texts |= own
    if len(captions):
        yield range(start, len(captions)), list(texts)


def align(
    name: str, ids: Sequence[object], values: Mapping[Any, T], where: str, required: bool, *, spare: bool = False
) -> list[T | None]:
    """Order the values of a mapping by id; ids compare as text, so that 7 and "7" are the same picture.

    Values of other ids are left out with a note; without one where they are to be expected (`spare`).
    """
    by_text = {str(key): value for key, value in values.items()}
    keys = [str(key) for key in ids]
    if required:
        missing = [key for key in keys if key not in by_text]
        if missing:
            raise InputError(f"no {name} for {_some(missing)}", where=where, remedy=f"add {name} or drop the captions")
        known = set(keys)
        unknown = [key for key in by_text if key not in known]
        if unknown and not spare:
            warnings.warn(
                f"{where + ': ' if where else ''}{name} for {_some(unknown)} are left out: no caption has that id",
                CaplensWarning,
                stacklevel=3,
            )
    return [by_text.get(key) for key in keys]


def _number_in_groups(groups: Iterable[object]) -> list[object]:
    """Ids for captions that are known by their picture only.

    >>> _number_in_groups(["cat", "dog", "cat"])
    ['cat#0', 'dog#0', 'cat#1']
    """
    captions_of: Counter[str] = Counter()
    ids: list[object] = []
    for group in map(str, groups):
        ids.append(f"{group}#{captions_of[group]}")
        captions_of[group] += 1
    return ids


def _check_ids(ids: Sequence[str], source: str) -> None:
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if name in first:
            raise InputError(
                f"id {name!r} stands in row {first[name] + 1} and again in row {row + 1}",
                where=source,
                remedy="one caption per id; where a picture has several, say so with groups",
            )
        first[name] = row


def _some(names: Sequence[str], most: int = 3) -> str:
    """The first few names for a message.

    >>> _some(["a", "b", "c", "d"])
    "ids 'a', 'b', 'c' and 1 more"
    """
    shown = ", ".join(repr(name) for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ("id " if len(names) == 1 else "ids ") + shown + more


def media_name(media: Media) -> str:
    """What to call a picture or video in a message or a report."""
    return os.fspath(media) if isinstance(media, str | os.PathLike) else media.name
