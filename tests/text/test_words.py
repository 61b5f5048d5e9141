"""Which words of a caption can be wrong, and what a detector's names have to do with them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from caplens.storage import weights
from caplens.text.object_labels import ObjectLabels
from caplens.text.words import split_words, tag_words, tagger_lacks


def semantic(text: str) -> list[str]:
    return [word.text for word in tag_words([text])[0] if word.semantic]


@pytest.mark.parametrize("absent", ["nothing", "parser", "msgpack"])
def test_semantic_words(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if absent == "parser":
        monkeypatch.setattr(weights, "find_published", lambda name: None)
        assert tagger_lacks().endswith("needs en_core_web_md: caplens weights fetch en_core_web_md")
    elif absent == "msgpack":
        monkeypatch.setitem(sys.modules, "msgpack", None)
        assert tagger_lacks().endswith("needs msgpack: pip install 'caplens[parse]'")
    elif tagger_lacks():
        pytest.skip(tagger_lacks())
    assert semantic("Two brown dogs are playing in the snow !") == ["Two", "brown", "dogs", "playing", "snow"]
    assert semantic("") == semantic("of the and 😀 …") == []


def test_words_are_those_of_the_caption() -> None:
    assert split_words("A man’s t-shirt,\tred…") == ["A", "man", "’s", "t-shirt", ",", "red", "…"]
    long = "dog " * 500
    assert len(tag_words([long])[0]) == 500


def test_a_puppy_is_a_dog_and_a_crowd_is_persons() -> None:
    folder = weights.find("wordnet-3.0")
    if folder is None:
        pytest.skip("caplens weights fetch wordnet-3.0")
    things = ObjectLabels(Path(folder))
    assert all(things.means(noun, "person") for noun in ("men", "girl", "people", "crowd", "skier"))
    assert things.means("puppy", "dog")
    assert things.means("ball", "sports ball")
    assert things.means("bike", "bicycle")
    assert not any(things.means(noun, label) for noun, label in (("dog", "person"), ("man", "dog"), ("zzz", "cat")))
