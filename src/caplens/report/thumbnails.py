"""Small copies of the pictures, as data addresses that stand inside a page."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from caplens.captions import BinarySource, Media

BYTE_BUDGET = 2_500_000
"""Bytes of thumbnails on one page."""
FEW = 60
"""Up to so many pictures are shown larger."""


def thumbnails(images: Mapping[int, Media | None], order: Iterable[int]) -> dict[int, str]:
    """Row to data address, the rows in `order` first, until the budget is spent; unreadable pictures are left out."""
    width = 360 if len(images) <= FEW else 180
    made: dict[int, str] = {}
    left = BYTE_BUDGET
    for row in dict.fromkeys(row for row in order if images.get(row) is not None):
        address = thumbnail(images[row], width)
        if address is not None:
            left -= len(address)
            if left < 0:
                break
            made[row] = address
    return made


def thumbnail(image: Media | None, width: int) -> str | None:
    """One picture at most `width` pixels wide and high as a data address; None if it cannot be read."""
    from PIL import Image, ImageOps

    try:
        with _open(image) as file, Image.open(file) as picture:
            picture.draft("RGB", (width * 2, width * 2))  # lets a JPEG decode at a fraction of its size
            upright = ImageOps.exif_transpose(picture)
            upright.thumbnail((width, width))
            if "A" in upright.getbands() or "transparency" in upright.info:
                upright = upright.convert("RGBA")
                ground = Image.new("RGBA", upright.size, "white")
                upright = Image.alpha_composite(ground, upright)
            stored = io.BytesIO()
            upright.convert("RGB").save(stored, "JPEG", quality=80, optimize=True)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return "data:image/jpeg;base64," + base64.b64encode(stored.getvalue()).decode("ascii")


def _open(image: Media | None) -> io.BufferedIOBase | io.BytesIO:
    if isinstance(image, str | os.PathLike):
        if "://" in str(image):
            raise OSError("pictures on the web are not fetched")
        return Path(image).open("rb")
    if isinstance(image, BinarySource):
        with image.open() as file:
            return io.BytesIO(file.read())
    raise OSError("no picture")
