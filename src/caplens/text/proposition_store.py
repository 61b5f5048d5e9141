"""The propositions of captions, parsed once: kept in memory, and on disk between runs."""

from __future__ import annotations

import functools
import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from caplens.storage.cache import EntryCache, key_of
from caplens.storage.paths import cache_folder
from caplens.text.lexicon import open_wordnet
from caplens.text.parse import Parser
from caplens.text.scenegraph import Proposition, propositions

CHUNK = 4096  # texts between two reports of progress and two writes
MOST_KNOWN = 100_000
"""Texts whose propositions stay in memory; those that came first go first."""


@functools.lru_cache(maxsize=2)
def proposition_store(parser: Path, wordnet: Path, source: str) -> PropositionStore:
    """Return the store of these folders, whose content `source` stands for: one for the whole process."""
    return PropositionStore(parser, wordnet, source)


class PropositionStore:
    """Propositions by text, from one parser and one WordNet, given as folders."""

    def __init__(self, parser: Path, wordnet: Path, source: str) -> None:
        """`source` stands for the content of both folders: propositions are kept under it."""
        self.folder, self.source = parser, source
        self.wordnet = open_wordnet(wordnet)
        self._known: dict[str, tuple[Proposition, ...]] = {}

    @functools.cached_property
    def fingerprint(self) -> str:
        """What signatures call the parser's weights and the rules."""
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
        distinct = list(dict.fromkeys(texts))
        found = {text: self._known[text] for text in distinct if text in self._known}
        keys = {
            key_of(f"{self.source} {self.fingerprint}", "propositions", text): text
            for text in distinct
            if text not in found
        }

        def parse_missing(missing: list[bytes]) -> Iterator[dict[bytes, tuple[Proposition, ...]]]:
            for start in range(0, len(missing), CHUNK):
                progress(start, len(missing))
                batch = missing[start : start + CHUNK]
                parses = self._parser.parse([keys[key].split() for key in batch])
                yield {
                    key: tuple(dict.fromkeys(propositions(parse, self)))
                    for key, parse in zip(batch, parses, strict=True)
                }

        cache = _PropositionCache(cache_folder() / "spice" / "propositions.sqlite")
        made = {keys[key]: value for key, value in cache.get_or_make(keys, parse_missing).items()}
        self._known.update(made)
        for text in list(itertools.islice(self._known, max(0, len(self._known) - MOST_KNOWN))):
            self._known.pop(text, None)
        return {text: found[text] if text in found else made[text] for text in distinct}

    def lemma(self, word: str, tag: str) -> str:
        """Base forms of verbs and plural nouns; all else stays as it is."""
        if tag.startswith("V"):
            return self.wordnet.base(word, "verb")
        return self.wordnet.base(word, "noun") if tag in {"NNS", "NNPS"} else word

    def is_compound(self, first: str, second: str) -> bool:
        """Whether WordNet has the two nouns as one word."""
        return self.wordnet.has(f"{first} {second}", "noun")


class _PropositionCache(EntryCache[tuple[Proposition, ...]]):
    """Key of a text to its propositions."""

    def encode(self, value: tuple[Proposition, ...]) -> bytes:
        return json.dumps(value).encode("ascii")

    def decode(self, data: bytes) -> tuple[Proposition, ...]:
        return tuple(tuple(proposition) for proposition in json.loads(data))
