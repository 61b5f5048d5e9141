"""The tokenizer against coco-caption's: stored pairs, golden files, and the jar itself where Java is."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.ptb_oracle import ALPHABETS, PIECES, captions_in, expected, in_file_order, jar

from caplens.text.ptb import tokenize, tokenize_in_file_order

# (caption, tokens), the tokens printed by the jar.
PAIRS = [tuple(pair) for pair in json.loads(Path(__file__).with_name("ptb_pairs.json").read_text())]


@pytest.mark.parametrize(("caption", "tokens"), PAIRS)
def test_tokens_of_the_jar(caption: str, tokens: str) -> None:
    assert tokenize([caption]) == [tokens]


@pytest.mark.parametrize(
    ("caption", "tokens"),
    [
        ("the new Wii U.", "the new wii u."),  # lower-case captions follow one another
        ("The new Wii U.", "the new wii u"),  # the next caption is taken to open a sentence
        ("two\u2028lines\x0bor\x0cmore\r", "two lines or more"),
        ("two\nlines", "two lines"),
        ("lone \ud800 surrogates \udfff", "lone surrogates"),
        ("http://a.b/\ud800c", "http://a.b/\ufffdc"),
        ("http://a.b/c\u00a0", "http://a.b/c"),
        ("\u00ad \u00ad.,", ""),
        ("", ""),
        (" \t ", ""),
    ],
)
def test_what_is_decided_here(caption: str, tokens: str) -> None:
    assert tokenize([caption]) == [tokens]


def test_the_next_line_decides_in_file_order_only() -> None:
    street = "A picture of a road sign that says Branch St. 200 N."
    kept, dropped = ["Street corner", "The", "", "a dog"], ["A street", "The dog"]
    for following, last in [*((line, "n.") for line in kept), *((line, "n") for line in dropped)]:
        assert tokenize_in_file_order([street, following])[0].endswith(f" 200 {last}")
        assert tokenize([street, following])[0].endswith(" 200 n")
    assert tokenize_in_file_order([street]) == tokenize_in_file_order([street, "x"])[:1]
    assert tokenize_in_file_order([]) == []
    assert tokenize_in_file_order(["", "two\nlines \ud800", ""]) == ["", "two lines", ""]


ENDS = """U.|Branch St. 200 N.|no.|No.|figs.|5 a.m.|U.S.|Jan.|Mr.|Inc.|Jr.|Ph.D.|St.|can|'|"|1|1990 2000|555|1 1/2|
(555)|555-|http://a.b|<b|:|...|--|$|&|pp.|vs.|A.|I.|e.g.|D.C.|Calif.|approx.|@|don|got""".replace("\n", "").split("|")
OPENINGS = """A dog|a dog|The|He runs|I|5 dogs|1/2|555-1234|'s dog|n't|"A|“A|(A|Street corner|Mr. X|U.S.|.|, and|
  A dog||na|b>|é|😀 dog|1990|£5|Inc.|According|However,|It's""".replace("\n", "").split("|")


@pytest.mark.oracle
@pytest.mark.skipif(jar() is None, reason="needs Java and the PyPI package pycocoevalcap")
def test_jar_agrees_on_lines_that_touch() -> None:
    lines = [line for end, opening in itertools.product(ENDS, OPENINGS) for line in (f"a dog {end}", opening)]
    theirs = in_file_order(lines)
    assert tokenize_in_file_order(lines) == theirs
    assert tokenize(lines) != theirs


@pytest.mark.shared
@pytest.mark.parametrize("name", ["coco_1k", "coco_5k"])
def test_golden_files(shared: Path, name: str) -> None:
    rows = json.loads((shared / "golden" / f"{name}.json").read_text())
    golden = json.loads((shared / "golden" / f"{name}.tokens.json").read_text())
    assert [tokenize(row["refs"]) for row in rows] == golden["gts"]
    candidates = [tokens if isinstance(tokens, str) else tokens[0] for tokens in golden["res"]]
    assert tokenize([row["cand"] for row in rows]) == candidates


@pytest.mark.oracle
@pytest.mark.shared
@pytest.mark.skipif(jar() is None, reason="needs Java and the PyPI package pycocoevalcap")
def test_jar_agrees_on_real_and_random_captions(shared: Path) -> None:
    chance = random.Random(1)
    captions = chance.sample(captions_in(shared / "data" / "pascal50s"), 5_000)
    captions += [" ".join(chance.choices(PIECES, k=chance.randrange(1, 9))) for _ in range(5_000)]
    captions += ["".join(chance.choices(chance.choice(ALPHABETS), k=10)) for _ in range(5_000)]
    captions += [" ".join(chance.choices(PIECES, k=1_000)) for _ in range(10)]
    pairs = zip(captions, tokenize(captions), expected(captions), strict=True)
    different = [row for row in pairs if row[1] != row[2]]
    assert len(different) <= len(captions) // 1_000, different[:20]


@given(st.lists(st.text(st.characters())))
@settings(max_examples=300)
def test_any_text_is_accepted_and_captions_do_not_touch(texts: list[str]) -> None:
    together = tokenize(texts)
    assert together == [tokenize([text])[0] for text in texts]
    for tokens in together:
        assert "" not in tokens.split(" ") or tokens == ""


def test_two_hundred_thousand_random_texts() -> None:
    chance = random.Random(2)
    letters = [
        *"abnNsSt'.,-/:@#&;<>()[]{}0159$ \"`!?=_+~^|\\",
        "’",
        "é",
        "\u0301",
        "Σ",
        "😀",
        "\ud800",
        "\u00ad",
        "\u2028",
        "中",
    ]
    texts = ["".join(chance.choices(letters, k=chance.randrange(24))) for _ in range(200_000)]
    assert len(tokenize(texts)) == len(texts)
