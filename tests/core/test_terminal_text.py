"""One function makes text safe to print."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from caplens.core.terminal_text import printable, printable_json

TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""Kinds of characters that turn the direction of the text around them."""


@given(st.text(st.characters(), max_size=40))
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    for character in shown:
        assert unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}
        assert unicodedata.bidirectional(character) not in TURNING
    if text.isprintable():
        assert shown == text


@given(st.text(max_size=40))
def test_json_keeps_its_values(text: str) -> None:
    shown = printable_json(json.dumps({text: [text]}, ensure_ascii=False, indent=1))
    assert json.loads(shown) == {text: [text]}
    assert printable(shown.replace("\n", "")) == shown.replace("\n", "")
