"""Json that every reader takes."""

from __future__ import annotations

import json
import math
from typing import Any


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
