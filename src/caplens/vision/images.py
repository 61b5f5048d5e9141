"""Open any picture as upright 8-bit RGB, or say in one line why it cannot be used."""

from __future__ import annotations

import io
import os
import stat
import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import BinarySource, Media, media_name
from caplens.core.errors import InputError
from caplens.vision.fetch import fetch, is_url

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

# Formats that Pillow decodes by itself and whose header says what they unpack to. Others start a program (EPS), read
# further files, or hold a picture of another size than they say (ICO).
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "PPM", "JPEG2000", "AVIF", "TGA")
MOST_BYTES = 256 * 1024 * 1024
"""Of a file."""
MOST_DECODED_BYTES = 480_000_000
"""A picture that would take more memory than this is refused before it is decoded: 120 megapixels of 8-bit RGB."""
MOST_SIDE = 65_535
"""Pixels of width or height, as many as a JPEG can have: bringing a longer ribbon to size takes gigabytes."""
MOST_SCANS = 64
"""Of a progressive JPEG, which has about ten. Each goes over the whole picture, so that a file of a megabyte could keep
the decoder busy for an hour."""
SLOW_DECODERS = frozenset({"bmp_rle", "ppm_plain"})
"""Those that Pillow has in Python: a BMP of six kilobytes could keep them busy for ten seconds."""
MOST_SLOW_PIXELS = 8_000_000
"""Of a picture that they decode."""
ENOUGH_PIXELS = 672
"""Pixels of the short side, twice what any encoder looks at: a larger JPEG is decoded at ½, ¼ or ⅛ of its size as long
as so much is left. The photos of rated sets are smaller, and their numbers are those of a full decoding."""
RGB_BYTES = 4
"""Pillow keeps a pixel of red, green and blue in four bytes."""
# Bytes of a pixel as Pillow decodes it, where it is not four.
_PIXEL_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}
_VALUES_AT_ONCE = 1 << 20


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
    from PIL import ImageOps

    try:
        with _read_header(data, name) as picture:
            _check_size(picture, name)
            if picture.format in {"JPEG", "MPO"} and has_too_many_scans(data):
                raise InputError(f"has more than {MOST_SCANS} scans", where=name, remedy="save the picture again")
            if picture.format == "JPEG":
                picture.draft(picture.mode, (ENOUGH_PIXELS, ENOUGH_PIXELS))
            picture.load()
            ImageOps.exif_transpose(picture, in_place=True)  # else it is copied even where it stands upright
            return to_rgb(picture)
    except InputError:
        raise
    except MemoryError:
        raise InputError("takes more memory to decode than there is", where=name) from None
    except Exception as error:  # decoders raise whatever the damaged byte happens to break
        raise InputError(f"is damaged ({first_line(error)})", where=name) from None


def picture_size(data: bytes, name: str) -> tuple[int, int]:
    """Width and height in pixels, as the header says: nothing is decoded."""
    try:
        with _read_header(data, name) as picture:
            return picture.size
    except InputError:
        raise
    except Exception as error:  # as in `decode_image`
        raise InputError(f"is damaged ({first_line(error)})", where=name) from None


def _read_header(data: bytes, name: str) -> ImageFile:
    """The picture before it is decoded.

    Pillow's own `open` warns about large pictures through filters that belong to the whole process; here the limit is
    ours, and lower, so its plug-ins are asked directly.
    """
    from PIL import Image

    Image.init()
    for kind in FORMATS:
        if kind not in Image.OPEN:  # Pillow was built without it
            continue
        factory, accepts = Image.OPEN[kind]
        accepted = accepts is None or accepts(data[:16])
        if accepted is not True:  # False, or a text that says why not
            continue
        try:
            return factory(io.BytesIO(data), "")
        except (SyntaxError, IndexError, TypeError, struct.error):  # another format may begin alike
            continue
    raise InputError("is not a picture in a known format", where=name)


