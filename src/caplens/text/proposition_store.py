"""The propositions of captions, parsed once: kept in memory, and on disk between runs."""

from __future__ import annotations

import functools
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from caplens.storage.paths import cache_folder
from caplens.text.parse import Parser
from caplens.text.scenegraph import Proposition, propositions
from caplens.text.wordnet import WordNet

CHUNK = 4096  # texts between two reports of progress and two writes


class PropositionStore:
    """Propositions by text, from one parser and one WordNet, given as folders."""

    def __init__(self, parser: Path, wordnet: Path) -> None:
        self.folder = parser
        self.wordnet = WordNet(wordnet)
        self._known: dict[str, tuple[Proposition, ...]] = {}

    @functools.cached_property
    def fingerprint(self) -> str:
        """Changes with the parser's weights and with the rules, so that no old parse is met again."""
        value = 0
        for part in ("tok2vec", "tagger", "parser"):
            model = self.folder / part / "model"
            value = zlib.crc32(model.read_bytes() if model.is_file() else b"", value)
        for name in ("parse.py", "scenegraph.py", "wordnet.py"):
            value = zlib.crc32(files("caplens.text").joinpath(name).read_bytes(), value)
        return f"{value:08x}"

    @functools.cached_property
    def _parser(self) -> Parser:
        return Parser(self.folder)

    def of(
        self, texts: Iterable[str], progress: Callable[[int, int], None] = lambda done, total: None
    ) -> dict[str, tuple[Proposition, ...]]:
        """The propositions of each tokenized text."""
        wanted = dict.fromkeys(texts)
        missing = [text for text in wanted if text not in self._known]
        if missing:
            store = _Store(cache_folder() / "spice" / f"{self.fingerprint}.sqlite")
            self._known.update(store.read(missing))
            missing = [text for text in missing if text not in self._known]
            for start in range(0, len(missing), CHUNK):
                progress(start, len(missing))
                some = missing[start : start + CHUNK]
                parses = self._parser.parse([text.split() for text in some])
                made = {
                    text: tuple(dict.fromkeys(propositions(parse, self)))
                    for text, parse in zip(some, parses, strict=True)
                }
                store.write(made)
                self._known.update(made)
        return {text: self._known[text] for text in wanted}

    def lemma(self, word: str, tag: str) -> str:
        """Base forms of verbs and plural nouns; all else stays as it is."""
        if tag.startswith("V"):
            return self.wordnet.base(word, "verb")
        return self.wordnet.base(word, "noun") if tag in {"NNS", "NNPS"} else word

    def is_compound(self, first: str, second: str) -> bool:
        """Whether WordNet has the two nouns as one word."""
        return self.wordnet.has(f"{first} {second}", "noun")


class _Store:
    """A table on disk. It only saves time: where it cannot be read or written, nothing else changes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, texts: Sequence[str]) -> dict[str, tuple[Proposition, ...]]:
        found: dict[str, tuple[Proposition, ...]] = {}
        if not self.path.is_file():
            return found
        try:
            with closing(sqlite3.connect(self.path, timeout=5)) as base:
                for start in range(0, len(texts), 500):
                    some = texts[start : start + 500]
                    marks = ",".join("?" * len(some))
                    for text, claims in base.execute(f"select text, claims from parsed where text in ({marks})", some):
                        found[text] = tuple(tuple(claim) for claim in json.loads(claims))
        except (sqlite3.Error, UnicodeEncodeError, ValueError):
            return {}
        return found

    def write(self, parsed: dict[str, tuple[Proposition, ...]]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=5)) as base, base:
                base.execute("create table if not exists parsed (text text primary key, claims text) without rowid")
                base.executemany(
                    "insert or replace into parsed values (?, ?)",
                    ((text, json.dumps(claims, ensure_ascii=False)) for text, claims in parsed.items()),
                )
        except (sqlite3.Error, OSError, UnicodeEncodeError):
            return
