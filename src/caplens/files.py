"""Writing files so that nothing half-written is ever seen, and where caplens keeps its own."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path` to write to; renamed on success, removed on any failure, Ctrl-C included."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a whole file, or leave what was there."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_tensors(path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], about: Mapping[str, str]) -> None:
    """Write a safetensors file; the same content gives the same bytes, whose sum signatures show.

    The library itself lists `about` in another order every time.
    """
    from safetensors.numpy import save

    made = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, dict(about))
    end = 8 + int.from_bytes(made[:8], "little")
    header = json.dumps(json.loads(made[8:end]), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    write_atomically(path, len(header).to_bytes(8, "little") + header + made[end:])


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


def cache_folder() -> Path:
    """Where downloaded weights, indexes and embeddings live: $CAPLENS_CACHE, else the user's cache folder."""
    chosen = os.environ.get("CAPLENS_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "caplens"
