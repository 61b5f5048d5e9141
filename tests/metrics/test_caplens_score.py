"""caplens cannot be gamed: honest captions win against captions that try to please a metric."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import caplens
from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning, MissingData
from caplens.core.workspace import Workspace
from caplens.metrics._well_formedness import USUAL_ORDER, WordOrder, rows_of, well_formedness
from caplens.metrics.caplens_score import FEATURES, PICTURE, CaplensScore, load_network, usualness
from caplens.storage.weights import shipped
from caplens.training.gamed import CORRUPTIONS


def scores(candidates: list[str], references: list[list[str]]) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CaplensWarning)
            return caplens.evaluate(candidates, references, metrics=["caplens-score"])["caplens-score"].scores
    except MissingData as missing:
        pytest.skip(str(missing))


@pytest.mark.shared
@pytest.mark.parametrize("collection", ["coco", "flickr30k"])
def test_gamed_captions_lose(shared: Path, collection: str) -> None:
    """Pictures of the test splits; the last sixty, which choices were made by, are left out."""
    path = {"coco": "coco/coco_captions.json", "flickr30k": "flickr30k/flickr30k_captions.json.gz"}[collection]
    data = (shared / "data" / path).read_bytes()
    images = json.loads(gzip.decompress(data) if path.endswith(".gz") else data)
    texts = [image["captions"] for _, image in sorted(images.items()) if image["split"] == "test"][-160:-60]
    random = np.random.default_rng(12)
    candidates, references = [], []
    for honest, *others in texts:
        candidates += [honest, *(corrupt(honest, others[:4], random) for corrupt in CORRUPTIONS.values())]
        references += [others[:4]] * (1 + len(CORRUPTIONS))
    table = scores(candidates, references).reshape(len(texts), -1)
    lost = dict(zip(CORRUPTIONS, (table[:, 1:] < table[:, :1]).mean(axis=0), strict=True))
    assert {name: share for name, share in lost.items() if share < 0.95} == {}


def test_shipped_weights_are_monotone() -> None:
    network = load_network(shipped("caplens"))
    assert network.features == FEATURES
    assert all((weight >= 0).all() for weight, _ in network.layers)


def test_score_is_between_0_and_1_and_the_captions_own() -> None:
    candidates = ["a dog runs on the grass", "a red bus", ""]
    references = [["a brown dog runs over grass", "the dog is running"]] * 3
    together = scores(candidates, references)
    assert ((together > 0) & (together < 1)).all()
    assert together[0] > together[1] > together[2]
    alone = [scores([candidate], [each])[0] for candidate, each in zip(candidates, references, strict=True)]
    assert together == pytest.approx(alone, abs=1e-6)


def test_manners_are_nought_for_honest_captions() -> None:
    references = [["a brown dog runs over the grass", "the dog is running in a park"]] * 4
    texts = [
        "a dog is running over the grass",
        "dog dog grass park brown running runs dog",
        "grass the over dog a",
        "a dog is in a park " * 3,
    ]
    found = well_formedness(Workspace(CaptionSet.of(texts, references)))
    assert found[0].tolist() == [0, 0, 0, 0]
    assert found[1, 1] < 0
    assert found[1, 2] < 0
    assert found[2, 0] < 0
    assert found[3, 3] == -1


def test_word_order_tells_sentences_from_shuffled_words_and_lists() -> None:
    order, sentence = WordOrder.load(), ["a", "man", "is", "riding", "a", "horse", "on", "the", "beach"]
    assert order.usual(sentence, set()) > USUAL_ORDER
    assert order.usual(["beach", "the", "a", "man", "on", "is", "riding", "horse", "a"], set()) < USUAL_ORDER - 0.2
    assert order.usual(["dog"], set()) == USUAL_ORDER
    assert order.listed(sentence, set()) == 0
    assert order.listed(["two", "dogs", "run"], {("two", "dogs"), ("dogs", "run")}) == 0
    assert order.listed(["horse", "man", "beach"], set()) == 1
    assert order.listed(["horse", "and", "beach", "and", "zebra"], set()) == 1
    joined = ["a", "zebra", "and", "a", "beach", "and", "a", "spoon"]
    assert order.listed(joined, set()) == 1
    assert order.listed(joined, set(rows_of(joined))) == 0
    assert order.listed(["a", "zebra", "on", "a", "beach", "with", "a", "spoon"], set()) == 0
    assert order.rarity("the", "of") < order.rarity("of", "the") == 0


def test_usual_captions_are_near_to_many_others() -> None:
    bank = np.eye(40)[:30]
    vectors = np.stack([np.eye(40)[35], bank[3], np.full(40, 40**-0.5)])
    assert usualness(vectors, bank) == pytest.approx([0, 0, 40**-0.5])


def test_pictures_count_where_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    for number in range(2):
        Image.new("RGB", (32, 32), (200 * number, 90, 30)).save(tmp_path / f"{number}.png")
    texts, references = ["a dog runs on the grass"] * 3, [["a brown dog runs over grass", "the dog is running"]] * 3
    monkeypatch.setattr("caplens.metrics.caplens_score.picture_fit", lambda *_: np.array([0.9, -0.9, np.nan]))
    captions = CaptionSet.of(texts, references, images=[tmp_path / "0.png", tmp_path / "1.png", None])
    try:
        blind = CaplensScore(picture=False).result(Workspace(captions))
        with pytest.warns(CaplensWarning, match="judged by references alone"):
            seeing = CaplensScore().result(Workspace(captions))
    except MissingData as missing:
        pytest.skip(str(missing))
    assert seeing.scores[0] > seeing.scores[2] > seeing.scores[1]
    assert blind.scores == pytest.approx([seeing.scores[2]] * 3)
    assert "picture:where-given" in seeing.signature
    assert "pictures:2" in seeing.signature
    assert seeing.details is not None
    shares = {entry["name"]: entry["share"] for entry in seeing.details[0]["contributions"]}
    assert shares.keys() == set(FEATURES)
    assert shares[PICTURE] > 0
    usual = load_network(shipped("caplens"))
    assert sum(shares.values()) == pytest.approx(seeing.scores[0] - usual(usual.usual[None])[0], abs=1e-3)
