"""Inverse document frequencies: in how many images' references does an n-gram occur?

idf(w) = log(images) - log(max(1, document frequency of w)), counted over the evaluated references or kept in a table.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.native._kernels import NgramIndex, TfIdf, log_each
from caplens.storage.tensors import map_tensors, write_tensors
from caplens.text.ngrams import ReferenceIndex, Tokenizer, tokenizer_name

FORMAT = "caplens-idf-1"
PARTS_AT_ONCE = 7
"""Parts of a corpus that are added to the sum at a time: more take more memory, fewer more time."""
Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class IdfTable:
    """Document frequencies of a corpus. N-grams of one image only are left out: they weigh the same as unknown ones.

    A part of a corpus, to be added to others (`add_idf`), has all of them.
    """

    images: int
    tokenizer: str
    words: list[str]
    """Sorted; word i has the number i, and the n-grams (n >= 2) count on from there."""
    prefixes: Ids
    """Per n-gram the number of its first n-1 words."""
    lasts: Ids
    """Per n-gram the number of its last word."""
    frequencies: Ids
    """Document frequencies of the words and then of the n-grams."""
    is_corpus: bool = False
    """Whether it was counted over the very captions that are judged, of which a shard is at hand; never saved."""

    @cached_property
    def checksum(self) -> str:
        """Names the content: equal tables have equal checksums, whatever order their captions came in."""
        digest = hashlib.sha256(f"{FORMAT}\n{self.images}\n{self.tokenizer}\n".encode())
        digest.update("\n".join(self.words).encode())
        for array in (self.prefixes, self.lasts, self.frequencies):
            digest.update(b"\n")
            digest.update(np.ascontiguousarray(array, "<u4").data)
        return digest.hexdigest()[:12]

    @property
    def identity(self) -> str:
        """What results made with this table are kept under."""
        return self.checksum

    def __len__(self) -> int:
        return len(self.frequencies)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as a safetensors file."""
        words = np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8)
        tensors: dict[str, NDArray[Any]] = {
            "words": words,
            "prefixes": self.prefixes,
            "lasts": self.lasts,
            "frequencies": self.frequencies,
        }
        about = {
            "format": FORMAT,
            "images": str(self.images),
            "tokenizer": self.tokenizer,
            "checksum": self.checksum,
        }
        write_tensors(path, tensors, about)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IdfTable:
        """Read a table that `save` wrote; a damaged or foreign file is refused."""
        make_one = "make one: caplens idf build FILE"
        if not Path(path).is_file():
            raise InputError("no such idf table", where=str(path), remedy=make_one)
        tensors, about = map_tensors(path, "an idf table")
        if about.get("format") != FORMAT:
            raise InputError("not an idf table", where=str(path), remedy=make_one)
        words = tensors["words"].tobytes().decode()
        table = cls(
            images=int(about["images"]),
            tokenizer=about["tokenizer"],
            words=words.split("\n") if words else [],
            prefixes=tensors["prefixes"],
            lasts=tensors["lasts"],
            frequencies=tensors["frequencies"],
        )
        if table.checksum != about["checksum"]:
            raise InputError("the idf table is damaged: its checksum differs", where=str(path), remedy="build it again")
        return table


IdfSource = str | os.PathLike[str] | IdfTable | Mapping[Any, Sequence[str]] | Sequence[Sequence[str]]
"""Where idf comes from: "corpus" (the references at hand), a saved table, a caption file, or reference lists."""


def build_idf(references: Iterable[Sequence[str]], tokenizer: Tokenizer = "ptb", *, least: int = 2) -> IdfTable:
    """Count document frequencies; one list of references is one image. `least=1` keeps what only one image has.

    >>> table = build_idf([["a cat", "the cat"], ["a dog"]])
    >>> table.images, table.words, table.frequencies.tolist()
    (2, ['a'], [2])
    """
    return _as_table(ReferenceIndex(references, tokenizer), least)


