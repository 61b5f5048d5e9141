"""EMScore and PAC-S of videos against a slow version, on videos made here."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import caplens
from caplens.encoders.base import Encoder
from caplens.metrics.em_score import PADDING, TokenWeights
from caplens.vision.video import Sampling, frames

pytest.importorskip("av")
pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.encoders.random_clip import random_encoder
from tests.vision.test_video import write_video

pytestmark = pytest.mark.usefixtures("own_cache")

CANDIDATES = ["the cat", "a dog on the cat", "the"]
REFERENCES = [["the cat", "cats on dog"], ["dog"], ["a cat on the dog", "the"]]


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("videos")
    return [write_video(folder / f"{count}.mp4", count) for count in (3, 7, 5)]


def slow_idf(encoder: Encoder, texts: list[str]) -> dict[int, float]:
    total = len(texts)
    documents = [{*encoder.tokenize(text)[0], PADDING} for text in texts]
    idf = {}
    for token in set().union(*documents):
        idf[token] = math.log((total + 1) / (sum(token in document for document in documents) + 1))
    idf[encoder.tokenize("")[0][-1]] = sum(idf.values()) / len(idf)
    return idf


def normal(vector: np.ndarray) -> np.ndarray:
    return vector.astype(float) / math.sqrt(float(vector.astype(float) @ vector.astype(float)))


def slow_match(
    left: list[np.ndarray],
    right: list[np.ndarray],
    left_weights: list[float],
    right_weights: list[float],
    coarse: float,
) -> tuple[float, float]:
    precision = sum(w * max(a @ b for b in right) for w, a in zip(left_weights, left, strict=True)) / sum(left_weights)
    recall = sum(w * max(a @ b for a in left) for w, b in zip(right_weights, right, strict=True)) / sum(right_weights)
    return 2 * precision * recall / (precision + recall), coarse


def slow(encoder: Encoder, videos: list[Path], sampling: str, with_references: bool) -> list[float]:
    idf = slow_idf(encoder, [text for texts in REFERENCES for text in texts])
    unseen = math.log(sum(len(texts) for texts in REFERENCES) + 1)
    scores = []
    for video, candidate, references in zip(videos, CANDIDATES, REFERENCES, strict=True):
        shown = [normal(row) for row in encoder.encode_images(list(frames(video, Sampling.parse(sampling))))]
        (text,) = encoder.encode_tokens([candidate])
        tokens, whole = [normal(row) for row in text.vectors], normal(text.whole)
        weights = [idf.get(token, unseen) for token in text.ids]
        coarse = float(whole @ normal(np.mean(shown, axis=0)))
        fine, _ = slow_match(tokens, shown, weights, [1.0] * len(shown), coarse)
        score = (fine + coarse) / 2
        if with_references:
            pairs = []
            for reference in references:
                (other,) = encoder.encode_tokens([reference])
                pairs.append(
                    slow_match(
                        tokens,
                        [normal(row) for row in other.vectors],
                        weights,
                        [idf.get(token, unseen) for token in other.ids],
                        float(whole @ normal(other.whole)),
                    )
                )
            score = (score + (max(p[0] for p in pairs) + max(p[1] for p in pairs)) / 2) / 2
        scores.append(score)
    return scores


@pytest.mark.parametrize("sampling", ["all", "every-2", "uniform-3"])
def test_equal_to_the_slow_version(videos: list[Path], sampling: str) -> None:
    encoder = random_encoder()
    report = caplens.evaluate(
        CANDIDATES,
        REFERENCES,
        videos=videos,
        metrics=["em-score", "em-score-ref", "pac-s", "ref-pac-s"],
        encoder=encoder,
        frames=sampling,
    )
    for name in ("em-score", "pac-s"):
        np.testing.assert_allclose(report[name].scores, slow(encoder, videos, sampling, False), atol=1e-6)
    for name in ("em-score-ref", "ref-pac-s"):
        np.testing.assert_allclose(report[name].scores, slow(encoder, videos, sampling, True), atol=1e-6)
        assert f"frames:{sampling}" in report[name].signature
        assert "idf:references-5" in report[name].signature
        assert "decoder:pyav-" in report[name].signature
    detail = (report["em-score"].details or [])[0]
    assert detail["fine"] == pytest.approx(
        2 * detail["precision"] * detail["recall"] / (detail["precision"] + detail["recall"])
    )


def test_idf_by_hand() -> None:
    # Three captions: 1 is the start, 9 the end; 5 is in two of them, 7 in one, the padding in all.
    weights = TokenWeights.of([[1, 5, 9], [1, 5, 7, 9], [1, 9]], end=9)
    five, seven = math.log(4 / 3), math.log(4 / 2)
    end = (five + seven) / 5  # the mean over 0 (padding), 1, 5, 7, 9
    total = five + seven + math.log(4) + end
    np.testing.assert_allclose(weights([1, 5, 7, 8, 9]), np.array([0, five, seven, math.log(4), end]) / total)
    np.testing.assert_allclose(TokenWeights.of([[1, 9]], end=9)([1, 9]), [0.5, 0.5])


def test_a_broken_video_is_nan_with_its_reason(videos: list[Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(videos[0].read_bytes()[:200])
    result = caplens.evaluate(
        CANDIDATES, videos=[videos[0], broken, videos[2]], metrics=["em-score"], encoder=random_encoder()
    )["em-score"]
    assert np.isnan(result.scores).tolist() == [False, True, False]
    assert "broken.mp4" in result.failures[1]
    assert "idf:candidates-3" in result.signature
