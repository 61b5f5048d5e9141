"""Captions that a harness hands over one by one, and judges together at the end."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any, TypedDict

from caplens.core.captions import BinarySource, CaptionSet, Media
from caplens.core.errors import InputError
from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric, Result
from caplens.readers.media import BytesMedia, from_data_address, is_data_address


class Collected(TypedDict):
    """One caption with what it is judged against; None for what was not given."""

    caption: str
    references: list[str] | None
    image: Media | None


def collect(caption: str, references: str | Sequence[str] | None = None, image: Any = None) -> Collected:
    """A caption with its references (or the only one) and its picture: a path, bytes, or an image of Pillow."""
    texts = [references] if isinstance(references, str) else references
    return {"caption": caption, "references": None if texts is None else list(texts), "image": _media(image)}


def judge(metric: Metric, collected: Sequence[Collected]) -> Result:
    """The metric's result on all captions together."""
    if not collected:
        raise InputError(f"{metric.name}: no captions were given", remedy="give some before asking for the score")
    given = {name for row in collected for name, value in row.items() if value is not None}
    captions = CaptionSet.of(
        [row["caption"] for row in collected],
        [row["references"] or [] for row in collected] if "references" in given else None,
        [row["image"] for row in collected] if "image" in given else None,
    )
    return metric.compute(Workspace(captions))


def _media(image: Any) -> Media | None:
    if isinstance(image, str) and is_data_address(image):
        return from_data_address(image, "a picture")
    if image is None or isinstance(image, str | os.PathLike | BinarySource):
        return image
    if isinstance(image, bytes):
        return BytesMedia("a picture", image)
    if hasattr(image, "save"):  # an image of Pillow, as data sets give it
        stored = io.BytesIO()
        image.save(stored, "PNG")
        return BytesMedia("a picture", stored.getvalue())
    raise InputError(f"a picture is a {type(image).__name__}", remedy="give a path, bytes, or an image of Pillow")
