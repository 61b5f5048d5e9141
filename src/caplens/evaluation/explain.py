"""Explain one caption, which words are wrong and what was left out: behind `caplens.explain` and `caplens explain`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from caplens.core.captions import CaptionSet, Media, media_name
from caplens.core.details import Details
from caplens.core.errors import InputError, as_caplens_error
from caplens.core.workspace import Workspace
from caplens.evaluation.details import apply_verdict_rules
from caplens.evaluation.evaluate import score_captions
from caplens.evaluation.pages import render_page
from caplens.storage.atomic import write_atomically
from caplens.vision.pictures import PictureReader, pictures_of

PICTURE_METRIC = "infometic"
GRAPH_METRIC = "spice"


@dataclass(frozen=True)
class View:
    """What the caption was compared with, and what came out."""

    name: str
    title: str
    details: Details
    notes: tuple[str, ...] = ()
    signature: str = ""


@dataclass(frozen=True)
class Explanation:
    """One caption, explained by its picture, by its references, or by both.

    >>> explanation = explain("a cat on a mat", references=["a dog on a mat"])
    >>> explanation.wrong_words(), explanation["references"]["missing"][0]["text"]
    (['cat'], 'dog')
    """

    caption: str
    references: list[str]
    image: Media | None
    views: tuple[View, ...]
    notes: tuple[str, ...] = ()
    """What could not be done, and how to have it done."""
    pictures: PictureReader = field(default_factory=PictureReader, repr=False, compare=False)
    """What was read and decoded, for the page to show."""

    def __getitem__(self, name: str) -> Details:
        """The details of one view: ``"picture"`` or ``"references"``."""
        for view in self.views:
            if view.name == name:
                return view.details
        raise KeyError(f"not explained by {name}; this explanation has: {', '.join(view.name for view in self.views)}")

    def wrong_words(self) -> list[str]:
        """Words that some view finds wrong, in the order of the caption."""
        words = (word for view in self.views for word in view.details.get("words", []))
        return list(dict.fromkeys(word["text"] for word in words if word.get("status") == "wrong"))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values."""
        return {
            "caption": self.caption,
            "image": None if self.image is None else media_name(self.image),
            "references": self.references,
            "explanations": {
                view.name: {**view.details, "notes": list(view.notes), "signature": view.signature}
                for view in self.views
            },
            "notes": list(self.notes),
        }

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained page."""
        write_atomically(path, render_page(self))


def explain(
    caption: str, image: Media | None = None, references: Sequence[str] | None = None, **options: Any
) -> Explanation:
    """Say which words of a caption are wrong and what it leaves out.

    Args:
        caption: the caption to judge.
        image: its picture; what is in it is compared with the words (the metric infometic).
        references: captions that people wrote; their words are compared.
        options: passed to the metric that looks at the picture, such as ``encoder=``.
    """
    if not isinstance(caption, str) or not caption.strip():
        raise InputError("the caption is empty", remedy="write at least one word")
    if isinstance(references, str):
        raise InputError("references is one string", remedy="put it into a list: [reference]")
    cited = [text for text in references or () if text.strip()]
    if image is None and not cited:
        raise InputError(
            "there is nothing to compare the caption with",
            remedy="give its picture (image=, PICTURE) or references (references=, --reference TEXT)",
        )
    views: list[View] = []
    notes: list[str] = []
    pictures = PictureReader()
    if image is not None:
        captions = CaptionSet.of([caption], [cited] if cited else None, images=[image])
        work = Workspace(captions, strict=True, quiet=True)
        pictures = pictures_of(work)
        pictures.open(image, allow_urls=bool(options.get("allow_urls")))  # one that cannot be read ends it here
        try:
            views.append(_by_picture(work, options))
        except Exception as error:
            if not cited:
                raise
            notes.append(f"the picture was not looked at: {as_caplens_error(error)}")
    if cited:
        views.append(_by_references(caption, cited))
    return Explanation(caption, cited, image, tuple(views), tuple(notes), pictures)


def _by_picture(work: Workspace, options: dict[str, Any]) -> View:
    result = score_captions(work, PICTURE_METRIC, options)[PICTURE_METRIC]
    details = apply_verdict_rules(result.explained(0))
    notes = tuple(note for note in result.notes if note != details.get("note"))  # said once is enough
    return View("picture", "Compared with the picture", details, notes, result.signature)


def _by_references(caption: str, references: list[str]) -> View:
    from caplens.evaluation.reference_support import ReferenceMatcher  # with METEOR and WordNet: not at every start

    support = ReferenceMatcher()
    notes = list(support.notes)
    try:
        work = Workspace(CaptionSet.of([caption], [references]), strict=True, quiet=True)
        graph = score_captions(work, GRAPH_METRIC)[GRAPH_METRIC].explained(0)
    except Exception as error:
        graph = None
        notes.append(f"scene graphs were left out: {as_caplens_error(error)}")
    [details] = support.explain([caption], [references], [graph])
    title = f"Compared with {len(references)} reference{'' if len(references) == 1 else 's'}"
    return View("references", title, details, tuple(notes))
