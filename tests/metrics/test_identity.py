"""One identity per metric: name, code, every option, every file; the workspace keeps results under it."""

from __future__ import annotations

import gzip
import json
import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image
from tests.battery import CHANGES, JUDGES, NAMES, make

from caplens import evaluate
from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning, MissingData
from caplens.core.signature import Signature
from caplens.core.workspace import Workspace
from caplens.metrics._mlp import FeatureMLP
from caplens.metrics.base import Metric, Statistics
from caplens.metrics.bleu import Bleu1, Bleu4
from caplens.metrics.cider import CiderD
from caplens.metrics.length import Length
from caplens.metrics.meteor import Meteor
from caplens.metrics.nneval import FEATURES, load_network
from caplens.metrics.sent_sim import SentSim
from caplens.storage.identity import Identity
from caplens.storage.weights import shipped
from caplens.text.meteor_data import JAR, TABLE
from caplens.vision.regions import make_proposer

CAPTIONS = CaptionSet.of(["a pup runs", "an old barn"], [["a puppy runs"], ["an aged barn"]])
every_metric = pytest.mark.parametrize("name", NAMES)


def identity(name: str, **options: Any) -> Identity:
    try:
        return make(name, **options).identity()
    except MissingData as missing:
        pytest.skip(str(missing))


@every_metric
def test_equal_metrics_have_one_identity_that_lasts(name: str) -> None:
    first = identity(name)
    assert first.lasting is (name not in JUDGES)  # what a server failed to say today it may say tomorrow
    assert identity(name) == first
    assert pickle.loads(pickle.dumps(make(name))).identity() == first
    assert all(f"'{option}'" in first.text for option in make(name).options())


def test_no_two_metrics_have_the_same() -> None:
    identities = {make(name).identity() for name in ("bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l", "cider-d")}
    assert len(identities) == 6


@every_metric
def test_every_option_that_changes_the_number_changes_the_identity(name: str) -> None:
    identities = [identity(name), *(identity(name, **options) for options in CHANGES.get(name, []))]
    assert len(set(identities)) == len(identities)


class Kept(Metric):
    """Keeps its option under another name."""

    name = "toy-kept"
    needs = frozenset()
    paper = summary = ""

    def __init__(self, *, floor: float = 0.0) -> None:
        self.least = floor

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(np.full((len(work.captions), 1), self.least))


def test_an_option_that_is_not_kept_under_its_name_is_named() -> None:
    with pytest.raises(TypeError, match=r"Kept does not keep its option 'floor' as self\.floor"):
        Kept(floor=0.5).result(Workspace(CAPTIONS))


def meteor_folder(folder: Path, synonyms: bool) -> Path:
    """METEOR's files with a few words; without synonyms the caption's pup is no puppy."""
    folder.mkdir()
    with zipfile.ZipFile(folder / JAR, "w") as jar:
        words = "puppy\n00000001\npup\n00000001\n" if synonyms else "puppy\n00000001\npup\n00000002\n"
        jar.writestr("synonym/english.synsets", words)
        jar.writestr("synonym/english.exceptions", "pup\npuppen\n")
    with gzip.GzipFile(folder / TABLE, "wb", mtime=0) as file:
        file.write(b"0.5\nold\naged\n")
    return folder


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))


@pytest.mark.usefixtures("own_cache")
def test_meteor_with_two_data_folders_gives_two_scores_in_one_workspace(tmp_path: Path) -> None:
    metrics = [Meteor(data=meteor_folder(tmp_path / f"{synonyms}", synonyms)) for synonyms in (True, False)]
    alone = [metric.result(Workspace(CAPTIONS)).score for metric in metrics]
    assert alone[0] > alone[1]
    shared = Workspace(CAPTIONS)
    assert [metric.result(shared).score for metric in metrics] == alone
    assert metrics[0].result(shared) is metrics[0].result(shared)


@pytest.mark.usefixtures("own_cache")
def test_meteor_notices_data_that_arrives_and_data_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = Meteor().identity()
    monkeypatch.setenv("CAPLENS_METEOR_DATA", str(meteor_folder(tmp_path / "meteor", synonyms=True)))
    with_data = Meteor().identity()
    assert with_data != bare
    (tmp_path / "meteor" / JAR).unlink()
    (tmp_path / "meteor" / TABLE).unlink()
    (tmp_path / "meteor").rmdir()
    meteor_folder(tmp_path / "meteor", synonyms=False)
    assert Meteor().identity() not in (bare, with_data)


