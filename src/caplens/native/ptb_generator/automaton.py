"""Regular rules to one deterministic automaton over classes of UTF-16 code units.

The notation is the usual one: ``| * + ? {m,n} ( ) [..] [^..]``, ``\\`` escapes, ``\\uXXXX``, ``{name}`` for a named
pattern. A letter outside brackets matches both cases; inside brackets it stands for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LAST_UNIT = 0xFFFF
# What else a case-insensitive letter matches: the long s and the Kelvin sign fold to s and k.
EXTRA_CASE = {"s": 0x017F, "k": 0x212A}

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Node:
    """A pattern tree: kind is 'units', 'sequence', 'choice' or 'repeat'."""

    kind: str
    units: Ranges = ()
    parts: tuple[Node, ...] = ()
    least: int = 0
    most: int | None = None

    def length(self) -> int | None:
        """How many units it always matches, or None where that varies."""
        if self.kind == "units":
            return 1
        lengths = {part.length() for part in self.parts}
        if None in lengths:
            return None
        if self.kind == "sequence":
            return sum(part.length() or 0 for part in self.parts)
        if self.kind == "choice":
            return lengths.pop() if len(lengths) == 1 else None
        return self.least * (lengths.pop() or 0) if self.least == self.most else None


def merge(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorted, disjoint ranges of the same units."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def invert(ranges: Ranges) -> Ranges:
    """All units that are not in the ranges."""
    inverted, start = [], 0
    for low, high in ranges:
        if start < low:
            inverted.append((start, low - 1))
        start = high + 1
    if start <= LAST_UNIT:
        inverted.append((start, LAST_UNIT))
    return tuple(inverted)


class Parser:
    """One pattern text to its tree; names are looked up among the patterns and unit sets given."""

    def __init__(self, text: str, patterns: Mapping[str, str], sets: Mapping[str, Ranges]) -> None:
        self.text, self.patterns, self.sets, self.at = text, patterns, sets, 0

    def parse(self) -> Node:
        node = self.choice()
        if self.at != len(self.text):
            raise ValueError(f"stray {self.text[self.at]!r} at {self.at} in {self.text!r}")
        return node

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def choice(self) -> Node:
        parts = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Node("choice", parts=tuple(parts))

    def sequence(self) -> Node:
        parts = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated())
        return Node("sequence", parts=tuple(parts))

    def repeated(self) -> Node:
        node = self.atom()
        while True:
            sign = self.peek()
            if sign in ("*", "+", "?") and sign:
                self.at += 1
                least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
            elif sign == "{" and self.text[self.at + 1].isdigit():
                end = self.text.index("}", self.at)
                low, comma, high = self.text[self.at + 1 : end].partition(",")
                self.at = end + 1
                least, most = int(low), (int(high) if high else None) if comma else int(low)
            else:
                return node
            node = Node("repeat", parts=(node,), least=least, most=most)

    def atom(self) -> Node:
        sign = self.peek()
        if sign == "(":
            self.at += 1
            node = self.choice()
            if self.peek() != ")":
                raise ValueError(f"unclosed ( in {self.text!r}")
            self.at += 1
            return node
        if sign == "{":
            end = self.text.index("}", self.at)
            name = self.text[self.at + 1 : end]
            self.at = end + 1
            if name in self.sets:
                return Node("units", units=self.sets[name])
            return Parser(self.patterns[name], self.patterns, self.sets).parse()
        if sign == "[":
            return Node("units", units=self.bracket())
        unit = self.unit()
        letter = chr(unit)
        if letter.isascii() and letter.isalpha():
            low, high = ord(letter.lower()), ord(letter.upper())
            extra = EXTRA_CASE.get(letter.lower(), low)
            return Node("units", units=merge([(low, low), (high, high), (extra, extra)]))
        return Node("units", units=((unit, unit),))

    def unit(self) -> int:
        if self.peek() != "\\":
            self.at += 1
            return ord(self.text[self.at - 1])
        kind = self.text[self.at + 1]
        if kind == "u":
            self.at += 6
            return int(self.text[self.at - 4 : self.at], 16)
        self.at += 2
        return ord({"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(kind, kind))

    def bracket(self) -> Ranges:
        self.at += 1
        negated = self.peek() == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        while self.peek() != "]":
            if self.peek() == "{" and self.text[self.at + 1].isalpha():
                end = self.text.index("}", self.at)
                ranges += self.sets[self.text[self.at + 1 : end]]
                self.at = end + 1
                continue
            low = high = self.unit()
            if self.peek() == "-" and self.text[self.at + 1] != "]":
                self.at += 1
                high = self.unit()
            ranges.append((low, high))
        self.at += 1
        return invert(merge(ranges)) if negated else merge(ranges)


def unit_classes(nodes: Iterable[Node]) -> list[int]:
    """The class of each unit: two units share one when no rule tells them apart."""
    found: set[Ranges] = set()

    def walk(node: Node) -> None:
        if node.kind == "units":
            found.add(node.units)
        for part in node.parts:
            walk(part)

    for node in nodes:
        walk(node)
    member: list[int] = [0] * (LAST_UNIT + 1)
    for number, ranges in enumerate(sorted(found)):
        for low, high in ranges:
            for unit in range(low, high + 1):
                member[unit] |= 1 << number
    names: dict[int, int] = {}
    return [names.setdefault(value, len(names)) for value in member]


class Automaton:
    """A growing table of deterministic states; state 0 is dead."""

    def __init__(self, classes: list[int]) -> None:
        self.classes = classes
        self.width = max(classes) + 1
        self.first_of_class = [classes.index(number) for number in range(self.width)]
        self.next: list[list[int]] = [[0] * self.width]
        self.accept: list[int] = [-1]
        self._epsilon: list[list[int]] = []
        self._edge: list[tuple[frozenset[int], int] | None] = []
        self._class_sets: dict[Ranges, frozenset[int]] = {}

    def add(self, rules: list[Node]) -> int:
        """Add the automaton of some rules, the first winning ties; returns its start state."""
        self._epsilon, self._edge = [], []
        start = self._state()
        accepts: dict[int, int] = {}
        for number, node in enumerate(rules):
            begin, end = self._state(), self._state()
            self._epsilon[start].append(begin)
            self._wire(node, begin, end)
            accepts[end] = number
        transitions, accept = self._subsets(start, accepts)
        return self._append(*_minimize(transitions, accept))

    def _state(self) -> int:
        self._epsilon.append([])
        self._edge.append(None)
        return len(self._edge) - 1

    def _classes_in(self, units: Ranges) -> frozenset[int]:
        if units not in self._class_sets:
            inside = {c for c, u in enumerate(self.first_of_class) if any(low <= u <= high for low, high in units)}
            self._class_sets[units] = frozenset(inside)
        return self._class_sets[units]

    def _wire(self, node: Node, begin: int, end: int) -> None:
        if node.kind == "units":
            middle = self._state()
            self._epsilon[begin].append(middle)
            self._edge[middle] = (self._classes_in(node.units), end)
        elif node.kind == "choice":
            for part in node.parts:
                self._wire(part, begin, end)
        elif node.kind == "sequence":
            for part in node.parts:
                after = self._state()
                self._wire(part, begin, after)
                begin = after
            self._epsilon[begin].append(end)
        else:
            for _ in range(node.least):
                after = self._state()
                self._wire(node.parts[0], begin, after)
                begin = after
            if node.most is None:
                loop, after = self._state(), self._state()
                self._epsilon[begin].append(loop)
                self._wire(node.parts[0], loop, after)
                self._epsilon[after].append(loop)
                self._epsilon[loop].append(end)
                return
            for _ in range(node.most - node.least):
                self._epsilon[begin].append(end)
                after = self._state()
                self._wire(node.parts[0], begin, after)
                begin = after
            self._epsilon[begin].append(end)

    def _closure(self, state: int) -> frozenset[int]:
        seen, todo = {state}, [state]
        while todo:
            for target in self._epsilon[todo.pop()]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return frozenset(seen)

    def _subsets(self, start: int, accepts: Mapping[int, int]) -> tuple[list[list[int]], list[int]]:
        closures: dict[int, frozenset[int]] = {}
        # Only states with an edge or an accept tell two subsets apart.
        for state in range(len(self._edge)):
            full = self._closure(state)
            closures[state] = frozenset(s for s in full if self._edge[s] is not None or s in accepts)
        first = closures[start]
        numbers: dict[frozenset[int], int] = {frozenset(): 0, first: 1}
        order = [frozenset(), first]
        transitions: list[list[int]] = []
        accept: list[int] = []
        for subset in order:
            targets: list[set[int]] = [set() for _ in range(self.width)]
            for state in subset:
                edge = self._edge[state]
                if edge is not None:
                    for number in edge[0]:
                        targets[number] |= closures[edge[1]]
            row = []
            for target in targets:
                key = frozenset(target)
                if key not in numbers:
                    numbers[key] = len(order)
                    order.append(key)
                row.append(numbers[key])
            transitions.append(row)
            accept.append(min((accepts[s] for s in subset if s in accepts), default=-1))
        return transitions, accept

    def _append(self, transitions: list[list[int]], accept: list[int]) -> int:
        shift = len(self.next) - 1
        for row in transitions[1:]:
            self.next.append([target + shift if target else 0 for target in row])
        self.accept += accept[1:]
        return shift + 1


def _minimize(transitions: list[list[int]], accept: list[int]) -> tuple[list[list[int]], list[int]]:
    """Merge states that behave alike (Moore); state 0 stays dead and the start stays state 1."""
    block = {value: number for number, value in enumerate(sorted(set(accept)))}
    part = [block[value] for value in accept]
    while True:
        names: dict[tuple[int, ...], int] = {}
        refined = [
            names.setdefault((part[state], *(part[target] for target in row)), len(names))
            for state, row in enumerate(transitions)
        ]
        if len(names) == len(set(part)):
            break
        part = refined
    # Names were given in state order, so the dead state's block is 0 and the start's is 1.
    rows: list[list[int]] = [[] for _ in names]
    accepts = [-1] * len(names)
    for state, row in enumerate(transitions):
        rows[refined[state]] = [refined[target] for target in row]
        accepts[refined[state]] = accept[state]
    return rows, accepts
