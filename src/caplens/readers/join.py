"""Rows to a CaptionSet: captions joined with references from a second file and pictures from a folder, by id."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from caplens.core.captions import IMAGE_SUFFIXES, VIDEO_SUFFIXES, CaptionSet, Media, align, media_name
from caplens.core.errors import InputError
from caplens.readers.columns import ColumnChoice
from caplens.readers.folder import MediaFolder
from caplens.readers.layouts import read_rows
from caplens.readers.limits import ReadLimits
from caplens.readers.rows import Row


def read(
    source: Any,
    references: Any = None,
    images: str | os.PathLike[str] | None = None,
    videos: str | os.PathLike[str] | None = None,
    *,
    caption_column: str | None = None,
    image_column: str | None = None,
    id_column: str | None = None,
    several: bool = False,
    limits: ReadLimits | None = None,
    pipes: bool = False,
    spare_references: bool = False,
) -> CaptionSet:
    """Read captions to judge.

    Args:
        source: a file or folder in any layout (COCO results, json, jsonl, csv, parquet, webdataset tar, html), ``-``
            for standard input, a pandas DataFrame or a Hugging Face data set.
        references: where the references are, if not in the same rows; joined by id.
        images: a folder of pictures, named after the ids or in the image column; ``videos`` likewise.
        caption_column: the column to judge, where its name is unusual or several look like it.
        image_column: the column with the pictures.
        id_column: the column with the ids.
        several: take several captions per picture: rows with the same ``image_id``, or lists of captions. Their ids are
            their own or ``image_id#0``, ``image_id#1``, …, and ``groups`` of the set names the picture.
        limits: how much is read before it is too much; without it, what CAPLENS_READ_LIMITS says.
        pipes: whether a named pipe may be opened, which waits for whoever writes into it.
        spare_references: whether references of other pictures are to be expected, as of other shards; no note says so.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "alt.csv")
    >>> _ = file.write_text("filename;alt text\\ncat.jpg;a cat, asleep\\n")
    >>> read(file).ids, read(file).candidates
    (['cat'], ['a cat, asleep'])
    """
    limits = limits or ReadLimits.from_environment()
    name = str(source) if isinstance(source, str | os.PathLike) else f"the {type(source).__name__}"
    choice = ColumnChoice(caption_column, image_column, id_column)
    rows = _Collected()
    for row in _captions(read_rows(source, choice, limits, pipes=pipes, images=images), several):
        rows.add(row, several)
    if not rows.ids:
        raise InputError("there is no caption in it", where=name)
    pictures = rows.groups if several else rows.ids
    if references is not None:
        by_picture = _References(references, ColumnChoice(id=id_column, required=False), limits, pipes)
        texts: list[list[str]] | None = by_picture.aligned(pictures, spare_references)
        if images is not None:
            rows.images = [
                by_picture.images.get(key) if image is None else image
                for key, image in zip(pictures, rows.images, strict=True)
            ]
    else:
        texts = rows.own_references()
    return CaptionSet(
        ids=rows.ids,
        candidates=rows.candidates,
        references=texts,
        images=_found(rows.images, pictures, images, IMAGE_SUFFIXES)
        if images is not None and not rows.located
        else _given(rows.images),
        videos=_found(rows.videos, pictures, videos, VIDEO_SUFFIXES) if videos is not None else _given(rows.videos),
        source=name,
        groups=rows.groups if several else None,
    )


def read_references(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Id to references, from any layout: a list per id, or one row per caption with ids repeated."""
    return _References(path, ColumnChoice(), ReadLimits.from_environment()).by_id