def _check_size(picture: ImageFile, name: str) -> None:
    """Refuse what would unpack to more than the limits, by what its header says."""
    width, height = picture.size
    if width < 1 or height < 1:
        raise InputError("has no pixels", where=name)
    if max(width, height) > MOST_SIDE:
        raise InputError(
            f"is {width} × {height} pixels, and no side may be longer than {MOST_SIDE}",
            where=name,
            remedy="reduce the picture",
        )
    if any(tile[0] in SLOW_DECODERS for tile in picture.tile) and width * height > MOST_SLOW_PIXELS:
        raise InputError(
            f"is {width} × {height} pixels in a form that is slow to decode, and {MOST_SLOW_PIXELS:,} are the limit",
            where=name,
            remedy="save the picture as PNG or JPEG",
        )
    own_bytes = 0 if picture.mode == "RGB" else _PIXEL_BYTES.get(picture.mode, 4)
    unpacked = width * height * (own_bytes + RGB_BYTES)
    if unpacked > MOST_DECODED_BYTES:
        raise InputError(
            f"would unpack to {unpacked // 10**6} MB ({width} × {height} pixels), "
            f"and the limit is {MOST_DECODED_BYTES // 10**6} MB",
            where=name,
            remedy="reduce the picture",
        )


def has_too_many_scans(data: bytes) -> bool:
    """Say whether a JPEG has more scans than any encoder makes."""
    if data.count(b"\xff\xda") <= MOST_SCANS:
        return False
    scans, at = 0, 2
    while scans <= MOST_SCANS and (at := data.find(b"\xff", at)) >= 0 and at + 4 <= len(data):
        marker = data[at + 1]
        if marker == 0xD9:  # the end of the picture
            break
        if marker == 0xFF or marker <= 0x01 or 0xD0 <= marker <= 0xD8:  # these have no length
            at += 1 if marker == 0xFF else 2
        else:
            scans += marker == 0xDA
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return scans > MOST_SCANS


def to_rgb(picture: Image) -> Image:
    """8-bit RGB; deeper greys are scaled, where Pillow's own conversion would clip them to white.

    >>> from PIL import Image
    >>> to_rgb(Image.fromarray(np.full((1, 1), 0x8080, np.uint16))).getpixel((0, 0))
    (128, 128, 128)
    """

    if picture.mode == "RGB":
        return picture
    if picture.mode in {"I", "F"} or picture.mode.startswith("I;16"):
        return _scaled_grey(picture)
    if picture.mode == "P":
        picture.info.pop("transparency", None)  # it changes no colour, and Pillow would warn about it
    return picture.convert("RGB")


def _scaled_grey(picture: Image) -> Image:
    """A deep grey as RGB, some rows at a time: copies of the whole would take gigabytes."""
    from PIL import Image

    width, height = picture.size
    rows = max(1, _VALUES_AT_ONCE // width)
    boxes = [(0, top, width, min(top + rows, height)) for top in range(0, height, rows)]
    brightest = max(float(np.nan_to_num(np.asarray(picture.crop(box))).max(initial=0)) for box in boxes)
    scale = _grey_scale(picture.mode, brightest)
    bright = Image.new("RGB", picture.size)
    for box in boxes:
        values = np.nan_to_num(np.asarray(picture.crop(box)).astype(np.float64)) * scale
        bright.paste(Image.fromarray(np.clip(np.rint(values), 0, 255).astype(np.uint8)).convert("RGB"), box)
    return bright


def _grey_scale(mode: str, brightest: float) -> float:
    """What brings deep greys to 0 to 255."""
    if mode == "F":
        return 255.0 if brightest <= 1 else 1.0
    return 1 / 257 if mode != "I" or brightest > 255 else 1.0  # 65535 becomes 255


def scaled(picture: Image, mean: NDArray[np.float32], std: NDArray[np.float32]) -> NDArray[np.float32]:
    """An RGB picture as channels of (value / 255 - mean) / std, worked out in place."""
    channels = np.asarray(picture).transpose(2, 0, 1)
    values: NDArray[np.float32] = np.divide(channels, np.float32(255), dtype=np.float32, order="C")
    values -= mean[:, None, None]
    values /= std[:, None, None]
    return values


def first_line(error: BaseException) -> str:
    """What a foreign exception says, short enough for a reason."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
