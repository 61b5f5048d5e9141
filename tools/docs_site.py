"""What the site needs while it is built: formulas as MathML, and the examples of docstrings as code.

mkdocs.yml names this file as a hook and as an extension of griffe. No page loads a script from elsewhere.
"""

from __future__ import annotations

import html
import re
from typing import Any

import griffe
from latex2mathml.converter import convert

# What pymdownx.arithmatex makes of $…$ and $$…$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
# A doctest: its first line, and all lines to the next blank one.
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.M)


def on_page_content(content: str, **_: Any) -> str:
    """Replace every formula of a page."""
    return FORMULA.sub(lambda match: _mathml(match[2], block=match[1] == "div"), content)


def _mathml(formula: str, block: bool) -> str:
    return str(convert(html.unescape(formula).strip(), display="block" if block else "inline"))


class Examples(griffe.Extension):
    """Fences around doctests: without them Markdown takes their brackets for links."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one module, class or function."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", obj.docstring.value)
