"""A folder of pictures or videos: with a captions file in it, or a ``.txt`` beside each picture."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from caplens.core.captions import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from caplens.core.errors import InputError
from caplens.readers.limits import Budget, ReadLimits
from caplens.readers.rows import Row
from caplens.readers.source import Source

CAPTION_FILES = tuple(
    f"{stem}{suffix}" for stem in ("captions", "metadata") for suffix in (".jsonl", ".json", ".csv", ".tsv", ".parquet")
)


def caption_file(folder: Path) -> Path | None:
    """The captions file of a folder, if it has one."""
    return next((folder / name for name in CAPTION_FILES if (folder / name).is_file()), None)


def has_side_files(folder: Path) -> bool:
    """Whether a picture of the folder has its caption in a file beside it."""
    return next(_side_files(folder), None) is not None


def _side_files(folder: Path) -> Iterator[tuple[Path, Path]]:
    for path in sorted(folder.iterdir()):
        side = path.with_suffix(".txt")
        if path.suffix.lower() in IMAGE_SUFFIXES | VIDEO_SUFFIXES and side.is_file():
            yield path, side


def read(folder: Path, limits: ReadLimits) -> Iterator[Row]:
    """Captions from side files: ``cat.jpg`` and ``cat.txt``."""
    budget = Budget(limits, str(folder))
    for path, side in _side_files(folder):
        budget.spend_row()
        with Source(side, limits) as source:
            caption = source.decode(source.short_bytes()).lstrip("\ufeff") if side.stat().st_size else ""
        media = os.fspath(path)
        row = Row(path.stem, source.name, caption=caption.rstrip("\n"))
        if path.suffix.lower() in IMAGE_SUFFIXES:
            row.image = media
        else:
            row.video = media
        yield row
    if not budget.rows:
        raise InputError(
            "no captions in this folder",
            where=str(folder),
            remedy=f"put a {CAPTION_FILES[0]} there, or a .txt beside each picture",
        )


class MediaFolder:
    """Finds the picture of a caption in a folder: by its file name, by its id, by COCO's numbered names."""

    def __init__(self, folder: str | os.PathLike[str], suffixes: frozenset[str]) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError("there is no such folder", where=str(self.folder), remedy="check the path")
        names = [entry.name for entry in os.scandir(self.folder) if Path(entry.name).suffix.lower() in suffixes]
        if not names:
            raise InputError(
                "no files of this kind are in the folder", where=str(self.folder), remedy=", ".join(sorted(suffixes))
            )
        self.names = set(names)
        self.by_stem = {Path(name).stem: name for name in sorted(names)}
        # COCO_val2014_000000000136.jpg is the picture of id 136.
        self.by_number = {
            stem.rpartition("_")[2].lstrip("0"): name
            for stem, name in self.by_stem.items()
            if stem.rpartition("_")[2].isdigit()
        }

    def find(self, row_id: str, named: str | None) -> str | None:
        """The path of a caption's picture, or None."""
        base = os.path.basename(named) if named else ""
        name = (
            (base if base in self.names else None)
            or (row_id if row_id in self.names else None)
            or self.by_stem.get(row_id)
            or self.by_number.get(row_id.lstrip("0"))
        )
        return None if name is None else os.fspath(self.folder / name)
