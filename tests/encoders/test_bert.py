"""The numpy encoders against transformers on the same weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caplens.core.errors import InputError, MissingData
from caplens.encoders.bert import BertEncoder
from caplens.encoders.sentence import SentenceEncoder, load_sentence_encoder
from caplens.storage import weights

from .tiny_bert import write_tiny_model

TEXTS = ["a dog runs on the grass .", "two cats", "", "unknown unknowns walking xyz " * 8, "The red ball, in grass"]


@pytest.fixture(scope="module", params=["bert", "mpnet"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / request.param, request.param)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "real" not in request.node.name:
        monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))


def test_tokens_and_every_layer_equal_transformers(folder: Path) -> None:
    from caplens.encoders.tokens import TransformersEncoder

    ours, theirs = BertEncoder(folder), TransformersEncoder(folder)
    tokens = ours.tokenize(TEXTS)
    assert tokens == theirs.tokenize(TEXTS)
    assert ours.special == theirs.special
    assert max(len(ids) for ids in tokens) == 40  # the long one was cut
    for layer in (0, 1, 2, 3, None):
        for mine, other in zip(ours.states(tokens, layer), theirs.states(tokens, layer), strict=True):
            np.testing.assert_allclose(mine, other, atol=2e-5)


def test_sentences_do_not_depend_on_their_company(folder: Path) -> None:
    encoder = SentenceEncoder(folder, "tiny")
    together = encoder.encode([*TEXTS, TEXTS[0]])
    assert together.shape == (6, 24)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    assert np.array_equal(together[0], together[5])
    alone = SentenceEncoder(folder, "tiny, not from the cache").encode([TEXTS[4]])
    assert np.allclose(alone[0], together[4], atol=1e-6)
    assert encoder.encode([]).shape == (0, 24)


def test_encoded_once_means_read_from_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = SentenceEncoder(folder, "tiny").encode(TEXTS)
    again = SentenceEncoder(folder, "tiny")
    monkeypatch.setattr(again._encoder, "states", lambda *_: pytest.fail("encoded a second time"))
    assert np.array_equal(again.encode(TEXTS), first)


def test_other_models_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    with pytest.raises(InputError, match="roberta"):
        BertEncoder(tmp_path)
    with pytest.raises(MissingData, match="caplens weights fetch all-MiniLM-L6-v2"):
        load_sentence_encoder("all-MiniLM-L6-v2")


def test_real_minilm_knows_what_is_similar() -> None:
    if weights.find("all-MiniLM-L6-v2") is None:
        pytest.skip("all-MiniLM-L6-v2 is not in the cache: caplens weights fetch all-MiniLM-L6-v2")
    dog, puppy, train = load_sentence_encoder("all-MiniLM-L6-v2").encode(
        ["a dog runs on the beach", "a puppy is running along the shore", "a train enters the station"]
    )
    assert dog @ puppy > 0.6 > 0.3 > dog @ train
