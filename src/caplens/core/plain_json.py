"""Json that every reader takes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from caplens.core.errors import InputError, as_caplens_error

ENTRIES_AT_ONCE = 1024


def json_text(value: Any) -> str:
    """Json that every reader takes: NaN and infinity become null, half characters (lone surrogates) are escaped.

    >>> json_text({"score": float("nan"), "half": "\\ud83d"})
    '{"score": null, "half": "\\\\ud83d"}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        value = _finite(value)
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, default=_plain)
    return text


def json_pieces(value: Any) -> Iterator[str]:
    """The text of `json_text` in pieces; a long sequence (lazy details) is never held as a whole.

    An entry of a sequence that cannot be written costs itself only: a note stands in its place.

    >>> "".join(json_pieces({"ids": ["a"], "details": range(3), "none": {}}))
    '{"ids": ["a"], "details": [0, 1, 2], "none": {}}'
    """
    if isinstance(value, Mapping):
        yield "{"
        for number, (key, entry) in enumerate(value.items()):
            yield f"{', ' if number else ''}{json_text(str(key))}: "
            yield from json_pieces(entry)
        yield "}"
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield "["
        for start in range(0, len(value), ENTRIES_AT_ONCE):
            portion = list(value[start : start + ENTRIES_AT_ONCE])
            try:
                text = json_text(portion)[1:-1]
            except Exception:
                text = ", ".join(map(_text_or_note, portion))
            yield f"{', ' if start else ''}{text}"
        yield "]"
    else:
        yield json_text(value)


def _text_or_note(value: Any) -> str:
    try:
        return json_text(value)
    except Exception as error:
        return json_text({"note": f"cannot be written: {as_caplens_error(error)}"})


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise InputError(f"{type(value).__name__} has no form in json")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else _finite(_plain(value))
