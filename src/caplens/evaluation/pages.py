"""How results become pages: the report room registers its renderers here, so that results need not know them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_renderers: dict[str, Callable[..., str]] = {}


def register_page(kind: str, render: Callable[..., str]) -> None:
    """Make `render(result, ...)` the page of results of the class with this name, which need not be imported for it."""
    _renderers[kind] = render


def render_page(result: Any, *arguments: Any) -> str:
    """Return the page of a result as text."""
    return _renderers[type(result).__name__](result, *arguments)
