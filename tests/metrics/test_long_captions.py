"""Captions longer than an encoder reads at once: every sentence counts, and short captions keep their scores."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caplens
from caplens.core.errors import CaplensWarning
from caplens.evaluation.details import wrong_sentences
from caplens.metrics.base import Result

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.battery import result
from tests.encoders.random_clip import random_encoder
from tests.encoders.tiny_bert import write_tiny_model
from tests.vision.test_video import write_video

pytestmark = pytest.mark.usefixtures("own_cache")

SHORT = ["the cat", "a dog on the cat"]
SENTENCES = ["the cat on the cat on the cat on the dog.", "a dog.", "the the the on the cat on a dog."]
LONG = " ".join(SENTENCES)
"""More than the 20 tokens that the random CLIP reads at once; each sentence is fewer."""


def scored(name: str, candidates: list[str], references: list[list[str]] | None = None, **options: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaplensWarning)
        return caplens.evaluate(candidates, references, metrics=[name], **options)[name]


@pytest.mark.parametrize("name", ["clip-s", "pac-s", "ref-clip-s", "ref-pac-s"])
def test_a_long_caption_has_the_mean_of_its_sentences(name: str, images: list[str]) -> None:
    encoder = random_encoder(3)
    one = dict.fromkeys(SENTENCES, images[0])
    references = [["the cat", "dog on dog"]]
    kept = {"encoder": encoder, "prompt": "a "}
    needs = references if name.startswith("ref") else None
    whole = scored(name, [LONG], needs, images=images[:1], **kept)
    plain = name.removeprefix("ref-")
    fits = scored(plain, SENTENCES, images=list(one.values()), **kept).scores
    if needs is None:
        assert whole.scores[0] == pytest.approx(fits.mean())
    else:
        near = [nearest(encoder, sentence, references[0]) for sentence in SENTENCES]
        assert whole.scores[0] == pytest.approx(2 / (1 / fits.mean() + 1 / np.mean(near)))
    assert "|sentences:mean|" in whole.signature


def nearest(encoder: Any, sentence: str, references: list[str]) -> float:
    own, *others = encoder.encode_texts([f"a {text}" for text in (sentence, *references)]).astype(float)
    cosines = [own @ other / np.linalg.norm(own) / np.linalg.norm(other) for other in others]
    return max(0.0, *cosines)


@pytest.mark.parametrize("name", ["clip-s", "ref-clip-s"])
def test_short_captions_keep_their_scores_and_signatures(name: str, images: list[str]) -> None:
    encoder = random_encoder(3)
    references = [["the cat"], ["dog", "a dog"]]
    alone = scored(name, SHORT, references, images=images[:2], encoder=encoder)
    beside = scored(name, [*SHORT, LONG], [*references, ["cat"]], images=images[:3], encoder=encoder)
    np.testing.assert_allclose(beside.scores[:2], alone.scores, rtol=1e-6)  # batches are padded otherwise
    assert "sentences" not in alone.signature
    assert alone.details is None


def test_a_long_reference_is_read_to_its_end(images: list[str]) -> None:
    encoder, candidate = random_encoder(3), "a dog."
    for reference in (LONG, f"{SENTENCES[0]} {SENTENCES[0]}"):
        made = scored("ref-clip-s", [candidate], [[reference]], images=images[:1], encoder=encoder, prompt="")
        assert "|sentences:mean|" in made.signature
        fit = scored("clip-s", [candidate], images=images[:1], encoder=encoder, prompt="").score
        if candidate in reference:  # a cosine of 1 with one of its sentences
            assert made.score == pytest.approx(2 * fit / (fit + 1))
        else:
            assert made.score < 2 * fit / (fit + 1)


def test_tokens_of_all_sentences_count_in_videos(tmp_path: Path) -> None:
    pytest.importorskip("av")
    video = write_video(tmp_path / "video.mp4", 3)
    encoder = random_encoder(3)
    made = [
        scored("em-score", [text], videos=[video], encoder=encoder, idf="none")
        for text in (LONG, f"{SENTENCES[0]} {SENTENCES[1]}", LONG.replace("a dog.", "on."))
    ]
    assert len({float(each.score) for each in made}) == 3
    assert "|sentences:tokens|" in made[0].signature


@pytest.mark.parametrize("name", ["bert-score", "sent-sim"])
def test_the_end_of_a_long_text_counts(name: str, tmp_path: Path) -> None:
    folder = str(write_tiny_model(tmp_path / "tiny", "bert"))  # reads 40 tokens
    start = "the dog runs on red grass, a man with a ball sits in grass. two cats. " * 3
    references = [["a red ball. a woman walks."]] * 3
    made = scored(name, [f"{start}a woman.", f"{start}a red ball.", "a dog"], references, text_encoder=folder)
    assert made.scores[0] != made.scores[1]
    assert "|sentences:" in made.signature
    assert "sentences" not in scored(name, ["a dog"], [["a cat"]], text_encoder=folder).signature
    assert made.scores[2] == scored(name, ["a dog"], [references[0]], text_encoder=folder).scores[0]


def test_a_sentence_vector_of_a_long_text_is_the_mean_direction(tmp_path: Path) -> None:
    from caplens.encoders.sentence import SentenceEncoder

    encoder = SentenceEncoder(write_tiny_model(tmp_path / "tiny", "bert"), "tiny")
    sentences = ["the dog runs on red grass.", "a man with a ball sits in grass on the blue ball."] * 3
    vectors = encoder.encode(sentences)
    mean = vectors.sum(axis=0) / np.linalg.norm(vectors.sum(axis=0))
    np.testing.assert_allclose(encoder.encode([" ".join(sentences), "a dog"])[0], mean, atol=1e-6)


def test_which_sentence_is_wrong() -> None:
    captions = caplens.CaptionSet.of(
        ["A dog runs on the grass. A chef bakes bread in an oven. The dog has a ball.", "a dog"],
        [["A dog is running over grass.", "The dog plays with a ball."], ["a dog"]],
    )
    for name in ("sent-sim", "capture"):
        made = result(caplens.load_metric(name), captions)
        assert wrong_sentences(made.explained(0)) == ["A chef bakes bread in an oven."]
        assert "sentences" not in made.explained(1)


def test_n_gram_metrics_say_what_length_does_to_them() -> None:
    texts = ["a dog runs on the grass. the dog has a ball. the grass is green.", "a cat"]
    references = [["a dog runs"], ["a cat"]]
    assert "about 50 % of the captions are over three times as long" in scored("cider-d", texts, references).notes[0]
    assert "BLEU falls" in scored("bleu-4", texts, references).notes[0]
    assert not scored("cider-r", texts, references).notes
    assert not scored("bleu-4", texts[1:], references[1:]).notes