def _as_table(references: ReferenceIndex, least: int) -> IdfTable:
    index = NgramIndex(references.kernel, least=least)
    frequencies = index.document_frequency()
    words = references.kernel.words()
    keys = index.keys()
    prefixes, lasts = (keys >> np.uint64(32)).astype(np.int64), (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    # Numbers do not depend on the order of the captions: words by alphabet, n-grams by the numbers of their parts.
    number = np.full(len(index), -1, dtype=np.int64)
    kept_words = sorted(np.flatnonzero(frequencies[: len(words)] >= least), key=lambda word: words[word])
    number[kept_words] = np.arange(len(kept_words))
    order = [np.array(kept_words, dtype=np.int64)]
    level = np.flatnonzero(prefixes < len(words))
    while len(level):
        kept = level[frequencies[len(words) + level] >= least]
        kept = kept[np.argsort(number[prefixes[kept]] << 32 | number[lasts[kept]])]  # no two are equal
        number[len(words) + kept] = sum(map(len, order)) + np.arange(len(kept))
        order.append(len(words) + kept)
        in_level = np.zeros(len(index), dtype=bool)
        in_level[len(words) + level] = True
        level = np.flatnonzero(in_level[prefixes])
    chosen = np.concatenate(order)
    longer = chosen[len(kept_words) :] - len(words)
    return IdfTable(
        images=len(references),
        tokenizer=references.tokenizer,
        words=[words[word] for word in kept_words],
        prefixes=number[prefixes[longer]].astype(np.uint32),
        lasts=number[lasts[longer]].astype(np.uint32),
        frequencies=frequencies[chosen],
    )


def add_idf(parts: Iterable[IdfTable]) -> IdfTable:
    """Add up the parts of a corpus (`build_idf(..., least=1)`): the table that counting all of it at once gives.

    >>> corpus = [["a cat", "the cat"], ["a dog"]]
    >>> add_idf(build_idf([texts], least=1) for texts in corpus).checksum == build_idf(corpus).checksum
    True
    """
    waiting = iter(parts)
    total = next(waiting, None)
    if total is None:
        raise InputError("there is no part to add up")
    while batch := list(itertools.islice(waiting, PARTS_AT_ONCE)):
        total = _sum([total, *batch])
    return _at_least(2, total)


def _sum(tables: Sequence[IdfTable]) -> IdfTable:
    """Several tables as one. Each is sorted level by level (words, pairs, triples, …), and so is the sum."""
    tokenizers = {table.tokenizer for table in tables}
    if len(tokenizers) > 1:
        raise InputError(f"the parts count words of different tokenizers: {', '.join(sorted(tokenizers))}")
    words = sorted({word for table in tables for word in table.words})
    place = {word: number for number, word in enumerate(words)}
    numbers = [np.array([place[word] for word in table.words], np.int64) for table in tables]
    counts = [table.frequencies[: len(table.words)] for table in tables]
    frequencies = [_scatter(len(words), np.concatenate(numbers), np.concatenate(counts))]
    keys_by_level: list[NDArray[np.uint64]] = []
    levels = [_levels(table) for table in tables]
    offset = len(words)
    for depth in range(max(map(len, levels))):
        spans = [level[depth] if depth < len(level) else slice(0, 0) for level in levels]
        keys = np.concatenate(
            [
                known[table.prefixes[span]].astype(np.uint64) << np.uint64(32)
                | known[table.lasts[span]].astype(np.uint64)
                for table, known, span in zip(tables, numbers, spans, strict=True)
            ]
        )
        counts = [table.frequencies[len(table.words) :][span] for table, span in zip(tables, spans, strict=True)]
        order = np.argsort(keys, kind="stable")  # the keys of a table ascend, so that this merges
        ordered = keys[order]
        first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        rows = np.empty(len(keys), np.int64)
        rows[order] = np.cumsum(first) - 1
        keys_by_level.append(ordered[first])
        frequencies.append(_scatter(len(keys_by_level[-1]), rows, np.concatenate(counts)))
        ends = np.cumsum([len(count) for count in counts])[:-1]
        numbers = [
            np.concatenate([known, offset + own]) for known, own in zip(numbers, np.split(rows, ends), strict=True)
        ]
        offset += len(keys_by_level[-1])
    pairs = np.concatenate([np.zeros(0, np.uint64), *keys_by_level])
    return IdfTable(
        images=sum(table.images for table in tables),
        tokenizer=tables[0].tokenizer,
        words=words,
        prefixes=(pairs >> np.uint64(32)).astype(np.uint32),
        lasts=pairs.astype(np.uint32),
        frequencies=np.concatenate(frequencies),
    )


def _levels(table: IdfTable) -> list[slice]:
    """Where the pairs, the triples and so on stand among the n-grams: after those that they begin with."""
    levels: list[slice] = []
    start, high = 0, len(table.words)
    while start < len(table.prefixes):
        stop = start + int(np.searchsorted(table.prefixes[start:], high))  # prefixes ascend
        levels.append(slice(start, stop))
        high = len(table.words) + stop
        start = stop
    return levels


def _scatter(size: int, rows: NDArray[np.int64], values: Ids) -> Ids:
    """The values that go to the same row, added up; document frequencies are far below 2^53."""
    return np.bincount(rows, values, minlength=size).astype(np.uint32)


def _at_least(least: int, table: IdfTable) -> IdfTable:
    """The table without rarer n-grams; what is kept begins and ends with what is kept."""
    kept = table.frequencies >= least
    number = (np.cumsum(kept) - 1).astype(np.uint32)
    longer = kept[len(table.words) :]
    return IdfTable(
        images=table.images,
        tokenizer=table.tokenizer,
        words=[word for word, keep in zip(table.words, kept.tolist(), strict=False) if keep],
        prefixes=number[table.prefixes[longer]],
        lasts=number[table.lasts[longer]],
        frequencies=table.frequencies[kept],
    )


def find_idf(source: IdfSource, tokenizer: Tokenizer) -> IdfTable | None:
    """The table behind an `idf=` option; None for "corpus"."""
    if isinstance(source, str) and source == "corpus":
        return None
    if isinstance(source, IdfTable):
        table = source
    elif isinstance(source, str | os.PathLike):
        table = _from_file(Path(source), tokenizer)
    else:
        table = build_idf(source.values() if isinstance(source, Mapping) else source, tokenizer)
    if table.tokenizer != tokenizer_name(tokenizer):
        raise InputError(
            f"the idf table counts words of the tokenizer {table.tokenizer}, this metric those of "
            f"{tokenizer_name(tokenizer)}",
            remedy="build the table with the same tokenizer",
        )
    return table


def _from_file(path: Path, tokenizer: Tokenizer) -> IdfTable:
    if path.suffix == ".safetensors":
        return IdfTable.load(path)
    from caplens.readers import read_references

    if not path.exists():
        raise InputError(
            "no such file for idf",
            where=str(path),
            remedy="give 'corpus', a table made by `caplens idf build`, or a caption file",
        )
    return build_idf(read_references(path).values(), tokenizer)


@dataclass(frozen=True)
class Weights:
    """An idf for every n-gram of the references, and one for all others."""

    kernel: TfIdf
    images: int
    all_zero: bool
    """Every n-gram of the references occurs in every image, so that nothing can score."""


def idf_weights(references: ReferenceIndex, table: IdfTable | None) -> Weights:
    """Weights of the n-grams of these references, counted over themselves or taken from a table."""
    return references.get_or_compute(
        ("idf", None if table is None else table.checksum),
        lambda: _corpus_weights(references) if table is None else _table_weights(references, table),
    )


def _corpus_weights(references: ReferenceIndex) -> Weights:
    return _weights(references.ngrams, len(references))


def _table_weights(references: ReferenceIndex, table: IdfTable) -> Weights:
    index = NgramIndex(references.kernel, table.words, table.prefixes, table.lasts, table.frequencies)
    return _weights(index, table.images)


def _weights(index: NgramIndex, images: int) -> Weights:
    unseen = math.log(max(1, images))
    kernel = TfIdf(index, unseen - log_each(np.maximum(1.0, index.frequencies())), unseen)
    return Weights(kernel, images, all_zero=kernel.all_zero)
