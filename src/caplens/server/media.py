"""Pictures and videos that come with a request: bytes that stay in memory, files below named folders, addresses."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from caplens.core.captions import VIDEO_SUFFIXES
from caplens.core.captions import Media as AnyMedia
from caplens.core.errors import InputError
from caplens.report.thumbnails import middle_frame, small_jpeg
from caplens.server.models import Media
from caplens.server.settings import Settings
from caplens.vision.images import open_image, picture_size


@dataclass(frozen=True)
class Upload:
    """A file that was sent: never on disk, and gone with the request."""

    name: str
    data: bytes

    def open(self) -> BinaryIO:
        """Return it as a stream."""
        return io.BytesIO(self.data)


def picture_of(media: Media | None, settings: Settings, name: str = "the picture") -> AnyMedia | None:
    """Return a picture as metrics take it; an `InputError` says why it is refused."""
    found = _media(media, settings, name)
    if isinstance(found, Upload):
        width, height = picture_size(found.data, found.name)
        if width * height > settings.limits.picture_pixels:
            raise InputError(
                f"has {width * height:,} pixels",
                where=found.name,
                remedy=f"send one of at most {settings.limits.picture_pixels:,}",
            )
    return found


def video_of(media: Media | None, settings: Settings, name: str = "the video") -> AnyMedia | None:
    """Return a video as metrics take it."""
    found = _media(media, settings, name)
    if isinstance(found, Upload) and len(found.data) > settings.limits.video_bytes:
        raise InputError(
            f"is larger than {settings.limits.video_bytes // 2**20} MB",
            where=found.name,
            remedy="name it by its path, below a folder that the server was started with",
        )
    return found


def pictures_of(media: Sequence[Media | None] | None, settings: Settings) -> list[AnyMedia | None] | None:
    """Return the pictures of several captions."""
    if media is None:
        return None
    return [picture_of(entry, settings, f"picture {number}") for number, entry in enumerate(media, 1)]


def frame_of(video: AnyMedia) -> Upload:
    """Return the frame in the middle of a video as a picture."""
    frame = middle_frame(video)
    if frame is None:
        raise InputError("has no frame", where="the video")
    return Upload("the middle frame", small_jpeg(frame, frame.width + frame.height))


def small_copy(path: Path, width: int) -> bytes:
    """Return a JPEG of a picture, or of a video's middle frame, at most `width` pixels wide and high."""
    if path.suffix.lower() not in VIDEO_SUFFIXES:
        return small_jpeg(open_image(path), width)
    frame = middle_frame(path)
    if frame is None:
        raise InputError("has no frame", where=path.name)
    return small_jpeg(frame, width)


def _media(media: Media | None, settings: Settings, name: str) -> AnyMedia | None:
    if media is None:
        return None
    name = media.name or name
    if media.data is not None:
        try:
            data = base64.b64decode(media.data, validate=True)
        except (binascii.Error, ValueError):
            raise InputError("is not base64", where=name, remedy="send the file's bytes in base64") from None
        if not data:
            raise InputError("is empty (0 bytes)", where=name)
        return Upload(name, data)
    if media.path is not None:
        found = settings.find_media(media.path)
        if found is None:  # the same words whether it is there or not: nobody learns what is where
            raise InputError(
                "is not below a folder of this server", where=media.path, remedy="name one at the start: --images DIR"
            )
        return found
    if not settings.allow_urls:
        raise InputError("addresses are not fetched here", where=name, remedy="start the server with --allow-urls")
    return media.url
