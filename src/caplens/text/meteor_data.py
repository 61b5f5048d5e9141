"""METEOR 1.5's English data as indexes that are mapped into memory: synonym sets and the paraphrase table.

The indexes are built once, from the files METEOR comes with, and kept in the cache. License: docs/metrics/meteor.md.
"""

from __future__ import annotations

import gzip
import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

from caplens.core.errors import InputError
from caplens.core.progress import Progress
from caplens.native._kernels import ParaphraseBuilder, write_synonyms
from caplens.storage.cache import FileCache
from caplens.storage.digests import content_digest, digest

TABLE, JAR = "paraphrase-en.gz", "meteor-1.5.jar"
VERSION = "2"
"""Of the layout of the index files; a new layout gets new names."""

# The words METEOR 1.5 counts as function words in English, most frequent first.
_FUNCTION_WORDS = """
the , . to of and a in that for " is on 's it with was as said at he by be from have has are his but an this
not i will ’ they ) -rrb- ( -lrb- who their had we which were been more or s its would about new one after you
: also up when there than $ all out her people she year two - can if last first “ over other ” into some what
so -- no time years could ? 't — '
"""
FUNCTION_WORDS = _FUNCTION_WORDS.split()
_CACHE = FileCache("meteor")


@dataclass(frozen=True)
class Indexes:
    """Where the two indexes are; None where the data for one is not on this machine."""

    synonyms: Path | None
    paraphrases: Path | None

    @property
    def complete(self) -> bool:
        return self.synonyms is not None and self.paraphrases is not None


def built() -> Indexes:
    """Return the indexes of METEOR's own data that are in the cache already."""
    return Indexes(_CACHE.find(_file_name("synonyms", "1.5")), _CACHE.find(_file_name("paraphrases", "1.5")))


def build(folder: Path, progress: Progress, *, own: bool = False) -> Indexes:
    """Return indexes of the files in a folder (the jar for synonyms, paraphrase-en.gz), built unless they are here.

    `own` says that these are not METEOR's files as published, but someone's: their indexes are kept apart.
    """
    jar, table = _find(folder, JAR), _find(folder, TABLE)
    if own and jar is None and table is None:
        raise InputError(f"neither {JAR} nor {TABLE} is there", where=str(folder))
    name = hashlib.sha256(repr(source_digests(folder)).encode()).hexdigest()[:12] if own else "1.5"
    synonyms, paraphrases = _file_name("synonyms", name), _file_name("paraphrases", name)
    return Indexes(
        None if jar is None else _CACHE.get_or_build(synonyms, lambda path: _build_synonyms(jar, path)),
        None
        if table is None
        else _CACHE.get_or_build(paraphrases, lambda path: _build_paraphrases(table, path, progress)),
    )


def _file_name(kind: str, name: str) -> str:
    return f"{kind}-{name}-v{VERSION}.index"


def _find(folder: Path, name: str) -> Path | None:
    """Return a file of METEOR's, in the folder or in its `data`, where METEOR's archive and pycocoevalcap have it."""
    return next((path for path in (folder / name, folder / "data" / name) if path.exists()), None)


def source_digests(folder: Path) -> dict[str, str]:
    """Return the content digest of the files of METEOR's in a folder, by what is made of them."""
    files = {"synonyms": _find(folder, JAR), "paraphrases": _find(folder, TABLE)}
    return {kind: "absent" if file is None else content_digest(file) for kind, file in files.items()}


def _build_synonyms(jar: Path, path: Path) -> None:
    """Words with their WordNet synsets, and irregular forms with the synsets of their base forms."""
    try:
        with zipfile.ZipFile(jar) as archive:
            synset_lines = archive.read("synonym/english.synsets").decode("utf-8").splitlines()
            exception_lines = archive.read("synonym/english.exceptions").decode("utf-8").splitlines()
        # Two lines an entry: a word and its synsets; a base form and its irregular forms.
        words = {
            word: [int(number) for number in sets.split()]
            for word, sets in zip(synset_lines[::2], synset_lines[1::2], strict=True)
        }
        irregular: dict[str, list[int]] = {}
        for base, forms in zip(exception_lines[::2], exception_lines[1::2], strict=True):
            for form in forms.split():
                irregular.setdefault(form, []).extend(words.get(base, []))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise InputError(f"not METEOR's archive with English synonyms ({error})", where=str(jar)) from None
    try:
        write_synonyms(path, list(words.items()), list(irregular.items()), digest(jar))
    except RuntimeError as error:
        raise OSError(str(error)) from None


def _build_paraphrases(table: Path, path: Path, progress: Progress) -> None:
    """The table as a trie of phrases with their paraphrases; takes about five seconds."""
    builder = ParaphraseBuilder()
    size = table.stat().st_size
    try:
        with table.open("rb") as packed, gzip.GzipFile(fileobj=packed) as text:
            while chunk := text.read(1 << 22):
                builder.feed(chunk)
                progress("meteor: indexing paraphrases, once", packed.tell(), size)
        builder.write(path, digest(table))
    except (gzip.BadGzipFile, EOFError, RuntimeError) as error:
        if str(error).startswith("could not write"):  # the kernel's one kind of error is used for full disks, too
            raise OSError(str(error)) from None
        raise InputError(f"not a METEOR paraphrase table ({error})", where=str(table)) from None
