"""What a judge's answer says: the score, the reason, and the score smoothed by the probabilities of its digits."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Nothing is tried twice (`*+`, `++`): what a server sends may be a megabyte of spaces or digits.
NUMBER = r"[-+]?\d++(?:\.\d++)?+"
_NAMED = rf"[\"']?\b(?:NAME)\b[\"']?\s*+[:=]\s*+[\"']?\s*+({NUMBER})"
_MARKED = re.compile(rf"\$\s*+({NUMBER})")  # as G-VEval's own prompts ask for it
_BARE = re.compile(rf"\s*+({NUMBER})\s*+(?:%|/\s*+{NUMBER})?+(?![\w.]*\d)")
_REASONS = ("reason", "explanation", "reasoning")


@dataclass(frozen=True)
class Token:
    """A piece of an answer, with the probabilities of what could have stood there."""

    text: str
    alternatives: Mapping[str, float]


@dataclass(frozen=True)
class Verdict:
    """A readable answer."""

    score: float
    reason: str
    span: tuple[int, int]
    """Where the number stands in the answer."""


def read_verdicts(text: str, low: float, high: float, criteria: Sequence[str] = ()) -> list[Verdict] | None:
    """Return what an answer says, of each criterion if there are some; None where a score on the scale is lacking.

    >>> read_verdicts('{"accuracy": 90, "relevance": 40}', 0, 100, ["relevance", "accuracy"])
    [Verdict(score=40.0, reason='', span=(30, 32)), Verdict(score=90.0, reason='', span=(13, 15))]
    """
    if not criteria:
        verdict = read_verdict(text, low, high)
        return None if verdict is None else [verdict]
    found = [_on_scale(text, _last_named(text, criterion), low, high) for criterion in criteria]
    verdicts = [verdict for verdict in found if verdict is not None]
    return verdicts if len(verdicts) == len(criteria) else None


def read_verdict(text: str, low: float, high: float) -> Verdict | None:
    """Return what an answer says; None where it holds no score on the scale.

    >>> read_verdict('{"score": 85, "reason": "Both are of a d', 0, 100)
    Verdict(score=85.0, reason='Both are of a d', span=(10, 12))
    """
    marked = _last_named(text, "score|rating") or next(reversed(list(_MARKED.finditer(text))), None)
    return _on_scale(text, marked or _BARE.match(text), low, high)


def _last_named(text: str, name: str) -> re.Match[str] | None:
    """The number after a name; where reasons come first they may speak of it, so the last one counts."""
    return next(reversed(list(re.finditer(_NAMED.replace("NAME", name), text, re.I))), None)


def _on_scale(text: str, found: re.Match[str] | None, low: float, high: float) -> Verdict | None:
    if found is None:
        return None
    score = float(found[1])
    if not (math.isfinite(score) and low <= score <= high):
        return None
    fields = repaired_object(text) or {}
    given = next((fields[key] for key in _REASONS if isinstance(fields.get(key), str)), None)
    return Verdict(score, (given if given is not None else _rest(text, found)).strip(), found.span(1))


def _rest(text: str, found: re.Match[str]) -> str:
    """What an answer that is no JSON says beside the number."""
    return "" if "{" in text else (text[: found.start()] + text[found.end() :])


def repaired_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in an answer: between other words, in a code fence, cut short, or in Python's spelling.

    >>> repaired_object("Sure!\\n```json\\n{'score': 7, 'reason': 'fine',}\\n```")
    {'score': 7, 'reason': 'fine'}
    """
    start = text.find("{")
    if start < 0:
        return None
    end = text.rfind("}")
    body = text[start : end + 1] if end > start else text[start:]
    for attempt in (body, re.sub(r",\s*([}\]])", r"\1", body), _closed(body)):
        try:
            value = json.loads(attempt, strict=False)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    try:
        value = ast.literal_eval(body)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict) else None


