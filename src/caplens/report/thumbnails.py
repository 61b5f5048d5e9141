"""Small copies of the pictures, as data addresses that stand inside a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from caplens.core.captions import CaptionSet, Media
from caplens.vision.pictures import PictureReader
from caplens.vision.video import Sampling, frames

if TYPE_CHECKING:
    from PIL.Image import Image

BYTE_BUDGET = 2_500_000
"""Bytes of thumbnails on one page."""
FEW = 60
"""Up to so many pictures are shown larger."""


def thumbnails(
    captions: CaptionSet, rows: Collection[int], order: Iterable[int], pictures: PictureReader | None = None
) -> dict[int, str]:
    """Row to data address, the rows in `order` first, until the budget is spent; unreadable pictures are left out.

    A picture behind an address is shown if `pictures`, the reader of the run, has it at hand: a page fetches nothing.
    """
    reader = pictures or PictureReader()
    width = 360 if len(rows) <= FEW else 180
    addresses: dict[int, str] = {}
    left = BYTE_BUDGET
    for row in dict.fromkeys(order):
        picture = _picture(captions, row, reader)
        if picture is not None:
            address = thumbnail(picture, width)
            left -= len(address)
            if left < 0:
                break
            addresses[row] = address
    return addresses


def _picture(captions: CaptionSet, row: int, reader: PictureReader) -> Image | None:
    """The caption's picture, or the middle frame of its video; None if there is none that can be read."""
    image = None if captions.images is None else captions.images[row]
    video = None if captions.videos is None else captions.videos[row]
    try:
        if image is not None:
            return reader.open(image)
        return None if video is None else middle_frame(video)
    except Exception:  # the report has the reason; a page does without the picture
        return None


def thumbnail(picture: Image, width: int) -> str:
    """A copy at most `width` pixels wide and high as a data address."""
    return "data:image/jpeg;base64," + base64.b64encode(small_jpeg(picture, width)).decode("ascii")


def small_jpeg(picture: Image, width: int) -> bytes:
    """A copy at most `width` pixels wide and high as the bytes of a JPEG."""
    small = picture.copy()
    small.thumbnail((width, width))
    stored = io.BytesIO()
    small.save(stored, "JPEG", quality=80, optimize=True)
    return stored.getvalue()


def middle_frame(video: Media) -> Image | None:
    """The frame in the middle of a video; None if it has none."""
    shown = list(frames(video, Sampling.parse("uniform-3")))
    return shown[len(shown) // 2] if shown else None
