"""Propositions are parsed once per text, and parses that were changed on disk are not believed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from caplens.core.errors import CaplensWarning
from caplens.text import proposition_store
from caplens.text.proposition_store import PropositionStore


class Parser:
    """Counts the texts it is given; a text's parse is its words."""

    def __init__(self) -> None:
        self.texts = 0

    def parse(self, texts: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        self.texts += len(texts)
        return list(texts)


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    monkeypatch.setattr(proposition_store, "propositions", lambda parse, store: [(word,) for word in parse])
    monkeypatch.setattr(proposition_store, "open_wordnet", lambda folder: None)
    return tmp_path / "spice" / "propositions.sqlite"


def store(fingerprint: str = "1") -> tuple[PropositionStore, Parser]:
    """A store of a new process, with a parser of these rules."""
    made, parser = PropositionStore(Path("parser"), Path("wordnet"), "source"), Parser()
    vars(made).update(fingerprint=fingerprint, _parser=parser)
    return made, parser


TEXTS = ["a dog", "a cat", "a dog", "caf\udce9"]
EXPECTED = {"a dog": (("a",), ("dog",)), "a cat": (("a",), ("cat",)), "caf\udce9": (("caf\udce9",),)}


def test_every_text_is_parsed_once() -> None:
    first, parser = store()
    assert first.of(TEXTS) == first.of(TEXTS) == EXPECTED
    assert parser.texts == 3
    second, parser = store()
    assert second.of([*TEXTS, "new"]) == {**EXPECTED, "new": (("new",),)}
    assert parser.texts == 1


def test_other_rules_parse_anew() -> None:
    store("1")[0].of(TEXTS)
    other, parser = store("2")
    other.of(TEXTS)
    assert parser.texts == 3


def test_changed_parses_are_made_anew_with_a_note(path: Path) -> None:
    store()[0].of(TEXTS)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("UPDATE entries SET value = ?", (b'[["zebra"]]',))
    again, parser = store()
    with pytest.warns(CaplensWarning, match="3 of 3 entries are made anew"):
        assert again.of(TEXTS) == EXPECTED
    assert parser.texts == 3


def test_a_broken_store_only_costs_time(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 1000)
    assert store()[0].of(TEXTS) == EXPECTED


def test_another_parser_or_wordnet_parses_anew() -> None:
    store()[0].of(TEXTS)
    other, parser = store()
    other.source = "another WordNet"
    other.of(TEXTS)
    assert parser.texts == 3


def test_memory_holds_so_many_texts_and_a_larger_set_is_answered_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposition_store, "MOST_KNOWN", 2)
    made, parser = store()
    for _ in range(2):
        assert made.of(TEXTS) == EXPECTED
        assert len(made._known) == 2
    assert parser.texts == 3  # what has left memory is on disk
