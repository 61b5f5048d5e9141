"""Scripts written for pycocoevalcap run unchanged and print the same numbers."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caplens.compat import pycocoevalcap as ours
from caplens.core.errors import CaplensWarning, InputError

pytestmark = pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
GTS = {7: ["a cat on a mat", "the cat sat"], "7": ["two dogs run"], 9: ["a 1 1/2 mile  walk", "x"], 4: ["a bird", ""]}
RES = {7: ["a cat cat sat on the mat"], "7": ["two dogs"], 9: ["a 1 1/2 mile walk"], 4: [""]}


def quietly(call: Any, *arguments: Any) -> Any:
    """The official code prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        return call(*arguments)


@pytest.mark.oracle
@pytest.mark.parametrize(("folder", "name"), [("bleu", "Bleu"), ("rouge", "Rouge"), ("cider", "Cider")])
def test_scorers_return_what_the_official_ones_return(folder: str, name: str) -> None:
    module = pytest.importorskip(f"pycocoevalcap.{folder}.{folder}")
    official = quietly(getattr(module, name)().compute_score, GTS, RES)
    mine = getattr(ours, name)().compute_score(GTS, RES)
    assert type(mine[0]) is type(official[0])
    assert type(mine[1]) is type(official[1])
    np.testing.assert_allclose(mine[0], official[0], atol=1e-12)
    np.testing.assert_allclose(mine[1], official[1], atol=1e-12)


def test_options_and_shapes_of_the_scorers() -> None:
    whole, each = ours.Bleu(2).compute_score(GTS, RES)
    assert (len(whole), len(each), len(each[0])) == (2, 2, 4)
    assert ours.Cider(sigma=1.0).compute_score(GTS, RES)[0] < ours.Cider().compute_score(GTS, RES)[0]
    score, scores = ours.CiderR(k_r=0.5).compute_score(GTS, RES)
    assert score == pytest.approx(scores.mean())
    assert [ours.Bleu().method(), ours.Cider().method(), ours.Rouge().method()] == ["Bleu", "CIDEr", "Rouge"]


@pytest.mark.parametrize(
    ("res", "message"),
    [({7: ["a"]}, "only one of them"), ({**RES, 7: ["a", "b"]}, "2 captions"), ({**RES, 7: []}, "0 cap")],
)
def test_images_that_do_not_fit_are_named(res: dict[Any, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ours.Rouge().compute_score(GTS, res)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    captions = {1: ["A cat's on a mat.", "The cat sat!"], 2: ["Two dogs\nrun", "dogs"], 3: ["A bird"], 4: ["unjudged"]}
    annotations = [
        {"id": 10 * image + number, "image_id": image, "caption": text}
        for image, texts in captions.items()
        for number, text in enumerate(texts)
    ]
    images = [{"id": image} for image in captions]
    (tmp_path / "gold.json").write_text(json.dumps({"images": images, "annotations": annotations, "info": {}}))
    results = [{"image_id": 3, "caption": "a bird flies"}, {"image_id": 1, "caption": "A cat sat on the mat"}]
    results.append({"image_id": 2, "caption": "Dogs."})
    (tmp_path / "results.json").write_text(json.dumps(results))
    return tmp_path / "gold.json", tmp_path / "results.json"


def run(coco: Any, results: Any) -> ours.COCOEvalCap:
    evaluation = ours.COCOEvalCap(coco, results)
    evaluation.params["image_id"] = results.getImgIds()
    evaluation.evaluate()
    return evaluation


def test_the_whole_evaluation_with_the_small_reader(files: tuple[Path, Path]) -> None:
    coco = ours.COCO(files[0])
    evaluation = run(coco, coco.loadRes(files[1]))
    assert {"Bleu_1", "Bleu_4", "ROUGE_L", "CIDEr"} <= set(evaluation.eval)
    assert set(evaluation.imgToEval) == {1, 2, 3}
    assert evaluation.evalImgs == list(evaluation.imgToEval.values())
    assert evaluation.imgToEval[2]["image_id"] == 2
    assert evaluation.imgToEval[2]["ROUGE_L"] == 1.0
    with pytest.raises(InputError, match="image 4"):
        ours.COCOEvalCap(coco, coco.loadRes(files[1])).evaluate()
    with pytest.raises(InputError, match="unknown images"):
        coco.loadRes([{"image_id": 99, "caption": "what?"}])


@pytest.mark.oracle
def test_pycocotools_objects_give_the_same_and_so_does_the_official_evaluation(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = pytest.importorskip("pycocotools.coco")
    coco = quietly(tools.COCO, str(files[0]))
    results = quietly(coco.loadRes, str(files[1]))
    evaluation = run(coco, results)
    small = ours.COCO(files[0])
    assert run(small, small.loadRes(files[1])).eval == evaluation.eval

    official = pytest.importorskip("pycocoevalcap.eval")
    for name in ("Meteor", "Spice"):  # minutes of Java; tested on their own
        monkeypatch.setattr(official, name, lambda: ours.Rouge())
    monkeypatch.setattr(official, "PTBTokenizer", ours.PTBTokenizer)
    peer = official.COCOEvalCap(coco, results)
    peer.params["image_id"] = results.getImgIds()
    quietly(peer.evaluate)
    for name in ("Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "ROUGE_L", "CIDEr"):
        assert evaluation.eval[name] == pytest.approx(peer.eval[name], abs=1e-12)
        for image, scores in peer.imgToEval.items():
            assert evaluation.imgToEval[image][name] == pytest.approx(scores[name], abs=1e-12)


@pytest.mark.oracle
def test_tokens_are_those_of_the_official_tool_where_they_depend_on_the_next_caption() -> None:
    official = pytest.importorskip("pycocoevalcap.tokenizer.ptbtokenizer")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    street = {"caption": "A picture of a road sign that says Branch St. 200 N."}
    captions = {
        7: [{"caption": "A cat\nplays with the new Wii U."}, street],
        3: [{"caption": "Street corner with cars"}, street],
        "3": [{"caption": "The street"}, {"caption": "Room no."}],
        5: [{"caption": "5 dogs"}, street],
    }
    tokens = ours.PTBTokenizer().tokenize(captions)
    assert tokens == quietly(official.PTBTokenizer().tokenize, captions)
    assert {rows[-1].split()[-1] for rows in tokens.values()} == {"n.", "n", "no."}


def test_a_scorer_that_cannot_run_is_left_out_with_a_warning(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Absent(ours.Scorer):
        title, metrics = "Absent", ("no-such-metric",)

    monkeypatch.setattr(ours.COCOEvalCap, "scorers", [(Absent, ["Absent"]), (ours.Rouge, ["ROUGE_L"])])
    coco = ours.COCO(files[0])
    with pytest.warns(CaplensWarning, match="Absent was left out"):
        evaluation = run(coco, coco.loadRes(files[1]))
    assert list(evaluation.eval) == ["ROUGE_L"]
