"""What is sent to a judge: the words, and pictures made small enough."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST_SIDE = 1024
"""Pixels of a picture as it is sent."""


def as_jpeg(picture: Image) -> bytes:
    """Return a picture as it is sent."""
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=90)
    return stream.getvalue()


def message_content(text: str, pictures: Sequence[bytes]) -> str | Sequence[dict[str, Any]]:
    """Return the content of a chat message."""
    if not pictures:
        return text
    addresses = [f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}" for picture in pictures]
    shown = [{"type": "image_url", "image_url": {"url": address}} for address in addresses]
    return [{"type": "text", "text": text}, *shown]
