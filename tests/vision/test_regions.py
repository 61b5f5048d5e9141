"""Regions: proposals from each source, fewer duplicates than the paper's selection, the same result every time."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import InputError, MissingData
from caplens.storage.weights import find
from caplens.vision.regions import (
    CLUSTERS,
    DetectorProposer,
    GridProposer,
    Regions,
    _k_means,
    choose_regions,
    make_proposer,
    merge_duplicates,
    overlaps,
)


def jittered(things: int, copies: int, seed: int) -> Regions:
    """What a detector without suppression gives: many almost equal boxes of each thing."""
    generator = np.random.default_rng(seed)
    low = generator.uniform(0, 0.7, (things, 1, 2))
    high = low + generator.uniform(0.1, 0.3, (things, 1, 2))
    boxes = np.concatenate([low, high], axis=2) + generator.normal(0, 0.004, (things, copies, 4))
    return Regions.of(boxes.reshape(-1, 4), generator.uniform(size=things * copies))


def duplicate_pairs(regions: Regions) -> int:
    overlap = overlaps(regions.boxes, regions.boxes)
    return int((np.triu(overlap, 1) >= 0.7).sum())


@pytest.mark.parametrize("seed", range(5))
def test_fewer_duplicates_than_clustering_alone(seed: int) -> None:
    proposed = jittered(things=12, copies=8, seed=seed)
    nearest = _k_means(proposed.boxes, CLUSTERS)
    paper = proposed.take(np.array([np.flatnonzero(nearest == cluster)[0] for cluster in np.unique(nearest)]))
    chosen = choose_regions(proposed)
    assert duplicate_pairs(paper) > 0
    assert duplicate_pairs(chosen) == 0
    # Nothing is lost: every proposed box still has a chosen one on the same thing.
    assert overlaps(proposed.boxes, merge_duplicates(proposed).boxes).max(axis=1).min() >= 0.7


def test_at_most_twenty_and_always_the_same() -> None:
    proposed = jittered(things=60, copies=2, seed=9)
    chosen = choose_regions(proposed)
    assert len(chosen) <= CLUSTERS
    assert (np.diff(chosen.confidences) <= 0).all()
    np.testing.assert_array_equal(chosen.boxes, choose_regions(proposed).boxes)


def test_overlap_of_known_boxes() -> None:
    boxes = np.array([[0, 0, 1, 1], [0.5, 0, 1, 1], [0, 0, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25]])
    np.testing.assert_allclose(overlaps(boxes[:1], boxes)[0], [1, 0.5, 0.25, 0])
    np.testing.assert_allclose(overlaps(boxes[1:2], boxes[2:3]), 0)


def test_the_grid_prefers_where_something_is() -> None:
    picture = np.zeros((200, 300), dtype=np.uint8)
    picture[110:190, 170:290] = np.random.default_rng(0).integers(0, 255, (80, 120))
    regions = GridProposer()(Image.fromarray(picture), "x")
    x1, y1, x2, y2 = regions.boxes[0]
    assert x1 >= 0.3
    assert y1 >= 0.3
    assert (x2, y2) == (1, 1)
    assert len(choose_regions(GridProposer()(Image.new("RGB", (1, 1)), "x"))) > 1


def test_boxes_from_files(tmp_path: Path) -> None:
    boxes = [[0, 0, 50, 100], [10, 10, 20, 20]]
    as_json = tmp_path / "boxes.json"
    as_json.write_text(json.dumps({"7": {"boxes": boxes, "width": 100, "height": 200, "confidences": [0.1, 0.9]}}))
    encoded = base64.b64encode(np.array(boxes, dtype=np.float32).tobytes()).decode()
    as_tsv = tmp_path / "boxes.tsv"
    as_tsv.write_text(f"7\t100\t200\t2\t{encoded}\t\n")
    picture = Image.new("RGB", (10, 10))
    np.testing.assert_allclose(make_proposer(str(as_json))(picture, "7").boxes[0], [0.1, 0.05, 0.2, 0.1])
    np.testing.assert_allclose(make_proposer(str(as_tsv))(picture, "7").boxes[0], [0, 0, 0.5, 0.5])
    with pytest.raises(InputError, match="no boxes for id '8'"):
        make_proposer(str(as_json))(picture, "8")
    as_json.write_text('{"7": {"boxes": [[1, 2, 3]]}}')
    with pytest.raises(InputError, match="boxes of id '7' cannot be used"):
        make_proposer(str(as_json))
    with pytest.raises(InputError, match="no such file of boxes"):
        make_proposer(str(tmp_path / "nowhere.json"))


def test_a_transformers_detector(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.YolosConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=[32, 32],
        patch_size=8,
        num_detection_tokens=5,
        num_labels=3,
    )
    transformers.YolosForObjectDetection(config).save_pretrained(tmp_path)
    transformers.YolosImageProcessor(size={"height": 32, "width": 32}, do_pad=False).save_pretrained(tmp_path)
    regions = make_proposer(str(tmp_path))(Image.new("RGB", (40, 30), "red"), "x")
    assert 0 < len(regions) <= 5
    assert ((regions.boxes >= 0) & (regions.boxes <= 1)).all()
    assert set(regions.labels) <= {"LABEL_0", "LABEL_1", "LABEL_2"}


def test_without_weights_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="caplens weights fetch efficientdet-lite0"):
        DetectorProposer()(Image.new("RGB", (10, 10)), "x")


@pytest.mark.shared
def test_the_detector_finds_the_dogs(shared: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    if find("efficientdet-lite0") is None:
        pytest.skip("the detector's weights are not here: caplens weights fetch efficientdet-lite0")
    picture = Image.open(shared / "data/flickr8k/images/1001773457_577c3a7d70.jpg")  # two dogs on a road
    regions = choose_regions(DetectorProposer()(picture, "x"))
    assert regions.labels[:2] == ("dog", "dog")
    assert overlaps(regions.boxes[:1], regions.boxes[1:2])[0, 0] < 0.3
    assert len(regions) == CLUSTERS
