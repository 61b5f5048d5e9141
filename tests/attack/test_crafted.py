"""Crafted answers, texts and pictures: small to send, and no slower or larger to read than plain ones."""

from __future__ import annotations

import io
import struct
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import InputError
from caplens.metrics.judge.answers import read_verdict, read_verdicts
from caplens.text.sentences import split_sentences
from caplens.vision import images
from caplens.vision.images import decode_image

LONG = 200_000
"""Characters; what was quadratic took minutes for so many."""


@pytest.mark.parametrize(
    "answer",
    [
        "score:" + " " * LONG + "x",
        "score" + " " * LONG + "x",
        "1" * LONG + "x1",
        " " * LONG + "x",
        "$" + " " * LONG + "x",
        "1." * LONG,
        "score: " * (LONG // 8),
    ],
    ids=["spaces after", "spaces before", "digits", "blank", "marked", "points", "names"],
)
def test_a_judges_answer_is_read_in_time_whatever_it_is(answer: str) -> None:
    started = time.process_time()
    assert read_verdict(answer, 0, 100) is None
    assert read_verdicts(answer, 0, 100, ["accuracy", "score"]) is None
    assert time.process_time() - started < 5


@pytest.mark.parametrize("word", ["mr. ", "a. ", ". ", '." ', "…"])
def test_sentences_of_abbreviations_are_found_in_time(word: str) -> None:
    started = time.process_time()
    split_sentences(word * (3 * LONG))
    assert time.process_time() - started < 5


def test_an_abbreviation_is_known_behind_a_bracket_and_after_a_long_word() -> None:
    assert split_sentences(f"{'x' * 40} Mr. Smith. (Dr. Who) waits.") == [f"{'x' * 40} Mr. Smith.", "(Dr. Who) waits."]


def run_length_bmp(width: int, height: int) -> bytes:
    """Every row is one pixel and a mark that the rest is empty."""
    body = b"\x01\x01\x00\x00" * height + b"\x00\x01"
    palette = bytes(4) + b"\xff\xff\xff\x00"
    start = 14 + 40 + len(palette)
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(body), 2835, 2835, 2, 2)
    return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + header + palette + body


def plain_ppm(width: int, height: int) -> bytes:
    return b"P1\n%d %d\n" % (width, height) + b"0" * (width * height)


@pytest.mark.parametrize("make", [run_length_bmp, plain_ppm])
def test_a_small_file_that_python_would_decode_for_long_is_refused(
    make: Callable[[int, int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert decode_image(make(30, 20), "small").size == (30, 20)
    monkeypatch.setattr(images, "MOST_SLOW_PIXELS", 599)
    with pytest.raises(InputError, match="slow to decode"):
        decode_image(make(30, 20), "large")


def test_six_kilobytes_do_not_take_ten_seconds() -> None:
    data = run_length_bmp(65_535, 1_400)
    assert len(data) < 6_000
    with pytest.raises(InputError, match="65535 × 1400 pixels in a form that is slow"):
        decode_image(data, "rows.bmp")


def test_deep_greys_take_no_copies_of_the_whole() -> None:
    """The limit on decoded bytes counts the picture and its RGB, so nothing else of that size may be made."""
    stream = io.BytesIO()
    Image.fromarray(np.zeros((5000, 5000), np.uint16)).save(stream, "PNG")
    data = stream.getvalue()
    decode_image(data, "first")
    tracemalloc.start()
    decode_image(data, "grey.png")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000_000  # its values alone would be 50 MB


def test_an_upright_picture_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(stream, "PNG")
    monkeypatch.delattr(Image.Image, "copy")
    assert decode_image(stream.getvalue(), "red.png").getpixel((0, 0)) == (255, 0, 0)
