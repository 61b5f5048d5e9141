"""Which reader takes a file: by its name, by its first bytes where it has none, or by what is in a folder."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from caplens.core.errors import InputError
from caplens.readers import coco, folder, frames, html, jsonl, parquet, table, webdataset
from caplens.readers.columns import ColumnChoice, find_columns
from caplens.readers.limits import ReadLimits
from caplens.readers.rows import Row
from caplens.readers.source import Source
from caplens.readers.strict_json import parse

READERS = {
    ".json": coco.read,
    ".jsonl": jsonl.read,
    ".ndjson": jsonl.read,
    ".csv": table.read,
    ".tsv": table.read,
    ".parquet": parquet.read,
    ".tar": webdataset.read,
}


def read_rows(
    source: Any,
    choice: ColumnChoice,
    limits: ReadLimits,
    *,
    pipes: bool = False,
    images: str | os.PathLike[str] | None = None,
) -> Iterator[Row]:
    """The rows of any file, folder or table we can read.

    Args:
        source: a path, ``-`` for standard input, a DataFrame or a data set.
        choice: the columns that the user has named.
        limits: where to stop.
        pipes: whether a named pipe may be opened.
        images: where the pictures of web pages are; other layouts are joined with their pictures later.
    """
    if frames.is_frame(source):
        yield from frames.read(source, choice, limits)
        return
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"cannot read captions from a {type(source).__name__}",
            remedy="give a path, a DataFrame or a data set; lists and mappings go to caplens.evaluate",
        )
    path = Path(source)
    try:
        if not os.path.isdir(path):
            yield from _file_rows(path, choice, limits, pipes, images)
        elif (inside := folder.caption_file(path)) is not None:
            yield from _file_rows(inside, choice, limits, pipes, images)
        elif not folder.has_side_files(path) and html.find_pages(path):
            yield from html.read(path, images, limits)
        else:
            yield from folder.read(path, limits)
    except MemoryError:
        raise InputError("needs more memory than there is", where=str(path), remedy="split the file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None


def _file_rows(
    path: Path, choice: ColumnChoice, limits: ReadLimits, pipes: bool, images: str | os.PathLike[str] | None
) -> Iterator[Row]:
    with Source(path, limits, pipes) as source:
        if source.suffix in html.PAGE_SUFFIXES:
            yield from html.read(path, images, limits)
            return
        suffix = source.suffix
        if suffix not in READERS and (source.given_open or (pipes and path.is_fifo())):
            suffix = _sniffed(source)
        if suffix not in READERS:
            known = ", ".join((*READERS, *sorted(html.PAGE_SUFFIXES)))
            raise InputError(
                "cannot tell what kind of file this is",
                where=source.name,
                remedy=f"name it {known} (or one of these with .gz), or give a folder",
            )
        yield from READERS[suffix](source, choice)


def _sniffed(source: Source) -> str:
    """The layout of a stream without a name, by its first bytes."""
    head = source.stream.peek()
    if head.startswith(b"PAR1"):
        return ".parquet"
    if head[257:262] == b"ustar":
        return ".tar"
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"["):
        return ".json"
    if not text.startswith(b"{"):
        return ".csv"
    first, _, rest = text.partition(b"\n")
    try:
        fields = parse(first.decode("utf-8"), source.name, source.limits)
        columns = find_columns(list(fields), ColumnChoice(), source.name)
    except (InputError, UnicodeDecodeError):
        return ".jsonl" if rest.lstrip().startswith(b"{") else ".json"
    # One object alone is a row if it has a caption, else {id: caption}.
    return ".jsonl" if rest.strip() or columns.caption or columns.references else ".json"
