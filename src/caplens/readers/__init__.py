"""Files to CaptionSet: one reader per layout, chosen by the file's name and content."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from caplens.core.captions import IMAGE_SUFFIXES, VIDEO_SUFFIXES, CaptionSet, Media, align, media_name
from caplens.core.errors import InputError
from caplens.readers import coco, folder, jsonl, table, webdataset
from caplens.readers.rows import Row

READERS = {
    ".json": coco.read,
    ".jsonl": jsonl.read,
    ".ndjson": jsonl.read,
    ".csv": table.read,
    ".tsv": table.read,
    ".parquet": table.read,
    ".tar": webdataset.read,
}


def read_rows(path: str | os.PathLike[str]) -> Iterator[Row]:
    """The rows of any file or folder we can read."""
    path = Path(path)
    if path.is_dir():
        inside = folder.caption_file(path)
        return folder.read(path) if inside is None else read_rows(inside)
    kind = (path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix).lower()
    if kind not in READERS:
        raise InputError(
            "cannot tell what kind of file this is",
            where=str(path),
            remedy=f"name it {', '.join(READERS)} (or one of these with .gz), or give a folder",
        )
    return READERS[kind](path)


def read_captions(
    path: str | os.PathLike[str],
    references: str | os.PathLike[str] | None = None,
    images: str | os.PathLike[str] | None = None,
    videos: str | os.PathLike[str] | None = None,
) -> CaptionSet:
    """Read captions to judge, and join references from a second file and pictures from a folder by id."""
    rows = list(_captions_only(read_rows(path), Path(path)))
    _no_duplicates(rows)
    ids = [row.id for row in rows]
    reference_images: dict[str, Media] = {}
    if references is not None:
        by_id: dict[object, list[str]] = {}
        for key, texts, image in _reference_rows(references):
            by_id.setdefault(key, []).extend(texts)
            if image is not None:
                reference_images[key] = image
        texts_column = align("references", ids, by_id, str(references), required=True)
    elif any(row.references is not None for row in rows):
        for row in rows:
            if row.references is None:
                raise InputError("no references, though other rows have some", where=row.place, remedy="add them")
        texts_column = [row.references for row in rows]
    else:
        texts_column = None
    return CaptionSet(
        ids=ids,
        candidates=[row.caption or "" for row in rows],
        references=None if texts_column is None else [texts or [] for texts in texts_column],
        images=_media([row.image or reference_images.get(row.id) for row in rows], ids, images, IMAGE_SUFFIXES)
        if images is not None
        else _given([row.image for row in rows]),
        videos=_media([row.video for row in rows], ids, videos, VIDEO_SUFFIXES)
        if videos is not None
        else _given([row.video for row in rows]),
        source=str(path),
    )


def read_references(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Id to references, from any layout: a list per id, or one row per caption with ids repeated."""
    by_id: dict[str, list[str]] = {}
    for key, texts, _ in _reference_rows(path):
        by_id.setdefault(key, []).extend(texts)
    return by_id


def _reference_rows(path: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], Media | None]]:
    for row in read_rows(path):
        yield row.id, row.references if row.references is not None else [row.caption or ""], row.image


def _captions_only(rows: Iterable[Row], path: Path) -> Iterator[Row]:
    empty = True
    for row in rows:
        if row.caption is None:
            raise InputError(
                "references but no caption to judge",
                where=row.place,
                remedy="give the captions first and this file with --references",
            )
        empty = False
        yield row
    if empty:
        raise InputError("there is no caption in it", where=str(path))


def _no_duplicates(rows: list[Row]) -> None:
    first: dict[str, Row] = {}
    for row in rows:
        if row.id in first:
            raise InputError(
                f"the same id as in {first[row.id].place}",
                where=row.place,
                remedy="one caption per id; a file of references goes to --references",
            )
        first[row.id] = row


def _given(column: list[Media | None]) -> list[Media | None] | None:
    return column if any(entry is not None for entry in column) else None


def _media(
    named: list[Media | None], ids: list[str], where: str | os.PathLike[str], suffixes: frozenset[str]
) -> list[Media | None]:
    """Pictures or videos from a folder; a caption without one keeps None and the metric says so in its row."""
    files = folder.MediaFolder(where, suffixes)
    found: list[Media | None] = [
        files.find(key, None if name is None else media_name(name)) for key, name in zip(ids, named, strict=True)
    ]
    if not _given(found):
        raise InputError(
            f"none of the {len(ids)} captions has a file here (first id: {ids[0]!r})",
            where=str(files.folder),
            remedy="name files after the ids, or add an 'image' column",
        )
    return found
