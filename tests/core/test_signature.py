"""Signatures: written, read back, and refused where a key means nothing to anybody."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caplens.core.signature import KEYS, Signature

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(name=TEXTS.filter(bool), parts=st.lists(st.tuples(st.sampled_from(sorted(KEYS)), TEXTS), max_size=5))
def test_what_is_written_is_read_back(name: str, parts: list[tuple[str, str]]) -> None:
    signature = Signature(name, tuple(parts), "0.2.0")
    text = str(signature)
    assert Signature.parse(text) == signature
    assert len(text.splitlines()) == 1
    assert text.count("|") == len(parts) + 1


def test_a_signature_ends_with_the_version() -> None:
    signature = Signature.of("bleu-4", [("tokenizer", "ptb")])
    assert str(signature) == f"bleu-4|tokenizer:ptb|caplens:{version('caplens')}"
    assert signature["tokenizer"] == "ptb"


def test_equal_means_comparable() -> None:
    one = Signature.of("bleu-4", [("tokenizer", "ptb"), ("references", "5")])
    assert Signature.parse(str(one)) == one
    assert Signature.of("bleu-4", [("tokenizer", "ptb"), ("references", "4")]) != one
    assert Signature("bleu-4", one.parts, "0.0.1") != one


@pytest.mark.parametrize("key", ["refs", "letters", "caplens", "", "a b", "Sigma", "mine.a:b", "mine."])
def test_keys_that_nobody_declared_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match="signature"):
        Signature.of("vowels", [(key, "1")])


def test_a_key_stands_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        Signature.of("em-score", [("idf", "none"), ("idf", "none")])


def test_plug_ins_declare_keys_or_put_their_name_before_them() -> None:
    assert Signature.of("vowels", [("letters", "aeiou")], declared=["letters"])["letters"] == "aeiou"
    assert Signature.of("vowels", [("vowels.letters", "aeiou")])["vowels.letters"] == "aeiou"


@pytest.mark.parametrize("text", ["", "bleu-4", "bleu-4|tokenizer", "bleu-4|tokenizer:ptb", "|caplens:0.2.0"])
def test_other_texts_are_no_signatures(text: str) -> None:
    with pytest.raises(ValueError, match="not a signature"):
        Signature.parse(text)
