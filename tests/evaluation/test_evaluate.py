"""A run decodes no picture twice, and leaves the warnings filters of whoever calls it alone."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import caplens
from caplens.core.errors import CaplensWarning
from caplens.vision import pictures as module
from caplens.vision.images import decode_image

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.encoders.random_clip import random_encoder

CAPTIONS = ["a cat", "the dog", "a dog on the cat", "the cat"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    """Palettes with transparent colors, which Pillow has a remark on."""
    rng = np.random.default_rng(0)
    paths = [str(tmp_path / f"{number}.png") for number in range(4)]
    for path in paths:
        picture = Image.fromarray(rng.integers(0, 255, (40, 50, 3), np.uint8)).convert("P")
        picture.info["transparency"] = bytes(range(256))
        picture.save(path)
    return paths


def test_all_metrics_and_the_page_decode_a_picture_once(
    images: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: Counter[str] = Counter()

    def counted(data: bytes, name: str) -> Image.Image:
        decoded[name] += 1
        return decode_image(data, name)

    monkeypatch.setattr(module, "decode_image", counted)
    report = caplens.evaluate(
        CAPTIONS, images=images, metrics=["clip-s", "info-clip"], encoder=random_encoder(), regions="grid"
    )
    report.to_html(tmp_path / "page.html")
    assert decoded == Counter(images)


def test_no_thread_touches_the_warnings_filters(images: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    class Watched(warnings.catch_warnings):
        def __enter__(self) -> Any:
            threads.append(threading.current_thread().name)
            return super().__enter__()

    monkeypatch.setattr(warnings, "catch_warnings", Watched)
    before = list(warnings.filters)
    options: dict[str, Any] = {"images": images * 4, "metrics": ["clip-s", "mid"], "encoder": random_encoder()}
    with pytest.warns(CaplensWarning, match="rough numbers"):  # what MID says of itself is heard
        caplens.evaluate(CAPTIONS * 4, [[caption] for caption in CAPTIONS * 4], **options)
    assert set(threads) <= {threading.main_thread().name}
    assert list(warnings.filters) == before
