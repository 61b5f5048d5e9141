"""Write the tokenizer's tables as C++: ``python build.py FOLDER``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from automaton import Automaton, Node, Parser, Ranges, invert, merge, unit_classes
from rules import PATTERNS, RULES, character_groups, ranges

STRIDE = 128  # cells in a row of the automaton; the last stands for the end of the text
ACCEPTING = 1 << 15  # set in the number of a state in which a rule is complete
BLOCK = 256  # units in one block of the two-stage class table
IDEOGRAPHS: Ranges = ((0x2E80, 0xA4CF), (0xF900, 0xFAFF))  # a word on their own each, so no sigma is in their word


def array(kind: str, name: str, values: Iterable[int]) -> str:
    return f"constexpr {kind} {name}[] = {{{','.join(map(str, values))}}};\n"


def two_stages(values: Sequence[int]) -> tuple[list[int], list[int]]:
    """Blocks of values, equal ones stored once: the block number of each block, then the blocks."""
    numbers: dict[tuple[int, ...], int] = {}
    first = [numbers.setdefault(tuple(values[at : at + BLOCK]), len(numbers)) for at in range(0, len(values), BLOCK)]
    return first, [value for block in numbers for value in block]


def automaton_tables() -> str:
    sets = {name: ranges(items) for name, items in character_groups().items() if name != "lower"}

    def parse(pattern: str) -> Node:
        return Parser(pattern, PATTERNS, sets).parse()

    whole = [parse(f"({rule.pattern})({rule.follow})" if rule.follow else rule.pattern) for rule in RULES]
    classes = unit_classes(whole)
    automaton = Automaton(classes)
    start = automaton.add(whole)
    rows = []
    for rule in RULES:
        fixed = head = context = 0
        if rule.follow:
            length = parse(rule.follow).length()
            if length is None:
                head, context = automaton.add([parse(rule.pattern)]), automaton.add([parse(rule.follow)])
            fixed = length or 0
        rows.append(f'{{Action::{rule.action}, {rule.give_back}, {fixed}, {head}, {context}, "{rule.text}"}}')
    if automaton.width >= STRIDE or len(automaton.next) >= ACCEPTING:
        raise ValueError(f"{automaton.width} classes and {len(automaton.next)} states do not fit the tables")
    first, second = two_stages(classes)
    marked = [state | ACCEPTING * (rule >= 0) for state, rule in enumerate(automaton.accept)]
    cells = (marked[target] for row in automaton.next for target in row + [0] * (STRIDE - len(row)))
    return (
        f"constexpr size_t kStride = {STRIDE};\nconstexpr State kStart = {start}, kAccepting = {ACCEPTING};\n"
        + array("uint8_t", "kBlock", first)
        + array("uint8_t", "kClass", second)
        + array("State", "kNext", cells)
        + array("uint8_t", "kRule", (max(rule, 0) for rule in automaton.accept))
        + f"constexpr Rule kRules[] = {{{', '.join(rows)}}};\n"
    )


def character_tables() -> str:
    groups = character_groups()
    cased = ranges(groups["cased"])
    every = merge([*cased, *(pair for name in ("letter", "mark", "digit") for pair in ranges(groups[name]))])
    in_word = invert(merge([*invert(every), *IDEOGRAPHS]))
    runs = []
    for item in groups["lower"]:  # first-last/step+distance
        match = re.fullmatch(r"(\w+)(?:-(\w{4,}))?(?:/(\d))?([+-]\d+)", item)
        if not match:
            raise ValueError(f"{item!r} is no run of capitals")
        first, last, step, shift = match.groups()
        runs.append(f"{{0x{first}, 0x{last or first}, {step or 1}, {int(shift)}}}")
    return (
        array("char32_t", "kCased", (bound for low, high in cased for bound in (low, high + 1)))
        + array("char32_t", "kInWord", (bound for low, high in in_word for bound in (low, high + 1)))
        + f"constexpr CaseRun kLower[] = {{{', '.join(runs)}}};\n"
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.joinpath("ptb_automaton.inc").write_text(automaton_tables())
    folder.joinpath("ptb_characters.inc").write_text(character_tables())
