"""The tokenizer's automaton against a slow twin that reads the rules one by one."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from tests.text.ptb_oracle import ALPHABETS, PIECES

from caplens.text.ptb import tokenize

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "caplens" / "native" / "ptb_generator"))

from automaton import Node, Parser
from rules import PATTERNS, RULES, Rule, character_groups, ranges

SETS = {name: ranges(items) for name, items in character_groups().items() if name != "lower"}
TREES = [
    (rule, Parser(rule.pattern, PATTERNS, SETS).parse(), Parser(rule.follow, PATTERNS, SETS).parse()) for rule in RULES
]
AS_IT_STANDS = ("keep", "word")


def ends(node: Node, text: str, starts: set[int]) -> set[int]:
    """Every place where a match of the pattern that begins at one of the starts may end."""
    if node.kind == "units":
        inside = (at for at in starts if at < len(text))
        return {at + 1 for at in inside if any(low <= ord(text[at]) <= high for low, high in node.units)}
    if node.kind == "choice":
        return set().union(*(ends(part, text, starts) for part in node.parts))
    if node.kind == "sequence":
        for part in node.parts:
            starts = ends(part, text, starts)
        return starts
    found = set(starts) if node.least == 0 else set()
    reached, times = starts, 0
    while reached and times != node.most:
        reached = ends(node.parts[0], text, reached) - (found if times >= node.least else set())
        times += 1
        if times >= node.least:
            found |= reached
    return found


def slow_tokens(caption: str) -> list[str] | None:
    """The tokens by trying every rule at every place; None where a token's text would have to be rewritten."""
    letter = next((c for c in caption if c.isascii() and c.isalpha()), "a")
    text = caption + ("\nA\n" if letter.isupper() else "\n")
    tokens, begin = [], 0
    while begin < len(caption):
        best: tuple[int, Rule, int] | None = None
        for rule, pattern, follow in TREES:
            for split in sorted(ends(pattern, text, {begin}), reverse=True):
                reach = max(ends(follow, text, {split}), default=-1)
                if best is None or reach > best[0]:
                    best = (reach, rule, split)
        assert best is not None
        _, rule, split = best
        split -= rule.give_back
        if rule.action == "constant":
            tokens.append(rule.text)
        elif rule.action in AS_IT_STANDS:
            tokens.append(text[begin:split].lower())
        elif rule.action not in ("skip", "drop"):
            return None
        begin = split
    return tokens


@pytest.mark.parametrize("start", range(2))
def test_the_slow_twin_agrees(start: int) -> None:
    chance = random.Random(start)
    pieces = [piece for piece in PIECES if piece.isascii() and piece.isprintable()]
    captions = [chance.choice(("", " ", "-")).join(chance.choices(pieces, k=3)) for _ in range(15)]
    captions += ["".join(chance.choices(chance.choice(ALPHABETS), k=8)) for _ in range(30)]
    slow = {caption: slow_tokens(caption) for caption in captions if caption.isascii()}
    compared = {caption: " ".join(tokens) for caption, tokens in slow.items() if tokens is not None}
    assert len(compared) > 20
    assert dict(zip(compared, tokenize(list(compared)), strict=True)) == compared
