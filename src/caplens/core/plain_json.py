"""Json that every reader takes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    """The text of `json_text` in pieces; a sequence that is no list (lazy details) is never held as a whole.

    >>> "".join(json_pieces({"ids": ["a"], "details": range(3), "none": {}}))
    '{"ids": ["a"], "details": [0, 1, 2], "none": {}}'
    """
    if isinstance(value, Mapping):
        yield "{"
        for number, (key, entry) in enumerate(value.items()):
            yield f"{', ' if number else ''}{json_text(str(key))}: "
            yield from json_pieces(entry)
        yield "}"
    elif isinstance(value, Sequence) and not isinstance(value, list | tuple | str):
        yield "["
        for start in range(0, len(value), ENTRIES_AT_ONCE):
            portion = json_text(list(value[start : start + ENTRIES_AT_ONCE]))
            yield f"{', ' if start else ''}{portion[1:-1]}"
        yield "]"
    else:
        yield json_text(value)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as json")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else _finite(_plain(value))