def _closed(body: str) -> str:
    """A cut object with what it lacks at its end."""
    inside, escaped, stack = False, False, list[str]()
    for letter in body:
        if inside:
            inside = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            inside = True
        elif letter in "{[":
            stack.append("}" if letter == "{" else "]")
        elif letter in "}]" and stack:
            stack.pop()
    return body + ('"' if inside else "") + "".join(reversed(stack))


def smoothed_score(text: str, tokens: Sequence[Token], verdict: Verdict, low: float, high: float) -> float | None:
    """Return the expected score under the probabilities of its digits (FLEUR, section 3.2; G-VEval).

    A number that is one token is the mean of all numbers that could have stood there. One of several tokens is taken
    digit by digit, each the mean of the digits of its length. Before a point, 1 means 1.0, and where 1.0 was said, 0
    means 0.9, as FLEUR has it. None where the tokens are not those of the text.
    """
    if not tokens or "".join(token.text for token in tokens) != text:
        return None
    pieces = _pieces(tokens, verdict.span)
    number = text[slice(*verdict.span)].lstrip("+")
    if number.startswith("-") or "".join(shown for shown, _ in pieces) != number:
        return None
    if len(pieces) == 1:
        return _expected({value: p for value, p in _numbers(pieces[0][1]).items() if low <= value <= high})
    whole, _, _ = number.partition(".")
    if "." in number and whole in ("0", "1"):
        return _expected_share(pieces)
    expected, right = 0.0, len(whole)
    for shown, alternatives in pieces:
        digits = shown.strip(".")
        if not digits:
            continue
        right -= len(digits)
        mean = _expected({int(other): p for other, p in alternatives.items() if _alike(other, digits)})
        expected += (float(digits) if mean is None else mean) * 10.0**right
    return min(max(expected, low), high)


def _expected_share(pieces: Sequence[tuple[str, Mapping[str, float]]]) -> float:
    """The expected value of a number from 0.0 to 1.0."""
    shown, alternatives = pieces[0]
    first = {digit: alternatives.get(digit, 0.0) + alternatives.get(f"{digit}.", 0.0) for digit in "01"}
    decimals, place = 0.0, 0
    for piece, others in pieces[1:]:
        digits = piece.strip(".")
        if digits:
            place += len(digits)
            mean = _expected({int(other.strip(".")): p for other, p in others.items() if _alike(other, digits)})
            decimals += (float(digits) if mean is None else mean) * 10.0**-place
    if not sum(first.values()):
        first[shown.strip(".")] = 1.0
    of_one = first["1"] / sum(first.values())
    if shown.startswith("1"):
        return of_one * 1.0 + (1 - of_one) * 0.9
    return of_one * 1.0 + (1 - of_one) * decimals


def _alike(other: str, digits: str) -> bool:
    """Whether a token could stand for these digits: as many, and nothing else."""
    plain = other.strip(".")
    return plain.isascii() and plain.isdigit() and len(plain) == len(digits)


def _pieces(tokens: Sequence[Token], span: tuple[int, int]) -> list[tuple[str, dict[str, float]]]:
    """What of each token lies inside the number, and the alternatives without what surrounds it."""
    pieces, start = [], 0
    for token in tokens:
        end = start + len(token.text)
        left, right = max(start, span[0]), min(end, span[1])
        if left < right:
            before, after = token.text[: left - start], token.text[right - start :]
            merged: dict[str, float] = {}
            for text, probability in token.alternatives.items():
                inner = text.removeprefix(before)
                inner = inner[: -len(after)] if after and inner.endswith(after) else inner
                merged[inner.strip()] = merged.get(inner.strip(), 0.0) + probability
            pieces.append((token.text[left - start : right - start], merged))
        start = end
    return pieces


def _numbers(alternatives: Mapping[str, float]) -> dict[float, float]:
    found: dict[float, float] = {}
    for text, probability in alternatives.items():
        if re.fullmatch(r"\d+(?:\.\d+)?", text, re.ASCII):
            found[float(text)] = found.get(float(text), 0.0) + probability
    return found


def _expected(values: Mapping[float, float] | Mapping[int, float]) -> float | None:
    total = sum(values.values())
    return sum(value * probability for value, probability in values.items()) / total if total > 0 else None
