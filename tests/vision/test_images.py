"""Every kind of picture people have, and every way in which one can be broken."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import InputError
from caplens.vision.images import decode_image, open_image

RED_LEFT = Image.new("RGB", (40, 20), "blue")
RED_LEFT.paste((255, 0, 0), (0, 0, 20, 20))


def encoded(picture: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        encoded(RED_LEFT, "PNG"),
        encoded(RED_LEFT, "JPEG", quality=98, subsampling=0),
        encoded(RED_LEFT.convert("CMYK"), "JPEG", quality=98, subsampling=0),
        encoded(RED_LEFT.convert("RGBA"), "PNG"),
        encoded(RED_LEFT.convert("P"), "PNG"),
        encoded(RED_LEFT, "GIF", save_all=True, append_images=[Image.new("RGB", (40, 20), "green")]),
        encoded(RED_LEFT, "TIFF"),
        encoded(RED_LEFT, "BMP"),
        encoded(RED_LEFT, "WEBP", lossless=True),
    ],
    ids=["png", "jpeg", "cmyk", "alpha", "palette", "animated", "tiff", "bmp", "webp"],
)
def test_every_kind_of_picture_becomes_rgb(data: bytes) -> None:
    picture = decode_image(data, "picture")
    assert picture.mode == "RGB"
    assert picture.size == (40, 20)
    pixels = np.asarray(picture).astype(int)
    assert np.abs(pixels[10, 5] - [255, 0, 0]).max() < 12
    assert np.abs(pixels[10, 35] - [0, 0, 255]).max() < 12


def test_an_exif_rotated_photo_stands_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # held upright, stored lying
    picture = decode_image(encoded(RED_LEFT, "JPEG", exif=exif.tobytes(), quality=98, subsampling=0), "picture")
    assert picture.size == (20, 40)
    assert np.asarray(picture)[5, 10, 0] > 240  # left has become top


def test_sixteen_bits_are_scaled_not_clipped() -> None:
    grey = Image.fromarray(np.full((3, 3), 0x4000, np.uint16))
    assert decode_image(encoded(grey, "PNG"), "picture").getpixel((1, 1)) == (64, 64, 64)


def test_one_pixel() -> None:
    assert decode_image(encoded(Image.new("RGB", (1, 1), "red"), "PNG"), "picture").getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize("side", [12_000, 30_000])  # above our limit, above Pillow's own
def test_a_bomb_is_refused_before_it_is_unpacked(side: int) -> None:
    bomb = encoded(Image.new("1", (side, side)), "PNG")
    assert len(bomb) < 200_000
    with pytest.raises(InputError, match="unpack to too many pixels"):
        decode_image(bomb, "bomb.png")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"this is text", "not a picture"),
        (encoded(RED_LEFT, "PNG")[:60], "damaged"),
        (encoded(RED_LEFT, "JPEG")[:300], "damaged|not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
    ],
)
def test_what_cannot_be_used_says_why(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "picture.jpg"
    path.write_bytes(data)
    with pytest.raises(InputError, match=reason) as caught:
        open_image(path)
    assert "picture.jpg" in str(caught.value)


def test_a_folder_and_an_absent_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        open_image(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        open_image(tmp_path / "nothing.png")


def test_a_url_is_not_fetched_unless_allowed() -> None:
    with pytest.raises(InputError, match="allow_urls"):
        open_image("https://example.org/cat.jpg")
