"""WordNet's lookups on a small database in its own file format."""

from __future__ import annotations

from pathlib import Path

import pytest

from caplens.text.wordnet import WordNet

FILES = {
    "index.noun": "  1 a license line\ncar n 1 0 1 0 00000010\nautomobile n 1 0 1 0 00000010\n"
    "face n 2 0 2 0 00000020 00000030\n"
    "hot_dog n 1 0 1 0 00000040\nman n 1 0 1 0 00000050\nglass n 1 0 1 0 00000060\nglasses n 1 0 1 0 00000070\n",
    "index.verb": "face v 1 0 1 0 00000020\nride v 1 0 1 0 00000080\nrun v 1 0 1 0 00000090\n",
    "index.adj": "big a 1 0 1 0 00000100\n",
    "index.adv": "",
    "noun.exc": "men man\n",
    "verb.exc": "running run\nrode ride\n",
    "adj.exc": "bigger big\n",
    "adv.exc": "",
}


@pytest.fixture
def wordnet(tmp_path: Path) -> WordNet:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, "utf-8")
    return WordNet(tmp_path)


def test_synonyms_share_a_synset(wordnet: WordNet) -> None:
    assert wordnet.synsets("car") == wordnet.synsets("automobile") != frozenset()
    assert wordnet.synsets("zzz") == frozenset()


def test_equal_offsets_of_noun_and_verb_are_two_synsets(wordnet: WordNet) -> None:
    assert len(wordnet.synsets("face")) == 3


def test_phrases_and_inflected_forms_are_found(wordnet: WordNet) -> None:
    assert wordnet.synsets("hot dog") == wordnet.synsets("Hot Dogs") != frozenset()
    assert wordnet.synsets("bigger") == wordnet.synsets("big") != frozenset()


def test_entries_by_part_of_speech(wordnet: WordNet) -> None:
    assert wordnet.has("hot dog", "noun")
    assert not wordnet.has("ride", "noun")


@pytest.mark.parametrize(
    ("form", "part", "base"),
    [
        ("men", "noun", "man"),
        ("cars", "noun", "car"),
        ("glasses", "noun", "glass"),
        ("glass", "noun", "glass"),
        ("riding", "verb", "ride"),
        ("running", "verb", "run"),
        ("skateboarding", "verb", "skateboarding"),
    ],
)
def test_base_forms(wordnet: WordNet, form: str, part: str, base: str) -> None:
    assert wordnet.base(form, part) == base
