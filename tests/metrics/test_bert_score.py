"""bert-score against the package bert-score on the same small random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caplens
from caplens.core.errors import InputError

from ..encoders.tiny_bert import write_tiny_model

CANDIDATES = [
    "a dog runs on the red grass",
    "two cats on grass",
    "a man",
    "the the the",
    "walking unknown xyz, two men",
]
REFERENCES = [
    ["the dog walks on grass", "a cat"],
    ["two cats", "the red ball, a blue ball"],
    ["a woman sits"],
    ["a dog", "the cat with the ball", "two dogs"],
    ["unknown walks", "a man on the grass"],
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    root = tmp_path_factory.mktemp("tiny")
    return {kind: write_tiny_model(root / kind, kind) for kind in ("bert", "mpnet")}


def ours(folder: Path, **options: Any) -> np.ndarray:
    result = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["bert-score"], text_encoder=str(folder), **options)
    return result["bert-score"].statistics


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("layer", [1, 3])
def test_equals_the_package(folders: dict[str, Path], kind: str, idf: bool, layer: int) -> None:
    peer = pytest.importorskip("bert_score")
    theirs = peer.score(CANDIDATES, REFERENCES, model_type=str(folders[kind]), num_layers=layer, idf=idf)
    assert np.allclose(ours(folders[kind], layer=layer, idf=idf), np.stack(theirs, axis=1), atol=1e-5)


def test_baseline_equals_the_package(folders: dict[str, Path], tmp_path: Path) -> None:
    peer = pytest.importorskip("bert_score")
    table = tmp_path / "baseline.tsv"
    table.write_text("LAYER,P,R,F\n0,0.1,0.2,0.3\n1,0.3,0.2,0.1\n2,0.31,0.32,0.33\n")
    theirs = peer.score(
        CANDIDATES,
        REFERENCES,
        model_type=str(folders["bert"]),
        num_layers=2,
        lang="en",
        rescale_with_baseline=True,
        baseline_path=str(table),
    )
    assert np.allclose(ours(folders["bert"], layer=2, baseline=str(table)), np.stack(theirs, axis=1), atol=1e-5)
    with pytest.raises(InputError, match="no baseline for layer 3"):
        ours(folders["bert"], layer=3, baseline=str(table))
    table.write_text("P,R\n1,2\n")
    with pytest.raises(InputError, match="LAYER,P,R,F"):
        ours(folders["bert"], layer=2, baseline=str(table))


def test_torch_and_numpy_agree(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from caplens.encoders import tokens

    in_numpy = ours(folders["mpnet"])
    monkeypatch.setattr(tokens, "_load", lambda folder, _: tokens.TransformersEncoder(folder))
    assert np.allclose(ours(folders["mpnet"]), in_numpy, atol=1e-5)


def test_parts_and_edges(folders: dict[str, Path]) -> None:
    report = caplens.evaluate(
        ["a dog", "", "a cat"], [["a dog"], ["a dog"], [""]], metrics=["bert-score"], text_encoder=str(folders["bert"])
    )
    result = report["bert-score"]
    assert result.scores.tolist() == pytest.approx([1, 0, 0], abs=1e-6)
    assert result.details is not None
    assert set(result.details[0]) == {"precision", "recall", "f"}
    assert "encoder:bert@" in result.signature
    assert "layer:last" in result.signature
    metric = caplens.load_metric("bert-score", text_encoder=str(folders["bert"]), part="recall")
    recall = caplens.evaluate(CANDIDATES, REFERENCES, metrics=[metric])["bert-score"]
    assert np.array_equal(recall.scores, recall.statistics[:, 1])
    with pytest.raises(InputError, match="take 0 to 3"):
        ours(folders["bert"], layer=4)
