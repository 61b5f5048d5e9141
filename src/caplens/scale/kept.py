"""Writes the rows of a shard that a filter keeps: as parquet, as a webdataset tar, or as DataComp's uids."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import Media, media_name
from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.readers.columns import ColumnChoice
from caplens.readers.layouts import read_rows
from caplens.readers.limits import ReadLimits
from caplens.readers.rows import Row
from caplens.readers.source import Source
from caplens.readers.webdataset import copy_rows, plain_member
from caplens.scale.plan import Done, attempt
from caplens.scale.shards import Shard
from caplens.storage.atomic import atomic_path
from caplens.vision.images import picture_size, read_media

Layout = Literal["parquet", "webdataset"]
LAYOUTS = ("parquet", "webdataset", "uids")
_ROWS_AT_ONCE = 1024
_PURPOSE = "writing parquet"
# What a picture's first bytes say of it, where its name says nothing.
_MAGIC = {b"\xff\xd8": ".jpg", b"\x89P": ".png", b"RI": ".webp", b"GI": ".gif", b"BM": ".bmp"}


@dataclass(frozen=True)
class KeptRows:
    """A shard, and which of its rows are kept, a bit each."""

    shard: Shard
    rows: int
    bits: bytes

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Whether each row is kept."""
        return np.unpackbits(np.frombuffer(self.bits, np.uint8), count=self.rows).astype(bool)


@dataclass(frozen=True)
class WriteKept:
    """Writes the kept rows of a shard; one without any gets no file."""

    folder: Path
    layout: Layout | None
    """None: as the shard is, a tar as a tar and anything else as parquet."""
    choice: ColumnChoice

    def __call__(self, kept: KeptRows) -> Done:
        return attempt(lambda shard: self._write(kept), kept.shard)

    def _write(self, kept: KeptRows) -> Done:
        keep: list[bool] = kept.mask.tolist()
        if any(keep):
            with kept.shard.on_disk() as path:
                is_tar = Source(path).suffix == ".tar"
                layout = self.layout or ("webdataset" if is_tar else "parquet")
                target = self.folder / f"{kept.shard.name}{'.tar' if layout == 'webdataset' else '.parquet'}"
                with atomic_path(target) as temporary:
                    if layout == "webdataset":
                        self._write_tar(path, keep, temporary, is_tar)
                    elif Source(path).suffix == ".parquet":
                        _copy_parquet(path, kept.mask, temporary)
                    else:
                        self._write_parquet(path, keep, temporary)
        return Done(kept.shard, sum(keep))

    def _rows(self, path: Path, keep: Sequence[bool]) -> Iterator[Row]:
        return compress(read_rows(path, self.choice, ReadLimits.from_environment()), keep)

    def _write_tar(self, path: Path, keep: Sequence[bool], temporary: Path, is_tar: bool) -> None:
        with tarfile.open(temporary, "w", format=tarfile.GNU_FORMAT) as target:
            if is_tar:
                with Source(path) as source:
                    copy_rows(source, self.choice, keep, target)
                return
            taken: set[str] = set()
            for number, row in enumerate(self._rows(path, keep)):
                key = row.id.replace("/", "_").replace(".", "_") or str(number)
                key = f"{key}_{number}" if key in taken else key  # a.b and a_b are two
                taken.add(key)
                members = {".txt": (row.caption or "").encode()}
                about = {"id": row.id, **({} if row.references is None else {"references": row.references})}
                members[".json"] = json.dumps(about, ensure_ascii=False).encode()
                if row.image is not None and (data := _bytes_of(row.image)):
                    members[_MAGIC.get(data[:2], ".jpg")] = data
                for suffix, data in members.items():
                    target.addfile(plain_member(key + suffix, len(data)), io.BytesIO(data))

    def _write_parquet(self, path: Path, keep: Sequence[bool], temporary: Path) -> None:
        pyarrow = require("pyarrow", purpose=_PURPOSE)
        writer_of = require("pyarrow.parquet:ParquetWriter", purpose=_PURPOSE)
        picture = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
        text = pyarrow.string()
        schema = pyarrow.schema(
            [("id", text), ("caption", text), ("references", pyarrow.list_(text)), ("image", picture), ("video", text)]
        )
        with writer_of(temporary, schema, compression="zstd") as writer:
            for rows in _portions(self._rows(path, keep)):
                writer.write_table(pyarrow.Table.from_pylist([_cells(row) for row in rows], schema=schema))


def _cells(row: Row) -> dict[str, Any]:
    """A row as Hugging Face writes it: a picture that is a file stays one, any other goes in with its bytes."""
    image = row.image
    named = isinstance(image, str)
    return {
        "id": row.id,
        "caption": row.caption,
        "references": row.references,
        "image": None
        if image is None
        else {"bytes": None if named else _bytes_of(image), "path": image if named else None},
        "video": None if row.video is None else media_name(row.video),
    }


def _bytes_of(media: Media) -> bytes | None:
    """The bytes of a picture; one that cannot be read is left out, as its row may be kept for its words.

    Nor is a file of this machine that is no picture: a row may name any, and what is kept may be given away.
    """
    try:
        data = read_media(media)
        if isinstance(media, str | os.PathLike):
            picture_size(data, media_name(media))
    except InputError:
        return None
    return data


def _copy_parquet(path: Path, mask: NDArray[np.bool_], temporary: Path) -> None:
    """The kept rows with all their columns, as they are."""
    pyarrow = require("pyarrow", purpose=_PURPOSE)
    parquet = require("pyarrow.parquet", purpose=_PURPOSE)
    passed = 0
    with (
        parquet.ParquetFile(path) as source,
        parquet.ParquetWriter(temporary, source.schema_arrow, compression="zstd") as writer,
    ):
        for batch in source.iter_batches(_ROWS_AT_ONCE):
            chosen = mask[passed : passed + batch.num_rows]
            passed += batch.num_rows
            if chosen.any():
                writer.write_batch(batch.filter(pyarrow.array(chosen)))


def _portions(rows: Iterable[Row]) -> Iterator[list[Row]]:
    portion: list[Row] = []
    for row in rows:
        portion.append(row)
        if len(portion) == _ROWS_AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion


def write_uids(path: Path, ids: Iterable[str]) -> int:
    """Write uids of 32 hexadecimal digits, sorted, as DataComp's tools take them; return how many."""
    halves = np.array([_halves(uid) for uid in ids], np.dtype("u8,u8"))
    halves.sort()
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.save(file, halves)
    return len(halves)


def _halves(uid: str) -> tuple[int, int]:
    try:
        if len(uid) == 32:
            return int(uid[:16], 16), int(uid[16:], 16)
    except ValueError:
        pass
    raise InputError(
        f"the id {uid[:60]!r} is no uid of 32 hexadecimal digits", remedy="name their column: --id-column uid"
    )
