"""A user's own ratings: `caplens bench --ratings ratings.csv`, with the figures and tests of the published sets."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from caplens.bench.agreement import Correlation
from caplens.bench.base import RatingSet, Task, number_units
from caplens.bench.data import DataFolders, open_text
from caplens.bench.statistics import AgreementStatistic, PairStatistic, RatingStatistic
from caplens.core.captions import CaptionSet, media_name
from caplens.core.errors import InputError
from caplens.readers import read_captions

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
        rows, columns = _rows(self.ratings)
        if "rating" in columns:
            return self._rated(rows)
        if "preference" in columns:
            return self._preferred(rows)
        raise InputError("neither a column 'rating' nor 'preference'", where=str(self.ratings))

    def _read(self, path: Path) -> CaptionSet:
        return read_captions(path, self.references, self.images, self.videos)

    def _rated(self, rows: list[dict[str, str]]) -> Task:
        if len(self.captions) > 1:
            raise InputError(
                "ratings judge one file of captions", remedy="give one --captions, or a column 'preference'"
            )
        captions = self._read(self.captions[0] if self.captions else self.ratings)
        places = {name: place for place, name in enumerate(captions.ids)}
        chosen, values = [], []
        for number, row in enumerate(rows, start=1):
            where = f"{self.ratings}, row {number}, id {row['id']!r}"
            if row["id"] not in places:
                raise InputError("no caption has this id", where=where)
            try:
                values.append(float(row["rating"]))
            except ValueError:
                raise InputError(f"the rating is no number: {row['rating']!r}", where=where) from None
            chosen.append(places[row["id"]])
        units, count = number_units(_image(captions, place) for place in chosen)
        kinds: tuple[Correlation, ...] = ("tau-c", "tau-b", "spearman", "pearson")
        figures: list[AgreementStatistic] = [
            RatingStatistic(
                key=kind,
                kind=kind,
                headline=kind == "tau-c",
                rows=np.array(chosen, dtype=np.intp),
                ratings=np.array(values),
                units=units,
            )
            for kind in kinds
        ]
        return Task([captions], count, figures, f"ratings:{len(values)}", sources=(self.ratings,))

    def _preferred(self, rows: list[dict[str, str]]) -> Task:
        if len(self.captions) != 2:
            raise InputError(
                f"a preference is between two files of captions, and {len(self.captions)} were given",
                where=str(self.ratings),
                remedy="give --captions FIRST --captions SECOND; preference is then 1 or 2 (0 for a tie)",
            )
        first, second = (self._read(path) for path in self.captions)
        places = [{name: place for place, name in enumerate(captions.ids)} for captions in (first, second)]
        pairs: list[tuple[int, int]] = []
        for number, row in enumerate(rows, start=1):
            where = f"{self.ratings}, row {number}, id {row['id']!r}"
            choice = row["preference"].strip().lower()
            if choice in NEITHER:
                continue
            if choice not in FIRST | SECOND:
                raise InputError(f"preference {row['preference']!r}", where=where, remedy="write 1, 2, or 0 for a tie")
            if any(row["id"] not in known for known in places):
                raise InputError("not both files have a caption with this id", where=where)
            left, right = places[0][row["id"]], len(first) + places[1][row["id"]]
            pairs.append((left, right) if choice in FIRST else (right, left))
        if not pairs:
            raise InputError("no row prefers one of the two captions", where=str(self.ratings))
        both = _joined(first, second)
        better, worse = np.array(pairs, dtype=np.intp).T
        units, count = number_units(_image(both, min(pair)) for pair in pairs)
        figure = PairStatistic(key="accuracy", headline=True, better=better, worse=worse, units=units)
        return Task([both], count, [figure], f"pairs:{len(pairs)}|ties:half", sources=(self.ratings,))


def _rows(path: Path) -> tuple[list[dict[str, str]], list[str]]:
    with open_text(path) as handle:
        reader = csv.DictReader(handle, delimiter="\t" if ".tsv" in path.suffixes else ",")
        columns = list(reader.fieldnames or [])
        if "id" not in columns:
            raise InputError("no column 'id'", where=str(path), remedy="start with a header: id,rating")
        rows = [{key: value or "" for key, value in row.items() if key} for row in reader]
    if not rows:
        raise InputError("no row", where=str(path))
    return rows, columns


def _image(captions: CaptionSet, place: int) -> str:
    """What is resampled: the picture or video where one is known, else the caption's id."""
    for column in (captions.images, captions.videos):
        if column is not None and (media := column[place]) is not None:
            return media_name(media)
    return captions.ids[place]


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
