"""wmd: what is compared, on vectors small enough to do by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import caplens
from caplens.core.errors import CaplensWarning, InputError, MissingData
from caplens.metrics.wmd import LONGEST


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))
    path = tmp_path / "toy.txt"
    # Directions, in degrees on the circle: dog 0, cat 90, mouse 180; lengths must not matter.
    path.write_text("dog 2 0\ncat 0 0.5\nmouse -7 0\nthe 1 1\n")
    return str(path)


def score(candidate: str, references: list[str], vectors: str) -> float:
    return caplens.evaluate([candidate], [references], metrics=["wmd"], vectors=vectors)["wmd"].score


def test_by_hand(vectors: str) -> None:
    right_angle = np.sqrt(2)
    assert score("the dog", ["Dog."], vectors) == 1
    assert score("a dog", ["a cat"], vectors) == pytest.approx(np.exp(-right_angle))
    assert score("dog", ["mouse"], vectors) == pytest.approx(np.exp(-2))
    # Half of the mass stays with the dog, half goes from cat to mouse.
    assert score("dog and cat", ["dog mouse"], vectors) == pytest.approx(np.exp(-right_angle / 2))
    # Two thirds dog to one half dog: one sixth moves on to the cat.
    assert score("dog dog cat", ["dog cat"], vectors) == pytest.approx(np.exp(-right_angle / 6))
    assert score("dog", ["mouse", "cat"], vectors) == pytest.approx(np.exp(-right_angle))


def test_unknown_words_are_reported(vectors: str) -> None:
    with pytest.warns(CaplensWarning, match=r"1 words .* \(zebra\)"):
        report = caplens.evaluate(["a dog and a zebra"], [["dog"]], metrics=["wmd"], vectors=vectors)
    assert report["wmd"].score == 1
    assert report["wmd"].details == [{"distance": 0.0, "unknown": ["zebra"]}]


@pytest.mark.parametrize(("candidate", "reference"), [("", "dog"), ("the of", "dog"), ("dog", ""), ("dog", "the")])
def test_nothing_left_scores_zero(vectors: str, candidate: str, reference: str) -> None:
    with pytest.warns(CaplensWarning, match="nothing is left"):
        assert score(candidate, [reference], vectors) == 0


def test_signature_and_missing_data(vectors: str, tmp_path: Path) -> None:
    result = caplens.evaluate(["dog"], [["cat", "dog"]], metrics=["wmd"], vectors=vectors)["wmd"]
    assert "vectors:toy.txt@" in result.signature
    assert "references:2" in result.signature
    with pytest.raises(MissingData, match="caplens weights fetch glove-6b-50d"):
        caplens.evaluate(["dog"], [["cat"]], metrics=["wmd"])


def test_of_very_long_texts_the_start_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))
    table = np.random.default_rng(0).normal(size=(LONGEST + 5, 4))
    words = [f"word{number}" for number in range(len(table))]
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, table, strict=True)))
    with pytest.warns(CaplensWarning, match="of 1 texts with more than 500 different words"):
        assert score(" ".join(words), [" ".join(words[:LONGEST])], str(path)) == 1


def test_vectors_that_are_no_numbers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))
    path = tmp_path / "broken.txt"
    path.write_text("dog 1 0\ncat nan 1\n")
    with pytest.raises(InputError, match="not finite"):
        score("dog", ["cat"], str(path))
