"""sent-sim: the two similarities, by definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import caplens
from caplens.core.errors import InputError, MissingData
from caplens.encoders.sentence import SentenceEncoder

from ..encoders.tiny_bert import write_tiny_model

CANDIDATES = ["a dog runs", "two cats on grass", ""]
REFERENCES = [["the dog walks on grass", "a cat"], ["two cats on grass"], ["a man", "a red ball", "a woman sits"]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    return write_tiny_model(tmp_path / "tiny", "bert")


def test_nearest_and_centroid(folder: Path) -> None:
    encode = SentenceEncoder(folder, "tiny").encode
    nearest, centroid = [], []
    for candidate, references in zip(CANDIDATES, REFERENCES, strict=True):
        caption, *others = encode([candidate, *references]).astype(float)
        nearest.append(max(caption @ other for other in others))
        middle = np.mean(others, axis=0)
        centroid.append(caption @ middle / np.linalg.norm(middle))
    scores = {
        against: caplens.evaluate(
            CANDIDATES, REFERENCES, metrics=["sent-sim"], text_encoder=str(folder), against=against
        )
        for against in ("nearest", "centroid", "both")
    }
    assert np.allclose(scores["nearest"]["sent-sim"].scores, nearest, atol=1e-6)
    assert np.allclose(scores["centroid"]["sent-sim"].scores, centroid, atol=1e-6)
    both = scores["both"]["sent-sim"]
    assert np.allclose(both.scores, (np.array(nearest) + centroid) / 2, atol=1e-6)
    assert both.scores[1] == pytest.approx(1, abs=1e-6)
    assert both.details is not None
    assert both.details[0]["nearest"] == pytest.approx(nearest[0], abs=1e-6)
    assert "encoder:tiny@" in both.signature
    assert "against:both" in both.signature


def test_missing_weights_and_bad_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="caplens weights fetch all-MiniLM-L6-v2"):
        caplens.evaluate(["a dog"], [["a dog"]], metrics=["sent-sim"])
    with pytest.raises(InputError, match="nearest, centroid or both"):
        caplens.load_metric("sent-sim", against="all")


def test_other_folders_of_sentence_transformers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from caplens.encoders.bert import BertEncoder

    texts = ["a dog runs", "two cats on grass"]
    in_numpy = SentenceEncoder(folder, "numpy").encode(texts)
    with monkeypatch.context() as patch:  # as a folder of another architecture is read
        patch.setattr(BertEncoder, "reads", lambda config: False)
        np.testing.assert_allclose(SentenceEncoder(folder, "torch").encode(texts), in_numpy, atol=1e-5)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    with pytest.raises(InputError, match="does not take the mean"):
        SentenceEncoder(folder, "tiny")


def test_captions_that_the_encoder_does_not_understand_get_a_note() -> None:
    given = caplens.CaptionSet.of(["um cachorro corre na grama", "uma mulher cozinha"])
    assert "multilingual-e5-small understands" in (caplens.load_metric("sent-sim").language_note(given) or "")
    assert caplens.load_metric("sent-sim", text_encoder="multilingual-e5-small").language_note(given) is None


def test_words_have_vectors_of_their_own_also_in_texts_that_are_too_long(folder: Path) -> None:
    encoder = SentenceEncoder(folder, "tiny")
    words = ["a", "dog", "", "runs"]
    vectors, empty = encoder.encode_words([words, []])
    assert (vectors.shape, empty.shape) == ((4, encoder.dimension), (0, encoder.dimension))
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1, 1, 0, 1], abs=1e-5)
    assert not np.allclose(vectors[1], encoder.encode_words([["dog"]])[0][0])  # as it is meant there
    long = encoder.encode_words([["dog"] * (3 * encoder.longest)])[0]
    assert np.linalg.norm(long, axis=1) == pytest.approx(np.ones(len(long)), abs=1e-5)
