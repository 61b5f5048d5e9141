"""What a result depends on, written out: two equal identities give equal results, so results are kept under them.

What cannot be named (a lambda, an object that does not say what it is) has an identity of its own in this process and
none beyond it: it equals nothing else, and nothing computed with it is kept on disk.
"""

from __future__ import annotations

import hashlib
import inspect
import operator
import os
import secrets
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from caplens.storage.digests import content_digest


@dataclass(frozen=True)
class Identity:
    """A text that says everything, and whether another process would write the same text."""

    text: str
    lasting: bool = True
    """Whether what was computed may be kept beyond this process."""

    @property
    def digest(self) -> str:
        """The sha256 of the text."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @classmethod
    def of(cls, value: object) -> Identity:
        """Return the identity of a value: plain values, containers, arrays, named functions and classes, and objects
        with an `identity` (a text, an `Identity`, or a method that returns one).

        >>> Identity.of({"sigma": 6.0, "names": ["ptb"]}).text
        "{'names': ['ptb'], 'sigma': 6.0}"
        >>> Identity.of(str.split).lasting, Identity.of(lambda text: text).lasting
        (True, False)
        """
        if isinstance(value, Identity):
            return value
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return cls(_plain(value))
        if isinstance(value, os.PathLike):
            return cls(f"path {os.fspath(value)!r}")
        if isinstance(value, Mapping):
            pairs = sorted((cls.of(key), cls.of(entry)) for key, entry in value.items())
            return _joined(
                "{", [cls(f"{key.text}: {entry.text}", key.lasting and entry.lasting) for key, entry in pairs], "}"
            )
        if isinstance(value, Set):
            return _joined("{", sorted(map(cls.of, value)), "}")
        if isinstance(value, list | tuple):
            return _joined("[", list(map(cls.of, value)), "]")
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return cls(f"array {value.dtype} {value.shape} {content}")
        return _named(value)

    def __lt__(self, other: Identity) -> bool:
        return self.text < other.text


def callable_name(function: Callable[..., Any]) -> str:
    """Return what signatures call a function: module and name, and a mark of its own where another could have that.

    >>> callable_name(str.split)
    'builtins.str.split'
    """
    name = _qualified_name(function)
    if _is_named(function):
        return name
    declared = _declared_identity(function)
    return f"{name}@{_mark(function) if declared is None else declared.text}"


def _plain(value: object) -> str:
    if isinstance(value, float):
        return repr(float(value))  # numpy's floats are floats too
    return repr(value)


def _entry(key: Identity, value: Identity) -> Identity:
    return Identity(f"{key.text}: {value.text}", key.lasting and value.lasting)


def _joined(start: str, parts: Sequence[Identity], end: str) -> Identity:
    return Identity(start + ", ".join(part.text for part in parts) + end, all(part.lasting for part in parts))


def _named(value: object) -> Identity:
    """Classes and functions by name and code; other objects by what they say of themselves."""
    declared = _declared_identity(value)
    if declared is not None:
        return Identity(f"{_qualified_name(type(value))} {declared.text}", declared.lasting)
    if callable(value) and _is_named(value):
        return Identity(f"{_qualified_name(value)} {_code(value)}")
    return Identity(f"{_qualified_name(value)} {_mark(value)}", lasting=False)


def _declared_identity(value: object) -> Identity | None:
    """What an object says it is; a class speaks of its objects, not of itself."""
    own = None if isinstance(value, type) else getattr(value, "identity", None)
    own = own() if callable(own) else own
    return own if isinstance(own, Identity) else Identity(own) if isinstance(own, str) else None


def _qualified_name(value: object) -> str:
    described = value if hasattr(value, "__qualname__") else type(value)
    owner = getattr(described, "__objclass__", described)  # str.split has no module, str has
    module = getattr(owner, "__module__", None) or type(described).__module__
    return f"{module}.{described.__qualname__}"


def _is_named(value: object) -> bool:
    """Whether whoever imports the name gets this very value; names of `__main__` mean something else in every run."""
    name = getattr(value, "__qualname__", None)
    module = _module_name(value)
    if name is None or module is None or module == "__main__" or module not in sys.modules:
        return False
    # A module may offer a method of an object of its own, as jieba.cut; such a method is made anew at every look.
    same: Callable[[object, object], bool] = operator.eq if inspect.ismethod(value) else operator.is_
    return any(same(_resolve(sys.modules[module], path), value) for path in (name, getattr(value, "__name__", name)))


def _module_name(value: object) -> str | None:
    name: str | None = getattr(getattr(value, "__objclass__", value), "__module__", None)
    return name


def _resolve(module: object, path: str) -> object:
    value = module
    for part in path.split("."):
        value = getattr(value, part, None)
    return value


def _code(value: Any) -> str:
    """The digest of the file that defines a function or class, as it was at first; without one, Python's version."""
    path = getattr(sys.modules.get(_module_name(value) or ""), "__file__", None)
    if path is None or not os.path.isfile(path):
        return f"python {sys.version}"
    definition = getattr(value, "__func__", value)
    try:
        with _lock:  # what runs is what was imported, whatever the file has become since
            return _codes.setdefault(definition, content_digest(path))
    except TypeError:  # made by an extension module, which is not edited while it is used
        return content_digest(path)


_lock = threading.Lock()
_codes: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_marks: dict[int, tuple[Callable[[], object], str]] = {}
"""By `id` the object, or nothing when it is gone, and its mark."""


def _mark(value: object) -> str:
    """A word that stands for one object as long as it lives, and never for another, here or in another process."""
    owner = getattr(value, "__self__", value)  # a bound method is made anew each time it is asked for
    with _lock:
        known = _marks.get(id(owner))
        if known is not None and known[0]() is owner:
            return known[1]
        mark = f"local-{secrets.token_hex(4)}"
        _marks[id(owner)] = _holder(owner), mark
        return mark


def _holder(value: object) -> Callable[[], object]:
    number = id(value)
    try:
        return weakref.ref(value, lambda _: _marks.pop(number, None))
    except TypeError:
        return lambda: value  # nothing tells when it is gone, so it stays