@dataclass
class _Collected:
    """The columns of a set, row by row."""

    ids: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    references: list[list[str] | None] = field(default_factory=list)
    images: list[Media | None] = field(default_factory=list)
    videos: list[Media | None] = field(default_factory=list)
    located: bool = False
    _first: dict[str, int] = field(default_factory=dict)
    _captions_of: Counter[str] = field(default_factory=Counter)
    _without_references: str | None = None

    def add(self, row: Row, several: bool) -> None:
        group, row_id = row.group or row.id, row.id
        if several and group == row_id:
            row_id = f"{group}#{self._captions_of[group]}"
            self._captions_of[group] += 1
        if row_id in self._first:
            raise InputError(
                f"the same id as in row {self._first[row_id]}",
                where=row.place,
                remedy="one caption per id; references go into a file of their own (--references), and several "
                "captions of one picture are read with --several (several=True)",
            )
        self._first[row_id] = len(self.ids) + 1
        self.ids.append(row_id)
        self.groups.append(group)
        self.candidates.append(row.caption or "")
        self.references.append(row.references)
        self.images.append(row.image)
        self.videos.append(row.video)
        self.located = row.located
        if row.references is None and self._without_references is None:
            self._without_references = row.place

    def own_references(self) -> list[list[str]] | None:
        """The references that the rows bring themselves: all of them, or none."""
        if all(texts is None for texts in self.references):
            return None
        if self._without_references is not None:
            raise InputError(
                "no references, though other rows have some", where=self._without_references, remedy="add them"
            )
        return [texts or [] for texts in self.references]


class _References:
    """The references of a file, by the rows' own ids and by the ids of their pictures."""

    def __init__(self, source: Any, choice: ColumnChoice, limits: ReadLimits, pipes: bool = False) -> None:
        self.name = str(source) if isinstance(source, str | os.PathLike) else f"the {type(source).__name__}"
        self.by_id: dict[str, list[str]] = {}
        self.by_group: dict[str, list[str]] = {}
        self.images: dict[str, Media] = {}
        for row in read_rows(source, choice, limits, pipes=pipes):
            texts = next((texts for texts in (row.references, row.texts) if texts is not None), [row.caption or ""])
            self.by_id.setdefault(row.id, []).extend(texts)
            if row.group is not None:
                self.by_group.setdefault(row.group, []).extend(texts)
            if row.image is not None:
                self.images[row.id] = row.image

    def aligned(self, keys: Sequence[str], spare: bool) -> list[list[str]]:
        """One list per key; where the keys are not the rows' own ids, they are those of the pictures."""
        use_groups = any(key not in self.by_id for key in keys) and all(key in self.by_group for key in keys)
        by_key = self.by_group if use_groups else self.by_id
        return [texts or [] for texts in align("references", keys, by_key, self.name, required=True, spare=spare)]


def _captions(rows: Iterable[Row], several: bool) -> Iterator[Row]:
    """Rows with one caption each; lists of captions are taken apart where several are wanted."""
    for row in rows:
        if several and row.texts:
            group = row.group or row.id
            yield from (replace(row, id=group, group=group, caption=text, texts=None) for text in row.texts)
        elif row.caption is not None:
            yield row
        else:
            raise InputError(
                "references but no caption to judge" if row.texts is None else "a list, not one caption to judge",
                where=row.place,
                remedy="give the captions first and this file with --references"
                + ("" if row.texts is None else ", or read several captions per picture with --several (several=True)"),
            )


def _given(column: list[Media | None]) -> list[Media | None] | None:
    return column if any(entry is not None for entry in column) else None


def _found(
    named: list[Media | None], keys: list[str], where: str | os.PathLike[str], suffixes: frozenset[str]
) -> list[Media | None]:
    """Pictures or videos from a folder; a caption without one keeps None and the metric says so in its row."""
    files = MediaFolder(where, suffixes)
    column: list[Media | None] = [
        files.find(key, None if name is None else media_name(name)) for key, name in zip(keys, named, strict=True)
    ]
    if not _given(column):
        raise InputError(
            f"none of the {len(keys)} captions has a file here (first id: {keys[0]!r})",
            where=str(files.folder),
            remedy="name files after the ids, or add an 'image' column",
        )
    return column
