"""MID against the definition with plain inverses and determinants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import caplens
from caplens.core.errors import CaplensWarning
from caplens.metrics.mid import pointwise

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.encoders.random_clip import random_encoder


def slow(good_x: np.ndarray, good_y: np.ndarray, x: np.ndarray, y: np.ndarray, ridge: float) -> list[float]:
    def gaussian(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = rows.mean(axis=0)
        spread = sum(np.outer(row - mean, row - mean) for row in rows) / (len(rows) - 1)
        return mean, spread + ridge * np.eye(rows.shape[1])

    parts = [gaussian(rows) for rows in (good_x, good_y, np.hstack([good_x, good_y]))]
    logs = [float(np.linalg.slogdet(spread)[1]) for _, spread in parts]
    scores = []
    for one, two in zip(x, y, strict=True):
        distances = [
            float((row - mean) @ np.linalg.inv(spread) @ (row - mean))
            for row, (mean, spread) in zip((one, two, np.hstack([one, two])), parts, strict=True)
        ]
        scores.append((logs[0] + logs[1] - logs[2] + distances[0] + distances[1] - distances[2]) / 2)
    return scores


def test_equal_to_the_definition() -> None:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(80, 3))
    good_x, good_y = shared @ rng.normal(size=(3, 6)), shared @ rng.normal(size=(3, 5)) + rng.normal(size=(80, 5))
    x, y = rng.normal(size=(9, 6)), rng.normal(size=(9, 5))
    np.testing.assert_allclose(pointwise(good_x, good_y, x, y, 1e-3), slow(good_x, good_y, x, y, 1e-3), rtol=1e-9)


def test_matching_pairs_score_higher_than_shuffled_ones() -> None:
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(400, 4))
    x, y = shared + 0.1 * rng.normal(size=(400, 4)), shared + 0.1 * rng.normal(size=(400, 4))
    right = pointwise(x, y, x, y, 1e-6)
    wrong = pointwise(x, y, x, y[rng.permutation(400)], 1e-6)
    assert right.mean() > 0 > wrong.mean()


def test_on_pictures_with_a_note_about_few_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caplens.storage.cache.cache_folder", lambda: tmp_path / "cache")
    rng = np.random.default_rng(0)
    paths = []
    for number in range(4):
        Image.fromarray(rng.integers(0, 255, (40, 40, 3), np.uint8)).save(tmp_path / f"{number}.png")
        paths.append(str(tmp_path / f"{number}.png"))
    candidates = ["the cat", "dog", "on the", "a"]
    references = [["cat", "the"], ["dog on"], ["the on"], ["a cat", "dog"]]
    encoder = random_encoder()
    with pytest.warns(CaplensWarning, match="6 pairs"):
        report = caplens.evaluate(candidates, references, images=paths, metrics=["mid"], encoder=encoder, ridge=0.01)

    def normal(rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows.astype(float) / np.linalg.norm(rows.astype(float), axis=1, keepdims=True))

    pictures = normal(encoder.encode_images([Image.open(path) for path in paths]))
    owner = [row for row, texts in enumerate(references) for _ in texts]
    flat = normal(encoder.encode_texts([f"A photo depicts {text}" for texts in references for text in texts]))
    texts = normal(encoder.encode_texts([f"A photo depicts {text}" for text in candidates]))
    np.testing.assert_allclose(report["mid"].scores, slow(pictures[owner], flat, pictures, texts, 0.01), atol=1e-6)
