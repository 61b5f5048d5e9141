"""Word vectors from word2vec (binary), GloVe and fastText (text) files, converted once and then memory-mapped."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.core.types import Vectors, unit
from caplens.storage import weights
from caplens.storage.cache import FileCache
from caplens.storage.digests import digest, fingerprint

FORMAT = 2
"""Part of the cache's name; a change of the layout below counts it up."""
REMEDY = "give a word2vec .bin or a GloVe/fastText text file"


@dataclass(frozen=True)
class WordVectors:
    """A table of words and vectors that stays on disk; looking words up reads only their rows."""

    name: str
    """What signatures call it: name and sum of the file it was made from."""
    source_sum: str
    """The sha256 of that file."""
    matrix: Vectors
    _hashes: NDArray[np.uint64]
    """Hash of every word, ascending, with `_rows` beside; a table of hashes needs no 3 million strings in memory."""
    _rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self._hashes)

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """The row of each word, −1 for a word without a vector."""
        hashes = np.array([_hash(word.encode("utf-8", "surrogatepass")) for word in words], dtype=np.uint64)
        position = np.searchsorted(self._hashes, hashes)
        position[position == len(self._hashes)] = 0
        return np.where(self._hashes[position] == hashes, self._rows[position], -1) if len(hashes) else position

    def unit(self, rows: NDArray[np.int64]) -> Vectors:
        """These rows, scaled to length one."""
        return unit(self.matrix[rows]).astype(np.float32)


def load_vectors(name_or_path: str | os.PathLike[str]) -> WordVectors:
    """Vectors by name (`caplens weights list`) or from a file; the first time they are converted into the cache."""
    source = weights.require(name_or_path)
    if not source.is_file():
        raise InputError(f"{source} is not a file of word vectors", remedy=REMEDY)
    identity = f"{FORMAT} {source.resolve()} {fingerprint(source)}"
    name = f"{source.stem}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.vectors"
    path = FileCache("vectors").get_or_build(name, lambda target: _convert(source, target))
    return _open_table(path, os.fspath(name_or_path), source)


def vectors_digest(name_or_path: str | os.PathLike[str]) -> str:
    """Return what stands for the bytes of the vectors; of a file, the sum that was taken when it was converted."""
    known = os.fspath(name_or_path) in weights.models()
    return weights.model_digest(name_or_path) if known else load_vectors(name_or_path).source_sum


def vectors_name(name_or_path: str | os.PathLike[str]) -> str:
    """What signatures call these vectors."""
    name = os.fspath(name_or_path)
    return name if name in weights.models() else load_vectors(name_or_path).name


def _hash(word: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(word, digest_size=8).digest(), "little")


def _convert(source: Path, target: Path) -> None:
    """Write one file: the matrix in file order, the sorted word hashes, their rows, and at the end what is where."""
    hashes: list[int] = []
    columns = 0
    with _open(source) as stream, target.open("wb") as out:
        for words, block in _blocks(source, stream):
            if not np.isfinite(block).all():
                raise InputError(f"{source} has vectors that are not finite numbers", remedy=REMEDY)
            hashes += [_hash(word) for word in words]
            columns = block.shape[1]
            out.write(block.astype("<f4").tobytes())
        if not hashes:
            raise InputError(f"{source} has no word vectors", remedy=REMEDY)
        # A word that stands there twice keeps its first vector, as gensim does.
        sorted_hashes, rows = np.unique(np.array(hashes, dtype=np.uint64), return_index=True)
        out.write(b"\0" * (-out.tell() % 8))
        index = out.tell()
        out.write(sorted_hashes.astype("<u8").tobytes() + rows.astype("<i8").tobytes())
        table = {"rows": len(hashes), "columns": columns, "words": len(rows), "index": index, "sha256": digest(source)}
        footer = json.dumps(table).encode()
        out.write(footer + len(footer).to_bytes(8, "little"))


def _open_table(path: Path, name: str, source: Path) -> WordVectors:
    """Map a file that `_convert` wrote."""
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(8), "little")
        file.seek(-8 - length, os.SEEK_END)
        table = json.loads(file.read(length))
    words, index = table["words"], table["index"]
    return WordVectors(
        name=name if name in weights.models() else f"{source.name}@{table['sha256'][:12]}",
        source_sum=table["sha256"],
        matrix=np.memmap(path, dtype="<f4", mode="r", shape=(table["rows"], table["columns"])),
        _hashes=np.memmap(path, dtype="<u8", mode="r", offset=index, shape=(words,)),
        _rows=np.memmap(path, dtype="<i8", mode="r", offset=index + 8 * words, shape=(words,)),
    )


def _open(source: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(source, "rb")) if source.suffix == ".gz" else source.open("rb")


def _blocks(source: Path, stream: IO[bytes]) -> Iterator[tuple[list[bytes], Vectors]]:
    """Words and vectors, some thousand at a time, whatever the format."""
    first = stream.readline()
    header = first.split()
    counted = len(header) == 2 and all(part.isdigit() for part in header)
    if counted and ".bin" in source.suffixes:
        yield from _binary(source, stream, int(header[0]), int(header[1]))
    else:
        yield from _text(source, stream, b"" if counted else first)


def _binary(source: Path, stream: IO[bytes], rows: int, columns: int) -> Iterator[tuple[list[bytes], Vectors]]:
    """word2vec's own format: word, space, `columns` floats, with or without a newline before the next word."""
    width = 4 * columns
    words: list[bytes] = []
    vectors = bytearray()
    rest = b""
    for row in range(rows):
        while (space := rest.find(b" ")) < 0 or len(rest) < space + 1 + width:
            more = stream.read(1 << 22)
            if not more:
                raise InputError(f"{source} ends after {row} of {rows} words", remedy="download it again")
            rest += more
        words.append(rest[:space].lstrip(b"\n"))
        vectors += rest[space + 1 : space + 1 + width]
        rest = rest[space + 1 + width :]
        if len(words) == 4096 or row == rows - 1:
            yield words, np.frombuffer(bytes(vectors), "<f4").reshape(-1, columns)
            words, vectors = [], bytearray()


def _text(source: Path, stream: IO[bytes], first: bytes) -> Iterator[tuple[list[bytes], Vectors]]:
    """One line per word, numbers separated by spaces; a word may itself hold spaces (GloVe 840B has some)."""
    number = 0 if first else 1
    lines = [first] if first else stream.readlines(1)
    columns = len(lines[0].split()) - 1 if lines else 0
    while lines:
        words, numbers = [], []
        for line in lines:
            number += 1
            parts = line.rstrip().rsplit(b" ", columns)
            if len(parts) != columns + 1 or columns < 1:
                raise InputError(f"line has not {columns} numbers", where=f"{source}, line {number}")
            words.append(parts[0])
            numbers.append(b" ".join(parts[1:]))
        try:
            block = np.array(b" ".join(numbers).split(b" "), dtype="S").astype(np.float32)
        except ValueError as error:
            where = f"{source}, lines {number - len(lines) + 1} to {number}"
            raise InputError(f"a vector is not made of numbers ({error})", where=where) from None
        yield words, block.reshape(-1, columns)
        lines = stream.readlines(1 << 21)
