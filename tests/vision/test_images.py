"""Every kind of picture people have, and every way in which one can be broken."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import InputError
from caplens.vision import images
from caplens.vision.images import decode_image, open_image, to_rgb

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


def png_header(width: int, height: int, depth: int, color: int) -> bytes:
    """A PNG that says how large it is and has next to no data."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    palette = chunk(b"PLTE", bytes(768)) if color == 3 else b""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + palette + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [12_000, 30_000])  # above our limit, above Pillow's own
def test_a_bomb_is_refused_before_it_is_unpacked(side: int) -> None:
    bomb = encoded(Image.new("1", (side, side)), "PNG")
    assert len(bomb) < 200_000
    with pytest.raises(InputError, match="would unpack to"):
        decode_image(bomb, "bomb.png")


GREY, COLOR, PALETTE, WITH_ALPHA = 0, 2, 3, 6


@pytest.mark.parametrize(
    ("width", "height", "depth", "color", "reason"),
    [
        (119_000_000, 1, 8, GREY, "119000000 × 1 pixels, and no side may be longer"),
        (1, 119_000_000, 8, COLOR, "no side may be longer"),
        (10_000, 9_000, 16, GREY, "540 MB"),  # two bytes each, and four for the colours
        (11_000, 11_000, 16, COLOR, "484 MB"),
        (10_000, 9_900, 8, PALETTE, "495 MB"),
        (8_000, 8_000, 16, WITH_ALPHA, "512 MB"),
        (60_000, 60_000, 1, GREY, "18000 MB"),
    ],
)
def test_the_limit_is_one_of_bytes_and_read_from_the_header(
    width: int, height: int, depth: int, color: int, reason: str
) -> None:
    tracemalloc.start()
    with pytest.raises(InputError, match=reason):
        decode_image(png_header(width, height, depth, color), "large.png")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_what_is_below_the_limit_is_decoded() -> None:
    with pytest.raises(InputError, match="damaged"):  # it is let through, and has no data
        decode_image(png_header(10_900, 11_000, 8, COLOR), "almost.png")


@pytest.mark.parametrize("mode", ["I;16", "I", "F", "F small"])
def test_deep_greys_are_the_same_in_parts(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 65536, (7, 9))
    arrays: dict[str, np.ndarray] = {
        "I;16": values.astype(np.uint16),
        "I": values.astype(np.int32),
        "F": values.astype(np.float32),
        "F small": (values / 65536).astype(np.float32),
    }
    arrays["F"][0, 0] = np.nan
    picture = Image.fromarray(arrays[mode])
    whole = np.asarray(to_rgb(picture))
    monkeypatch.setattr(images, "_VALUES_AT_ONCE", 5)
    assert np.array_equal(np.asarray(to_rgb(picture)), whole)
    expected = {"I;16": values / 257, "I": values / 257, "F": values, "F small": values / 65536 * 255}[mode]
    expected = np.clip(np.rint(expected), 0, 255).astype(np.uint8)
    if mode == "F":
        expected[0, 0] = 0
    assert np.abs(whole[..., 0].astype(int) - expected).max() <= (1 if mode == "F small" else 0)


def test_transparent_palettes_keep_their_colors_and_say_nothing(recwarn: pytest.WarningsRecorder) -> None:
    palette = RED_LEFT.convert("P")
    clear = encoded(palette, "PNG", transparency=bytes([0, 128] + [255] * 254))
    assert np.array_equal(np.asarray(decode_image(clear, "p")), np.asarray(decode_image(encoded(palette, "PNG"), "p")))
    assert len(recwarn) == 0


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


def test_a_large_jpeg_is_decoded_smaller_and_looks_the_same(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    coarse = Image.fromarray(random.integers(0, 256, (30, 40, 3), dtype=np.uint8))
    for size, expected in (((4000, 3000), (1000, 750)), ((1400, 1343), (1400, 1343)), ((640, 480), (640, 480))):
        photo = coarse.resize(size, Image.Resampling.BICUBIC)
        photo.save(tmp_path / "photo.jpg", quality=95)
        opened = open_image(tmp_path / "photo.jpg")
        assert opened.size == expected
        seen, meant = (
            np.asarray(one.resize((224, 224), Image.Resampling.BICUBIC), np.float64) for one in (opened, photo)
        )
        assert np.abs(seen - meant).mean() < 1.5


def test_a_jpeg_of_endless_scans_is_refused_before_it_is_decoded() -> None:
    sound = encoded(RED_LEFT, "JPEG", progressive=True)
    scan = sound[sound.rindex(b"\xff\xda") : -2]
    with pytest.raises(InputError, match="bomb: has more than 64 scans"):
        decode_image(sound[:-2] + 1000 * scan + b"\xff\xd9", "bomb")
    # The same bytes in a profile or a maker's note are none.
    note = b"\xff\xe2" + (2 + 2 * 1000).to_bytes(2, "big") + 1000 * b"\xff\xda"
    assert decode_image(sound[:2] + note + sound[2:], "noted").size == RED_LEFT.size
