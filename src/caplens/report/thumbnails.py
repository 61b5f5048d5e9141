"""Small copies of the pictures, as data addresses that stand inside a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping

from caplens.captions import Media
from caplens.errors import InputError
from caplens.vision.images import open_image

BYTE_BUDGET = 2_500_000
"""Bytes of thumbnails on one page."""
FEW = 60
"""Up to so many pictures are shown larger."""


def thumbnails(images: Mapping[int, Media | None], order: Iterable[int]) -> dict[int, str]:
    """Row to data address, the rows in `order` first, until the budget is spent; unreadable pictures are left out."""
    width = 360 if len(images) <= FEW else 180
    made: dict[int, str] = {}
    left = BYTE_BUDGET
    for row in dict.fromkeys(order):
        image = images.get(row)
        address = None if image is None else thumbnail(image, width)
        if address is not None:
            left -= len(address)
            if left < 0:
                break
            made[row] = address
    return made


def thumbnail(image: Media, width: int) -> str | None:
    """One picture at most `width` pixels wide and high as a data address; None if it cannot be read."""
    try:
        picture = open_image(image)
    except InputError:
        return None
    picture.thumbnail((width, width))
    stored = io.BytesIO()
    picture.save(stored, "JPEG", quality=80, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(stored.getvalue()).decode("ascii")
