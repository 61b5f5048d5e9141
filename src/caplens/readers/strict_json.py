"""Json without surprises: keys that stand twice, endless nesting and numbers without end are refused by their place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from caplens.core.errors import InputError
from caplens.readers.limits import ReadLimits
from caplens.readers.source import Source

_SPACE = re.compile(r"[ \t\r\n]*")
_NEAR_THE_END = 16
"""An error this close to the end of what was read (a word, an escape) may vanish with the next piece."""


class _DuplicateKey(Exception):
    """A key stands twice in one object; Python's reader would keep the last silently, and a caption would be lost."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        raise _DuplicateKey(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def parse(text: str, where: str, limits: ReadLimits) -> Any:
    """The value of a json text; what is wrong with it is told with the column it stands in."""
    try:
        value, end = _DECODER.raw_decode(text, _SPACE.match(text).end())  # type: ignore[union-attr]
        end = _SPACE.match(text, end).end()  # type: ignore[union-attr]
        if end < len(text):
            raise json.JSONDecodeError("Extra data", text, end)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise InputError(f"not json: {error.msg} at {line}column {error.colno}", where=where) from None
    except (RecursionError, ValueError, _DuplicateKey) as error:
        raise _refusal(error, where, limits) from None
    # Few brackets cannot be deep, and counting them is quicker than looking inside.
    if text.count("[") + text.count("{") > limits.depth and _is_deeper(value, limits.depth):
        raise _too_deep(where, limits)
    return value


def _is_deeper(value: Any, most: int) -> bool:
    """Whether more than this many lists and objects stand inside each other."""
    level, depth = [value], 1
    while level := [
        child
        for parent in level
        for child in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
        if isinstance(child, dict | list)
    ]:
        depth += 1
        if depth > most:
            return True
    return False


def _too_deep(where: str, limits: ReadLimits) -> InputError:
    return limits.exceeded("depth", "lists and objects are nested too deeply", where)


def _refusal(error: Exception, where: str, limits: ReadLimits) -> InputError:
    if isinstance(error, RecursionError):
        return _too_deep(where, limits)
    if isinstance(error, _DuplicateKey):
        key = error.args[0]
        return InputError(f"the key {key[:60]!r} stands twice in one object", where=where, remedy="keep one of them")
    return InputError("a number has thousands of digits", where=where, remedy="write it as text, in quotes")


class JsonStream:
    """Reads a json document value by value, so that a long list never stands in memory as a whole."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._pieces: Iterator[str] | None = source.pieces()
        self._text = ""
        self._position = 0
        self._lines = 0  # newlines, and characters since the last one, in what was dropped from _text
        self._column = 0

    def peek(self) -> str:
        """The next character that is not white space, "" at the end."""
        while True:
            self._position = _SPACE.match(self._text, self._position).end()  # type: ignore[union-attr]
            if self._position < len(self._text) or not self._more():
                return self._text[self._position : self._position + 1]

    def begins(self, *starts: str) -> bool:
        """Whether one of these pairs of characters comes next, white space apart."""
        first = self.peek()
        while True:
            second = _SPACE.match(self._text, self._position + 1).end()  # type: ignore[union-attr]
            if second < len(self._text) or not self._more():
                return first + self._text[second : second + 1] in starts

    def take(self, character: str) -> bool:
        """Step over the character if it comes next."""
        if self.peek() != character:
            return False
        self._position += 1
        return True

    def value(self) -> Any:
        """The next value, whole."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._position)
                # A number or word at the very end may go on in the next piece.
                if end < len(self._text) or not self._more():
                    break
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - _NEAR_THE_END
                if not cut or not self._more():
                    raise self.error(error.msg, error.pos) from None
            except (RecursionError, ValueError, _DuplicateKey) as error:
                raise _refusal(error, self.place(), self.source.limits) from None
            self.source.budget.check_field(len(self._text) - self._position, "one value", self.place())
        brackets = self._text.count("[", self._position, end) + self._text.count("{", self._position, end)
        if brackets > self.source.limits.depth and _is_deeper(value, self.source.limits.depth):
            raise _too_deep(self.place(), self.source.limits)
        self._position = end
        return value

    def elements(self) -> Iterator[int]:
        """Numbers the elements of the list that comes next; the caller takes each with `value` or `skip`."""
        self._expect("[")
        number = 0
        if not self.take("]"):
            while True:
                number += 1
                self.source.budget.spend_row()
                yield number
                if not self.take(","):
                    break
            self._expect("]")

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next; the caller takes each value."""
        self._expect("{")
        seen: set[str] = set()
        if not self.take("}"):
            while True:
                if self.peek() != '"':
                    raise self.error("Expecting property name enclosed in double quotes")
                key = self.value()
                if key in seen:
                    raise _refusal(_DuplicateKey(key), self.place(), self.source.limits)
                seen.add(key)
                self._expect(":")
                self.source.budget.spend_row()
                yield key
                if not self.take(","):
                    break
            self._expect("}")

    def skip(self) -> None:
        """Step over the next value without keeping it."""
        if self.peek() == "[":
            for _ in self.elements():
                self.value()
        else:
            self.value()

    def finish(self) -> None:
        """Nothing may follow."""
        if self.peek():
            raise self.error("Extra data")

    def place(self, position: int | None = None) -> str:
        """File and line of the next value, or of a position in the text."""
        line, _ = self._line_and_column(position)
        return f"{self.source.name}, line {line}"

    def error(self, problem: str, position: int | None = None) -> InputError:
        line, column = self._line_and_column(position)
        return InputError(f"not json: {problem}", where=f"{self.source.name}, line {line}, column {column}")

    def _line_and_column(self, position: int | None) -> tuple[int, int]:
        end = self._position if position is None else position
        newline = self._text.rfind("\n", 0, end)
        column = end - newline if newline >= 0 else self._column + end + 1
        return self._lines + self._text.count("\n", 0, end) + 1, column

    def _expect(self, character: str) -> None:
        if not self.take(character):
            raise self.error(f"Expecting {character!r}")

    def _more(self) -> bool:
        """Read another piece; what has been passed is dropped. False at the end of the file."""
        if self._pieces is None:
            return False
        # A long value is read in ever larger steps: each step decodes it from its start again.
        needed = max(1, len(self._text) - self._position)
        added: list[str] = []
        while needed > 0:
            piece = next(self._pieces, None)
            if piece is None:
                self._pieces = None
                break
            added.append(piece)
            needed -= len(piece)
        passed = self._text[: self._position]
        newlines = passed.count("\n")
        self._column = len(passed) - passed.rfind("\n") - 1 if newlines else self._column + len(passed)
        self._lines += newlines
        self._text = self._text[self._position :] + "".join(added)
        self._position = 0
        return bool(added)
