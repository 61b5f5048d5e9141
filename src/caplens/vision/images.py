"""Open any picture as upright 8-bit RGB, or say in one line why it cannot be used."""

from __future__ import annotations

import io
import os
import stat
import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import BinarySource, Media, media_name
from caplens.core.errors import InputError
from caplens.vision.fetch import fetch, is_url

if TYPE_CHECKING:
    from PIL.Image import Image

# Formats that Pillow decodes by itself. Others start a program (EPS) or read further files.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "PPM", "JPEG2000", "AVIF", "ICO", "TGA")
MOST_PIXELS = 120_000_000
"""A picture that unpacks to more than this is refused before it is decoded."""
MOST_BYTES = 256 * 1024 * 1024


def read_media(media: Media, *, allow_urls: bool = False, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of a picture; an `InputError` says why there are none."""
    name = media_name(media)
    if is_url(name):
        if not allow_urls:
            raise InputError(
                "is a URL, and nothing is fetched from the network unless asked",
                where=name,
                remedy="pass allow_urls=True (--allow-urls), or download it first",
            )
        return fetch(name)
    try:
        if isinstance(media, BinarySource) and not isinstance(media, os.PathLike):
            with media.open() as stream:
                data = stream.read(most_bytes + 1)
        else:
            mode = os.stat(os.fspath(media)).st_mode
            if stat.S_ISDIR(mode):
                raise InputError("is a folder, not a picture", where=name)
            if not stat.S_ISREG(mode):
                raise InputError("is not a regular file", where=name)
            with open(os.fspath(media), "rb") as stream:
                data = stream.read(most_bytes + 1)
    except FileNotFoundError:
        raise InputError("no such file", where=name) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise InputError(f"cannot be read ({error})", where=name) from None
    if not data:
        raise InputError("is empty (0 bytes)", where=name)
    if len(data) > most_bytes:
        raise InputError(f"is larger than {most_bytes // 2**20} MB", where=name)
    return data


def open_image(media: Media, *, allow_urls: bool = False) -> Image:
    """A picture as upright RGB; of an animation, its first frame."""
    return decode_image(read_media(media, allow_urls=allow_urls), media_name(media))


def decode_image(data: bytes, name: str) -> Image:
    """A picture from its bytes; `name` is for the message."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Our own limit is lower than the one at which Pillow warns.
            warnings.simplefilter("ignore")
            Image.init()
            formats = [kind for kind in FORMATS if kind in Image.OPEN]
            with Image.open(io.BytesIO(data), formats=formats) as picture:
                width, height = picture.size
                if width < 1 or height < 1:
                    raise InputError("has no pixels", where=name)
                if width * height > MOST_PIXELS:
                    raise InputError(
                        f"would unpack to too many pixels ({width} × {height})", where=name, remedy="reduce the picture"
                    )
                picture.load()
                return to_rgb(ImageOps.exif_transpose(picture))
    except InputError:
        raise
    except Image.DecompressionBombError:
        raise InputError("would unpack to too many pixels", where=name, remedy="reduce the picture") from None
    except UnidentifiedImageError:
        raise InputError("is not a picture in a known format", where=name) from None
    except Exception as error:  # decoders raise whatever the damaged byte happens to break
        raise InputError(f"is damaged ({first_line(error)})", where=name) from None


def to_rgb(picture: Image) -> Image:
    """8-bit RGB; deeper greys are scaled, where Pillow's own conversion would clip them to white.

    >>> from PIL import Image
    >>> to_rgb(Image.fromarray(np.full((1, 1), 0x8080, np.uint16))).getpixel((0, 0))
    (128, 128, 128)
    """
    from PIL import Image

    if picture.mode == "RGB":
        return picture
    if picture.mode in {"I", "F"} or picture.mode.startswith("I;16"):
        values = np.asarray(picture).astype(np.float64)
        values = np.nan_to_num(values)
        if picture.mode == "F":
            values = values * 255 if values.max(initial=0) <= 1 else values
        elif picture.mode != "I" or values.max(initial=0) > 255:
            values = values / 257  # 65535 becomes 255
        grey = np.clip(np.rint(values), 0, 255).astype(np.uint8)
        return Image.fromarray(grey).convert("RGB")
    return picture.convert("RGB")


def scaled(picture: Image, mean: NDArray[np.float32], std: NDArray[np.float32]) -> NDArray[np.float32]:
    """An RGB picture as channels of (value / 255 - mean) / std, worked out in place."""
    channels = np.asarray(picture).transpose(2, 0, 1)
    made: NDArray[np.float32] = np.divide(channels, np.float32(255), dtype=np.float32, order="C")
    made -= mean[:, None, None]
    made /= std[:, None, None]
    return made


def first_line(error: BaseException) -> str:
    """What a foreign exception says, short enough for a reason."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
