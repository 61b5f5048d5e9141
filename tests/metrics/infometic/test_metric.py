"""InfoMetIC and InfoCLIP: against one pair at a time on a random CLIP, and what they do with unusual input."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import caplens
from caplens.core.captions import CaptionSet
from caplens.core.details import read_details
from caplens.core.errors import InputError, MissingData
from caplens.core.workspace import Workspace
from caplens.encoders.base import Encoder

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import save_file
from tests.encoders.random_clip import random_encoder

from caplens.metrics.infometic.explained import LEAST_ALPHA
from caplens.metrics.infometic.inference import TEXT_LENGTH, tokenize_words
from caplens.text.words import split_words
from caplens.training.infometic.network import InfoMeticNetwork
from caplens.vision.regions import GridProposer, choose_regions

pytestmark = pytest.mark.usefixtures("own_cache")

CANDIDATES = ["the cat on the dog", "a dog", "", "cat cat cat"]
NAMES = ["infometic", "infometic-p", "infometic-r", "infometic-plus"]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Random weights in the released layout, whose file names no encoder."""
    torch.manual_seed(1)
    width = random_encoder().dimension
    path = tmp_path / "released.safetensors"
    save_file(InfoMeticNetwork(width, max(1, width // 32), 2, 1).state_dict(), path)
    return path


def slow(encoder: Encoder, network: InfoMeticNetwork, image: str, caption: str) -> tuple[float, float, float]:
    """One pair: precision, recall, cosine."""
    picture = Image.open(image).convert("RGB")
    boxes = choose_regions(GridProposer()(picture, "")).boxes
    crops = [picture.crop(_pixels(box, picture.size)) for box in boxes]
    whole, *parts = torch.from_numpy(encoder.encode_images([picture, *crops]))
    text = torch.from_numpy(encoder.encode_texts([caption])[0])
    start, *inner, end = encoder.tokenize(caption)[0]
    ids = [start, *inner, end] + [0] * (TEXT_LENGTH - len(inner) - 2)
    tokens = torch.from_numpy(encoder.encode_ids_whole([[start, token, end] for token in ids]))
    empty = [torch.zeros(encoder.dimension)] * (20 - len(parts))
    regions = torch.stack([whole, *parts, *empty, torch.zeros(encoder.dimension)])
    places = torch.zeros(22, 4)
    places[0] = torch.tensor([0.0, 0, 1, 1])
    places[1 : 1 + len(boxes)] = torch.from_numpy(boxes).float()
    seen = torch.tensor([False] + [True] * len(parts) + [False] * len(empty) + [True])
    read = torch.tensor([0 < place <= len(inner) for place in range(TEXT_LENGTH)])
    with torch.no_grad():
        made = network.score(
            network.encode_image(regions[None], places[None]),
            network.encode_text(tokens[None]),
            whole[None],
            text[None],
            seen[None],
            read[None],
        )
    return float(made.precision), float(made.recall), float(torch.cosine_similarity(whole, text, dim=0))


def _pixels(box: np.ndarray, size: tuple[int, int]) -> tuple[int, int, int, int]:
    left, top, right, bottom = (int(side) for side in np.round(box * [*size, *size]))
    return left, top, right, bottom


def test_equal_to_one_pair_at_a_time(images: list[str], checkpoint: Path) -> None:
    encoder = random_encoder(3)
    network = InfoMeticNetwork.from_state_dict(_tensors(checkpoint)).eval()
    pairs = [slow(encoder, network, image, caption) for image, caption in zip(images, CANDIDATES, strict=True)]
    report = caplens.evaluate(
        CANDIDATES, images=images, metrics=NAMES, encoder=encoder, weights=str(checkpoint), regions="grid"
    )
    expected = {
        "infometic": [precision + recall for precision, recall, _ in pairs],
        "infometic-p": [precision for precision, _, _ in pairs],
        "infometic-r": [recall for _, recall, _ in pairs],
        "infometic-plus": [precision + recall + 100 * near for precision, recall, near in pairs],
    }
    for name, scores in expected.items():
        np.testing.assert_allclose(report[name].scores, scores, rtol=1e-4, atol=1e-4)
        assert "regions:grid" in report[name].signature
        assert f"encoder:{encoder.identity}" in report[name].signature


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(path)


@pytest.mark.parametrize("name", ["infometic", "info-clip"])
def test_details_say_what_each_word_and_region_is(name: str, images: list[str], checkpoint: Path) -> None:
    options: dict[str, Any] = {"weights": str(checkpoint)} if name == "infometic" else {}
    result = caplens.evaluate(
        CANDIDATES, images=images, metrics=[name], encoder=random_encoder(3), regions="grid", **options
    )[name]
    assert result.details is not None
    for caption, score, entry in zip(CANDIDATES, result.scores, result.details, strict=True):
        details = read_details(entry)
        assert [word["text"] for word in details["words"]] == split_words(caption)
        assert sum(word["score"] or 0 for word in details["words"]) == pytest.approx(1 if caption else 0, abs=1e-5)
        assert 0 < sum(region["score"] or 0 for region in details["regions"]) <= 1 + 1e-6
        assert details["precision"] is not None
        assert details["recall"] is not None
        assert details["precision"] + details["recall"] == pytest.approx(score)
        judged = [word for word in details["words"] if "status" in word]
        assert {word["text"] for word in judged} <= {"cat", "dog"}
        assert all((word["status"] == "wrong") == ((word["score"] or 0) < LEAST_ALPHA) for word in judged)
    assert "note" in result.details[2]


def test_the_regions_of_a_picture_are_computed_once(
    images: list[str], checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = random_encoder(3)
    seen = []
    whole = encoder.encode_regions

    def counted(*given: Any) -> Any:
        seen.append(1)
        return whole(*given)

    monkeypatch.setattr(encoder, "encode_regions", counted)
    twice = [images[0], images[0], images[1], images[1]]
    runs: list[tuple[str, dict[str, Any]]] = [("info-clip", {}), ("infometic", {"weights": str(checkpoint)})]
    for _ in range(2):
        for name, options in runs:
            report = caplens.evaluate(
                CANDIDATES, images=twice, metrics=[name], encoder=encoder, regions="grid", **options
            )
            assert np.isfinite(report[name].scores).all()
    assert len(seen) == 2


def test_unusual_captions_get_a_number_and_a_note(images: list[str], checkpoint: Path) -> None:
    captions = ["😀 😀", "ein hund läuft", "the cat " * 150, "of the and"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = caplens.evaluate(
            captions,
            images=images,
            metrics=["infometic"],
            encoder=random_encoder(3),
            weights=str(checkpoint),
            regions="grid",
        )["infometic"]
    assert any("of 1 sentences only the first 30 pieces" in str(warning.message) for warning in caught)
    assert np.isfinite(result.scores).all()
    assert result.details is not None
    assert len(result.details[2]["words"]) == 300
    assert "note" in result.details[0]
    assert "note" in result.details[3]
    german = result.details[1]
    assert "does not look English" in german["note"]
    assert not any("status" in entry for entry in (*german["words"], *german["regions"]))
    assert (german["precision"], german["recall"], german["overall"]) == (None, None, None)


@pytest.mark.parametrize(("fault", "reason"), [("broken", "not a picture"), ("absent", "no such file")])
def test_a_picture_that_cannot_be_used_is_nan_with_its_reason(
    images: list[str], checkpoint: Path, fault: str, reason: str
) -> None:
    if fault == "broken":
        Path(images[1]).write_bytes(b"broken")
    else:
        Path(images[1]).unlink()
    options: dict[str, Any] = {"encoder": random_encoder(), "weights": str(checkpoint), "regions": "grid"}
    report = caplens.evaluate(CANDIDATES, images=images, metrics=NAMES, **options)
    for name in NAMES:
        assert np.isnan(report[name].scores).tolist() == [False, True, False, False]
        assert "1.png" in report[name].failures[1]
        assert report[name].explained(1) == {}
    with pytest.raises(InputError, match=reason):
        caplens.evaluate(CANDIDATES, images=images, metrics=["infometic"], strict=True, **options)


def test_weights_of_another_encoder_are_refused(images: list[str], checkpoint: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    save_file(_tensors(checkpoint), other, metadata={"caplens": json.dumps({"encoder": "embedded-x@1"})})
    for path, message in ((other, "belong to embedded-x@1"), (tmp_path / "none", "caplens train infometic")):
        with pytest.raises(MissingData, match=message):
            caplens.load_metric("infometic", encoder=random_encoder(), weights=str(path), regions="grid").compute(
                _work(images)
            )
    broken = tmp_path / "broken.safetensors"
    save_file({"ln.weight": torch.ones(4)}, broken)
    with pytest.raises(InputError, match="not InfoMetIC weights"):
        caplens.load_metric("infometic", encoder=random_encoder(), weights=str(broken)).compute(_work(images))


def _work(images: list[str]) -> Workspace:
    return Workspace(CaptionSet.of(CANDIDATES, images=images))


def test_words_spell_the_whole_caption() -> None:
    encoder = random_encoder()
    for text in ("the cat on the dog", "The dog's t-cat, 24!!", "a  cat"):
        assert list(tokenize_words(encoder, split_words(text), most=99).ids) == encoder.tokenize(text)[0]
