"""One explained caption as a self-contained page; what is drawn is what the report draws."""

from __future__ import annotations

from caplens.core.errors import CaplensError
from caplens.evaluation.explain import Explanation
from caplens.report.html import fill
from caplens.report.sample import shorten
from caplens.report.thumbnails import thumbnail

WIDEST = 1000
"""Pixels of the picture on the page."""


def render(explanation: Explanation) -> str:
    """The page as text."""
    picture = _picture(explanation)
    boxed = any(view.details.get("regions") for view in explanation.views)
    return fill(
        "explain.html",
        styles=("page.css", "details.css", "explain.css"),
        scripts=("details.js", "explain.js"),
        data={
            "caption": explanation.caption,
            "picture": picture,
            "views": [view.details for view in explanation.views],
        },
        title=shorten(explanation.caption),
        notes=explanation.notes,
        picture_alone=None if boxed else picture,
        views=explanation.views,
        references=explanation.references,
    )


def _picture(explanation: Explanation) -> str | None:
    if explanation.image is None:
        return None
    try:
        return thumbnail(explanation.pictures.open(explanation.image), WIDEST)
    except CaplensError:  # an address that was looked at before is not fetched again for the page
        return None
