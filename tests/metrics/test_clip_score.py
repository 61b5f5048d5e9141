"""CLIP-S, PAC-S and their reference versions against a slow version on a random CLIP and on the embedded encoder."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import caplens
from caplens.core.errors import CaplensError, CaplensWarning, InputError, MissingData
from caplens.encoders.base import Encoder

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.encoders.random_clip import random_encoder

pytestmark = pytest.mark.usefixtures("own_cache")

CANDIDATES = ["the cat", "a dog on the cat", "", "the the the"]
REFERENCES = [["the cat", "cats"], ["dog"], ["a cat on the dog", "the"], ["on", "the on", "cat"]]


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    return float(one @ two / math.sqrt(one @ one) / math.sqrt(two @ two))


def slow(encoder: Encoder, images: list[str], prompt: str, scale: float, with_references: bool) -> list[float]:
    """One caption at a time, in plain Python."""
    scores = []
    for image, candidate, references in zip(images, CANDIDATES, REFERENCES, strict=True):
        picture = encoder.encode_images([Image.open(image)])[0].astype(float)
        text = encoder.encode_texts([prompt + candidate])[0].astype(float)
        score = scale * max(cosine(text, picture), 0)
        if with_references:
            others = [encoder.encode_texts([prompt + reference])[0].astype(float) for reference in references]
            best = max(0.0, *(cosine(text, other) for other in others))
            score = 2 * score * best / (score + best) if score + best else 0.0
        scores.append(score)
    return scores


def embedded() -> Encoder:
    from caplens.encoders.embedded import load_embedded

    try:
        return load_embedded()
    except MissingData as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("kind", ["random", "embedded"])
def test_equal_to_the_slow_version(kind: str, images: list[str]) -> None:
    encoder = random_encoder(3) if kind == "random" else embedded()  # seed 3 has cosines of both signs
    prompt = "A photo depicts " if kind == "random" else ""
    expected = {
        "clip-s": slow(encoder, images, prompt, 2.5, False),
        "ref-clip-s": slow(encoder, images, prompt, 2.5, True),
        "pac-s": slow(encoder, images, prompt, 2.0, False),
        "ref-pac-s": slow(encoder, images, prompt, 2.0, True),
    }
    report = caplens.evaluate(CANDIDATES, REFERENCES, images=images, metrics=list(expected), encoder=encoder)
    assert any(score > 0.01 for score in expected["clip-s"])
    for name, scores in expected.items():
        np.testing.assert_allclose(report[name].scores, scores, atol=1e-6)
        assert report[name].score == pytest.approx(np.mean(scores), abs=1e-6)
        assert f"encoder:{encoder.identity}" in report[name].signature
        assert repr(prompt.strip()) in report[name].signature


def test_a_broken_picture_is_nan_with_its_reason_and_nothing_else_is_lost(images: list[str]) -> None:
    Path(images[1]).write_bytes(b"broken")
    encoder = random_encoder()
    report = caplens.evaluate(CANDIDATES, REFERENCES, images=images, metrics=["clip-s", "ref-clip-s"], encoder=encoder)
    for name in ("clip-s", "ref-clip-s"):
        assert np.isnan(report[name].scores).tolist() == [False, True, False, False]
        assert list(report[name].failures) == [1]
        assert "1.png" in report[name].failures[1]
        assert report[name].score == pytest.approx(np.nanmean(report[name].scores))
    with pytest.raises(InputError, match="not a picture"):
        caplens.evaluate(CANDIDATES, images=images, metrics=["clip-s"], encoder=encoder, strict=True)


def test_captions_read_in_parts_are_counted(images: list[str]) -> None:
    with pytest.warns(CaplensWarning, match="1 of 4 captions are longer than 20 tokens, .* read sentence by sentence"):
        caplens.evaluate(
            ["cat " * 50, "cat", "dog", "the"], images=images, metrics=["clip-s"], prompt="", encoder=random_encoder()
        )


def test_the_prompt_is_an_option_and_in_the_signature(images: list[str]) -> None:
    made = [
        caplens.evaluate(CANDIDATES, images=images, metrics=["clip-s"], encoder=random_encoder(), prompt=prompt)[
            "clip-s"
        ]
        for prompt in ("", "the ")
    ]
    assert not np.allclose(made[0].scores, made[1].scores)
    assert made[0].signature != made[1].signature


def test_falling_back_to_the_embedded_encoder_is_said(images: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    embedded()
    monkeypatch.setattr("caplens.encoders.load.automatic", lambda source, heads: "embedded")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = caplens.evaluate(CANDIDATES, images=images, metrics=["clip-s"])["clip-s"]
    assert any("do not compare with published ones" in str(warning.message) for warning in caught)
    assert "encoder:embedded-contrastive@" in result.signature


def test_without_pictures_the_message_names_the_option() -> None:
    with pytest.raises(CaplensError, match="--images"):
        caplens.evaluate(CANDIDATES, metrics=["clip-s"], encoder=random_encoder())


def test_an_unknown_encoder_lists_the_known() -> None:
    with pytest.raises(InputError, match="embedded, embedded-strong, embedded-int8, embedded-strong-int8, ViT-B-32"):
        caplens.evaluate(["a"], images=["a.png"], metrics=["clip-s"], encoder="ViT-Q")