def test_tokenizers_without_a_name_share_neither_signature_nor_result() -> None:
    tokenizers: list[Callable[[str], list[str]]] = [lambda text: text.split(), lambda text: list(text)]
    work = Workspace(CAPTIONS)
    for metric in (Length, Bleu4, CiderD, Meteor):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CaplensWarning)
            results = [metric(tokenizer=tokenizer).result(work) for tokenizer in tokenizers]
        signatures = [Signature.parse(result.signature) for result in results]
        assert signatures[0] != signatures[1]
        assert signatures[0]["tokenizer"] != signatures[1]["tokenizer"]
        assert results[0].statistics.tolist() != results[1].statistics.tolist()
        assert not metric(tokenizer=tokenizers[0]).identity().lasting
        assert metric(tokenizer=tokenizers[0]).result(work) is results[0]
    assert Length(tokenizer=str.split).identity().lasting


def test_metrics_of_one_name_and_other_code_are_others() -> None:
    class Longest(Bleu1):
        longest: ClassVar[int] = 4

    work = Workspace(CAPTIONS)
    assert Longest().result(work).score != Bleu1().result(work).score
    assert not Longest().identity().lasting


def test_idf_is_its_content_wherever_it_comes_from(tmp_path: Path) -> None:
    lists = [["a pup", "a dog"], ["a barn"]]
    path = tmp_path / "references.json"
    path.write_text(json.dumps(dict(enumerate(lists))))
    before = CiderD(idf=path).identity()
    assert CiderD(idf=path).identity() == before != CiderD(idf=lists).identity()
    assert CiderD(idf=lists).identity() == CiderD(idf=[["a pup", "a dog"], ["a barn"]]).identity()
    path.write_text(json.dumps(dict(enumerate([["a pup", "a dog"], ["a dog"]]))))
    assert CiderD(idf=path).identity() != before
    table = CiderD(idf=lists).table()
    assert table is not None
    assert CiderD(idf=table).identity().lasting


def test_a_network_is_read_again_when_its_file_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "own.safetensors"
    network = load_network(shipped("nneval"))
    network.save(path)
    features = np.random.default_rng(0).random((5, len(FEATURES)))
    assert np.array_equal(load_network(path)(features), network(features))
    weight, bias = network.layers[-1]
    other = FeatureMLP(
        network.features, (*network.layers[:-1], (-weight, bias)), network.low, network.high, network.usual
    )
    other.save(path)
    assert np.array_equal(load_network(path)(features), other(features))


def test_a_file_of_boxes_is_its_content(tmp_path: Path) -> None:
    boxes = {"7": {"boxes": [[0, 0, 5, 5]], "width": 10, "height": 10}}
    seen = set()
    for folder, corner in (("a", 5), ("b", 6), ("a", 7)):
        path = tmp_path / folder / "boxes.json"
        path.parent.mkdir(exist_ok=True)
        boxes["7"]["boxes"] = [[0, 0, corner, 5]]
        path.write_text(json.dumps(boxes))
        proposer = make_proposer(str(path))
        seen.add((proposer.identity, proposer.name, proposer(Image.new("RGB", (10, 10)), "7").boxes[0, 2]))
    assert len({identity for identity, _, _ in seen}) == len({name for _, name, _ in seen}) == 3
    assert {corner for _, _, corner in seen} == {0.5, 0.6, 0.7}


def test_what_is_missing_is_still_the_metrics_own_message() -> None:
    report = evaluate(CAPTIONS, metrics=[Length(), SentSim(text_encoder="./nowhere")])
    assert "nowhere" in report.errors["sent-sim"]


def test_a_network_with_nan_is_refused_and_not_scored(tmp_path: Path) -> None:
    network = load_network(shipped("nneval"))
    weight, bias = network.layers[0]
    layers = ((weight * np.nan, bias), *network.layers[1:])
    broken = FeatureMLP(network.features, layers, network.low, network.high, network.usual)
    broken.save(tmp_path / "broken.safetensors")
    report = evaluate(CAPTIONS, metrics=[Length(), make("nneval", weights=tmp_path / "broken.safetensors")])
    assert "not finite" in report.errors["nneval"]
