"""CHAIR: by its definition on captions whose objects are plain to see."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import caplens
from caplens.core.errors import InputError, MissingData
from caplens.text.coco_objects import CocoObjects, coco_objects

CANDIDATES = ["a man and his dog on a couch", "two cats", "a sunny day", "a pizza, a fork and a knife"]
REFERENCES = [["a person on a sofa"], ["a kitten", "a cat"], ["the sky"], ["cutting pizza with a knife"]]


def test_both_scores_by_definition() -> None:
    report = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["chair-i", "chair-s"])
    assert report["chair-i"].scores.tolist() == pytest.approx([1 / 3, 0, 0, 1 / 3])
    assert report["chair-s"].scores.tolist() == [1, 0, 0, 1]
    assert report["chair-i"].score == pytest.approx(2 / 7)  # objects of all captions together, not a mean of shares
    assert report["chair-s"].score == 2 / 4
    assert not report["chair-i"].metric.higher_is_better


def test_details_name_the_words() -> None:
    explained = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["chair-i"])["chair-i"].explained(0)
    assert {word["text"]: word["status"] for word in explained["words"] if "status" in word} == {
        "man": "right",
        "dog": "wrong",
        "couch": "right",
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("three hot dogs", ["hot dog"]),
        ("a baby elephant with its mother", ["elephant", "person"]),
        ("a baby near an elephant", ["person", "elephant"]),
        ("a passenger jet", ["airplane"]),
        ("children with teddy bears", ["person", "teddy bear"]),
        ("a bear", ["bear"]),
        ("knives and mice", ["knife", "mouse"]),
        ("he rides his bike", ["bicycle"]),
        ("the lower delicious electric top", []),
    ],
)
def test_the_longest_name_counts(text: str, names: list[str]) -> None:
    assert [mention.name for mention in coco_objects().mentions(text.split())] == names


def test_the_table_has_coco_s_names_and_no_word_twice() -> None:
    table = coco_objects().name_of
    assert len(set(table.values())) == 80
    assert all(table[name] == name for name in set(table.values()))


def test_synonyms_of_one_s_own(tmp_path: Path) -> None:
    path = tmp_path / "synonyms.txt"
    path.write_text("dog, wolf\nsky, day\n")
    own = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["chair-i"], synonyms=path)["chair-i"]
    assert own.scores.tolist() == [1, 0, 0, 0]
    assert own.signature != caplens.evaluate(CANDIDATES, REFERENCES, metrics=["chair-i"])["chair-i"].signature
    with pytest.raises(InputError, match="no names of objects"):
        CocoObjects.parse(" , \n")


def test_annotations_count_beside_references_or_alone(tmp_path: Path) -> None:
    path = tmp_path / "instances.json"
    content = {
        "images": [{"id": 7, "file_name": "COCO_val2014_000000000007.jpg"}, {"id": 8}],
        "annotations": [{"image_id": 7, "category_id": 1}, {"image_id": 7, "category_id": 2}],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}],
    }
    path.write_text(json.dumps(content))
    captions = {"7": "a man and his dog on a couch", "8": "a dog"}
    alone = caplens.evaluate(captions, metrics=["chair-i"], annotations=path)["chair-i"]
    assert alone.scores.tolist() == pytest.approx([1 / 3, 1])
    by_name = {"COCO_val2014_000000000007.jpg": "a man and his dog on a couch"}
    assert caplens.evaluate(by_name, metrics=["chair-i"], annotations=path)["chair-i"].scores[0] == pytest.approx(1 / 3)
    with_references = caplens.evaluate(captions, {"7": ["a couch"], "8": ["x"]}, metrics=["chair-i"], annotations=path)[
        "chair-i"
    ]
    assert with_references.scores.tolist() == [0, 1]
    with pytest.raises(InputError, match="called '9'"):
        caplens.evaluate({"9": "a dog"}, metrics=["chair-i"], annotations=path)


def test_a_file_that_is_no_annotations_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "captions.json"
    for content, message in (("[]", "not COCO's instance"), ('{"annotations": [{"id": 1}]}', "annotations 1")):
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            caplens.evaluate({"9": "a dog"}, metrics=["chair-i"], annotations=path)


def test_something_must_say_what_is_there() -> None:
    with pytest.raises(MissingData, match="annotations=FILE"):
        caplens.evaluate(["a dog"], metrics=["chair-s"])


def test_the_detector_vouches_for_what_it_sees(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    cat = Path(caplens.__file__).parent / "cli" / "examples" / "images" / "cat.jpg"
    broken = tmp_path / "broken.jpg"
    broken.write_text("no picture")
    try:
        made = caplens.evaluate(
            ["a cat", "a cat", "a dog"], images=[cat, broken, cat], metrics=["chair-i"], detector=True
        )
    except MissingData as missing:
        pytest.skip(str(missing))
    np.testing.assert_array_equal(made["chair-i"].scores, [0, np.nan, 1])
    assert list(made["chair-i"].failures) == [1]
