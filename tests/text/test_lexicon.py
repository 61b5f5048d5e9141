"""One WordNet for the whole process, and room for so many words."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import caplens
from caplens.storage import weights
from caplens.text import lexicon
from caplens.text.lexicon import open_wordnet
from caplens.text.wordnet import PARTS, WORDNET, WordNet


def write(folder: Path, *nouns: str) -> Path:
    """A database of these nouns, of one sense each."""
    folder.mkdir(exist_ok=True)
    for part in PARTS:
        lines = [f"{noun} n 1 0 1 0 {number:08d}\n" for number, noun in enumerate(nouns)] if part == "noun" else []
        (folder / f"index.{part}").write_text("".join(lines))
        (folder / f"{part}.exc").write_text("")
    return folder


def test_a_folder_is_read_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    folder = write(tmp_path / "wordnet", "dog")
    assert open_wordnet(folder) is open_wordnet(folder)
    assert not open_wordnet(folder).synsets("cat")
    write(folder, "dog", "cat")
    assert open_wordnet(folder).synsets("cat")


def test_words_that_nobody_asks_for_again_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "MOST_WORDS", 10)
    wordnet = open_wordnet(write(tmp_path / "wordnet", "dog"))
    for number in range(50):
        wordnet.synsets(f"word{number}")
        wordnet.base(f"word{number}", "noun")
        wordnet.kinds(f"word{number}")
    assert {look.cache_info().currsize for look in (wordnet.synsets, wordnet.base, wordnet.kinds)} == {10}
    assert len(wordnet.synsets("dog")) == 1


@pytest.mark.skipif(weights.find(WORDNET) is None, reason=weights.fetch_command(WORDNET))
def test_captions_that_are_explained_share_one_wordnet() -> None:
    def held() -> int:
        return sum(issubclass(type(thing), WordNet) for thing in gc.get_objects())

    caplens.explain("a dog runs", references=["a puppy is running"])
    first = held()
    gc.disable()  # what waits for the collector fills memory, too
    try:
        for number in range(3):
            caplens.explain(f"a dog runs after {number} balls", references=["a puppy is running"])
        assert held() == first
    finally:
        gc.enable()
