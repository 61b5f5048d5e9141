"""METEOR 1.5's English data as indexes that are mapped into memory: synonym sets and the paraphrase table.

The indexes are built once, from the files METEOR comes with, and kept in the cache. Source and license: docs/meteor.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from caplens.core.errors import InputError
from caplens.native._kernels import ParaphraseBuilder, write_synonyms
from caplens.storage.atomic import atomic_path
from caplens.storage.paths import cache_folder

Progress = Callable[[str, int, int], None]

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


@dataclass(frozen=True)
class Indexes:
    """Where the two indexes are; None where the data for one is not on this machine."""

    synonyms: Path | None
    paraphrases: Path | None

    @property
    def complete(self) -> bool:
        return self.synonyms is not None and self.paraphrases is not None


def built() -> Indexes:
    """The indexes of METEOR's own data that are in the cache already."""
    return _existing("1.5")


def build(folder: Path, progress: Progress, *, own: bool = False) -> Indexes:
    """Indexes of the files in a folder (the jar for synonyms, paraphrase-en.gz), built unless they are there already.

    `own` says that these are not METEOR's files as published, but someone's: their indexes are kept apart.
    """
    jar, table = _place(folder, JAR), _place(folder, TABLE)
    if own and jar is None and table is None:
        raise InputError(f"neither {JAR} nor {TABLE} is there", where=str(folder))
    name = _fingerprint(jar, table) if own else "1.5"
    if jar is not None:
        _get_or_compute(_path("synonyms", name), lambda path: _build_synonyms(jar, path))
    if table is not None:
        _get_or_compute(_path("paraphrases", name), lambda path: _build_paraphrases(table, path, progress))
    return _existing(name)


def _path(kind: str, name: str) -> Path:
    return cache_folder() / "meteor" / f"{kind}-{name}-v{VERSION}.index"


def _existing(name: str) -> Indexes:
    synonyms, paraphrases = _path("synonyms", name), _path("paraphrases", name)
    return Indexes(
        synonyms if synonyms.exists() else None,
        paraphrases if paraphrases.exists() else None,
    )


def _place(folder: Path, name: str) -> Path | None:
    """A file of METEOR's, beside or in the folder `data` as METEOR's own archive and pycocoevalcap have it."""
    return next((path for path in (folder / name, folder / "data" / name) if path.exists()), None)


def _fingerprint(*files: Path | None) -> str:
    facts = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file is not None]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


def _get_or_compute(path: Path, make: Callable[[Path], None]) -> None:
    """Make a file unless it exists. Of several processes one works and the others wait; nobody sees half a file."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.with_suffix(".lock")):
        if not path.exists():
            with atomic_path(path) as temporary:
                make(temporary)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    write_synonyms(path, list(words.items()), list(irregular.items()), _sha256(jar))


def _build_paraphrases(table: Path, path: Path, progress: Progress) -> None:
    """The table as a trie of phrases with their paraphrases; takes about five seconds."""
    builder = ParaphraseBuilder()
    size = table.stat().st_size
    try:
        with table.open("rb") as packed, gzip.GzipFile(fileobj=packed) as text:
            while chunk := text.read(1 << 22):
                builder.feed(chunk)
                progress("meteor: indexing paraphrases, once", packed.tell(), size)
        builder.write(path, _sha256(table))
    except (gzip.BadGzipFile, EOFError, RuntimeError) as error:
        raise InputError(f"not a METEOR paraphrase table ({error})", where=str(table)) from None
