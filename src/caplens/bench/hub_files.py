"""Rating sets as the Hugging Face hub keeps them: parquet files of one split, pictures inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from caplens.bench.base import number_units
from caplens.bench.outside_scores import plain_picture
from caplens.core.captions import CaptionSet, Media
from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.core.types import Floats
from caplens.evaluation.resampling import Ints
from caplens.readers import parquet
from caplens.readers.columns import ColumnChoice
from caplens.readers.rows import Row
from caplens.readers.source import Source


@dataclass(frozen=True)
class RatedCaptions:
    """Captions with one rating each."""

    captions: CaptionSet
    pictures: list[str]
    """Per row the name of its picture."""
    ratings: Floats

    @property
    def units(self) -> tuple[Ints, int]:
        """A number per picture, and how many there are."""
        return number_units(self.pictures)


def split_names(repository: str, split: str) -> tuple[str, str]:
    """Return what the files of a split are called, downloaded into a folder or into the hub's cache.

    >>> split_names("Nebula", "test")
    ('*Nebula/data/test-*.parquet', '*Nebula/snapshots/*/data/test-*.parquet')
    """
    return f"*{repository}/data/{split}-*.parquet", f"*{repository}/snapshots/*/data/{split}-*.parquet"


def read_split(paths: Sequence[Path], *, caption: str, image: str, rating: str, name: str | None) -> RatedCaptions:
    """Read all files of a split; the arguments name its columns, `name` that of the pictures' file names."""
    rows: list[Row] = []
    names: list[str | None] = []
    ratings: list[float] = []
    for path in paths:
        wanted = [rating] if name is None else [rating, name]
        cells = _columns(path, wanted)
        ratings += [float(value) for value in cells[0]]
        with Source(path) as source:
            found = list(parquet.read(source, ColumnChoice(caption=caption, image=image)))
        rows += found
        names += [getattr(row.image, "path", None) for row in found] if name is None else [str(one) for one in cells[1]]
    # A picture without a name is known by what people wrote about it.
    pictures = [given or " | ".join(row.references or [row.id]) for given, row in zip(names, rows, strict=True)]
    images: list[Media | None] = [row.image for row in rows]
    captions = CaptionSet(
        ids=[str(number) for number in range(len(rows))],
        candidates=[row.caption or "" for row in rows],
        references=[row.references or [] for row in rows],
        images=images if any(image is not None for image in images) else None,
        source=paths[0].name,
    )
    return RatedCaptions(captions, [plain_picture(one) for one in pictures], np.array(ratings))


def _columns(path: Path, names: Sequence[str]) -> list[list[Any]]:
    pyarrow = require("pyarrow.parquet", purpose="reading parquet")
    with Source(path) as source:
        source.check_file()
    file = pyarrow.ParquetFile(path)
    lacking = [name for name in names if name not in file.schema_arrow.names]
    if lacking:
        raise InputError(f"no column {lacking[0]!r}, only {', '.join(file.schema_arrow.names)}", where=str(path))
    table = file.read(columns=list(names))
    return [table.column(name).to_pylist() for name in names]
