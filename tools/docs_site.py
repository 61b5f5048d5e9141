"""mkdocs hook: formulas become MathML while the site is built, so that no page loads a script from elsewhere."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex makes of $…$ and $$…$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)


def on_page_content(page: str, **_: Any) -> str:
    """Replace every formula of a page."""
    return FORMULA.sub(lambda match: _mathml(match[2], block=match[1] == "div"), page)


def _mathml(formula: str, block: bool) -> str:
    return str(convert(html.unescape(formula).strip(), display="block" if block else "inline"))
