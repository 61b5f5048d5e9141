"""A user's own ratings: `caplens bench --ratings ratings.csv`, with the figures and tests of the published sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from caplens.bench.base import RatingSet, Task, number_units
from caplens.bench.data import DataFolders
from caplens.bench.statistics import PairStatistic, rating_statistics
from caplens.core.captions import CaptionSet, media_name
from caplens.core.errors import InputError
from caplens.readers import read
from caplens.readers.columns import CAPTION_NAMES, plain_name
from caplens.readers.rows import shortened
from caplens.readers.source import Source
from caplens.readers.table import Table, refuse_repeated

FIRST = frozenset({"1", "a", "first"})
SECOND = frozenset({"2", "b", "second"})
NEITHER = frozenset({"0", "tie", "equal", ""})


class OwnRatings(RatingSet):
    """Ratings (columns id, rating) of one file of captions, or preferences (id, preference) between two files."""

    name: ClassVar[str] = "own"
    title: ClassVar[str] = "Own ratings"
    what: ClassVar[str] = "a user's ratings or preferences"
    protocol: ClassVar[str] = (
        "ratings: Kendall τb and τc, Spearman and Pearson over all rows (an id may be rated several times); "
        "preferences: share of pairs whose preferred caption scores higher, ties count half; captions of one image are "
        "resampled together"
    )
    license: ClassVar[str] = "the user's own"
    home: ClassVar[str] = "a csv with columns id, rating or id, preference"
    paper: ClassVar[str] = ""
    files: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def __init__(
        self,
        ratings: Path,
        captions: Sequence[Path] = (),
        references: Path | None = None,
        images: Path | None = None,
        videos: Path | None = None,
    ) -> None:
        self.ratings, self.captions = ratings, list(captions)
        self.references, self.images, self.videos = references, images, videos

    def load(self, data: DataFolders) -> Task:
        kind, judgments = _judgments(self.ratings)
        return self._rated(judgments) if kind == "rating" else self._preferred(judgments)

    def _read(self, path: Path) -> CaptionSet:
        return read(path, self.references, self.images, self.videos)

    def _rated(self, judgments: list[_Judgment]) -> Task:
        if len(self.captions) > 1:
            raise InputError(
                "ratings judge one file of captions", remedy="give one --captions, or a column 'preference'"
            )
        if not self.captions and not _has_captions(self.ratings):
            raise InputError(
                "there are ratings but no captions in it",
                where=str(self.ratings),
                remedy="give the captions they are about: --captions FILE, or a column 'caption'",
            )
        captions = self._read(self.captions[0] if self.captions else self.ratings)
        row_of = {name: row for row, name in enumerate(captions.ids)}
        rows, ratings = [], []
        for judgment in judgments:
            if judgment.id not in row_of:
                raise InputError("no caption has this id", where=judgment.where)
            ratings.append(judgment.number())
            rows.append(row_of[judgment.id])
        units, count = number_units(_image(captions, row) for row in rows)
        figures = rating_statistics(
            ("tau-c", "tau-b", "spearman", "pearson"), np.array(rows, dtype=np.intp), np.array(ratings), units
        )
        pictures = ([_image(captions, row) for row in range(len(captions))],)
        return Task([captions], count, figures, f"ratings:{len(ratings)}", sources=(self.ratings,), pictures=pictures)

    def _preferred(self, judgments: list[_Judgment]) -> Task:
        if len(self.captions) != 2:
            raise InputError(
                f"a preference is between two files of captions, and {len(self.captions)} were given",
                where=str(self.ratings),
                remedy="give --captions FIRST --captions SECOND; preference is then 1 or 2 (0 for a tie)",
            )
        first, second = (self._read(path) for path in self.captions)
        row_in_first, row_in_second = (
            {name: row for row, name in enumerate(captions.ids)} for captions in (first, second)
        )
        pairs: list[tuple[int, int]] = []
        for judgment in judgments:
            choice = judgment.value.strip().lower()
            if choice in NEITHER:
                continue
            if choice not in FIRST | SECOND:
                raise InputError(
                    f"preference {shortened(judgment.value)}",
                    where=judgment.where,
                    remedy="write 1, 2, or 0 for a tie",
                )
            if judgment.id not in row_in_first or judgment.id not in row_in_second:
                raise InputError("not both files have a caption with this id", where=judgment.where)
            left, right = row_in_first[judgment.id], len(first) + row_in_second[judgment.id]
            pairs.append((left, right) if choice in FIRST else (right, left))
        if not pairs:
            raise InputError("no row prefers one of the two captions", where=str(self.ratings))
        both = _joined(first, second)
        better, worse = np.array(pairs, dtype=np.intp).T
        units, count = number_units(_image(both, min(pair)) for pair in pairs)
        figure = PairStatistic(key="accuracy", headline=True, better=better, worse=worse, units=units)
        pictures = ([_image(captions, row) for captions in (first, second) for row in range(len(captions))],)
        return Task(
            [both], count, [figure], f"pairs:{len(pairs)}|ties:half", sources=(self.ratings,), pictures=pictures
        )


@dataclass(frozen=True)
class _Judgment:
    """One row of a file of ratings."""

    id: str
    value: str
    place: str

    @property
    def where(self) -> str:
        return f"{self.place}, id {shortened(self.id)}"

    def number(self) -> float:
        """The rating; what cannot be ranked is refused."""
        try:
            number = float(self.value)
        except ValueError:
            raise InputError(f"the rating is no number: {shortened(self.value)}", where=self.where) from None
        if not math.isfinite(number):
            raise InputError(
                f"the rating is {self.value.strip()!r:.40}, which cannot be ranked",
                where=self.where,
                remedy="write a number, or drop the row",
            )
        return number


def _judgments(path: Path) -> tuple[str, list[_Judgment]]:
    """What the file holds (rating or preference), and its rows."""
    with Source(path) as source:
        table = Table(source)
        refuse_repeated(table.header, source.name)
        if "id" not in table.header:
            raise InputError("no column 'id'", where=source.name, remedy="start with a header: id,rating")
        kind = next((name for name in ("rating", "preference") if name in table.header), None)
        if kind is None:
            raise InputError("neither a column 'rating' nor 'preference'", where=source.name)
        rows = [_Judgment(cells["id"] or "", cells.get(kind) or "", place) for place, cells in table.rows()]
    if not rows:
        raise InputError("no row", where=source.name)
    return kind, rows


def _has_captions(path: Path) -> bool:
    with Source(path) as source:
        return any(plain_name(name) in CAPTION_NAMES for name in Table(source).header)


def _image(captions: CaptionSet, row: int) -> str:
    """What is resampled: the picture or video where one is known, else the caption's id."""
    for column in (captions.images, captions.videos):
        if column is not None and (media := column[row]) is not None:
            return media_name(media)
    return captions.ids[row]


def _joined(first: CaptionSet, second: CaptionSet) -> CaptionSet:
    """Both files as one set, so that CIDEr's idf is the same for the two captions of a pair."""

    def column(name: str) -> list[object] | None:
        left, right = getattr(first, name), getattr(second, name)
        return None if left is None or right is None else [*left, *right]

    return CaptionSet(
        ids=[f"1 {name}" for name in first.ids] + [f"2 {name}" for name in second.ids],
        candidates=first.candidates + second.candidates,
        references=column("references"),  # type: ignore[arg-type]
        images=column("images"),  # type: ignore[arg-type]
        videos=column("videos"),  # type: ignore[arg-type]
        source=f"{first.source} and {second.source}",
    )
