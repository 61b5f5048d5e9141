"""Sentences of a text, and parts that fit: nothing is lost on the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caplens.text.sentences import MOST, TextParts, fitting_parts, split_sentences, surely_fits

PIECES = [*"abcdef ", ". ", "! ", ", ", "。", "、", "\n", "Mr. ", "3.5", '."', "é"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        ("  \n ", []),
        ("a dog", ["a dog"]),
        ("A dog runs. it sits.", ["A dog runs.", "it sits."]),
        ("Dr. Who, 5.5 m tall, waits... Why?! No.", ["Dr. Who, 5.5 m tall, waits...", "Why?!", "No."]),
        ('He says "no." Then he goes.', ['He says "no."', "Then he goes."]),
        ("J. R. Smith sits.", ["J. R. Smith sits."]),
        ("one line\nanother line", ["one line", "another line"]),
        ("犬が走る。猫が寝る。", ["犬が走る。", "猫が寝る。"]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(TEXTS)
def test_no_letter_is_lost_between_sentences(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@given(TEXTS, st.integers(1, 8))
def test_parts_fit_and_hold_every_letter(text: str, most: int) -> None:
    parts = list(fitting_parts(text, lambda part: len(part) <= most))
    assert all(len(part) <= most for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_values_and_vectors_of_parts_are_put_together() -> None:
    parts = TextParts.of(["a. b.", "c", "a. b."], lambda part: len(part) <= 2)
    assert parts.texts == ["a.", "b.", "c", "a.", "b."]
    assert (parts.counts.tolist(), parts.cut, parts.books) == ([2, 1, 2], 2, 0)
    assert parts.mean(np.array([1.0, 2.0, 5.0, 3.0, 3.0])).tolist() == [1.5, 5.0, 3.0]
    vectors = np.array([[2, 0], [0, 5], [3, 4], [1, 0], [1, 0]], np.float32)
    np.testing.assert_allclose(parts.mean_vectors(vectors), [[0.5**0.5] * 2, [3, 4], [1, 0]], rtol=1e-6)


def test_of_a_book_the_first_parts_are_taken() -> None:
    book = TextParts.of(["a. " * (MOST + 1), "a. " * MOST], lambda part: len(part) <= 2)
    assert (book.counts.tolist(), book.books) == ([MOST, MOST], 1)


def test_what_surely_fits() -> None:
    assert surely_fits("abc", 5)
    assert not surely_fits("abcd", 5)
    assert not surely_fits("é", 5)  # may be several tokens
