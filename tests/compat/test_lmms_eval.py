"""Tasks of lmms-eval: `process_results` per document, then one aggregation over all (as its version 0.7 calls them)."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from PIL import Image

import caplens
from caplens.compat.lmms_eval import aggregation, results_of
from caplens.core.errors import CaplensError
from caplens.readers.media import BytesMedia

CANDIDATES = ["a cat on a mat", "two dogs run", ""]
DOCUMENTS: list[dict[str, Any]] = [
    {"question_id": "1.jpg", "answer": ["a cat on the mat", "the cat"]},
    {"question_id": "2.jpg", "answer": ["two dogs"]},
    {"question_id": "3.jpg", "answer": "one bird flies"},
]
REFERENCES = [["a cat on the mat", "the cat"], ["two dogs"], ["one bird flies"]]


def test_documents_add_up_to_one_evaluation() -> None:
    process_results = results_of("cider-d", "bleu-2")
    answers = [
        process_results(document, [text] if text else []) for document, text in zip(DOCUMENTS, CANDIDATES, strict=True)
    ]
    gathered = pickle.loads(pickle.dumps(answers))  # as it comes from other processes
    report = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["cider-d", "bleu-2"])
    for name in ("cider-d", "bleu-2"):
        aggregate = aggregation(name)
        assert aggregate([answer[name] for answer in gathered]) == report[name].score
        assert list(inspect.signature(aggregate).parameters) == ["items"]  # `args` would be passed on top
    assert aggregation("cider-d", sigma=2.0)([answer["cider-d"] for answer in answers]) != report["cider-d"].score


def test_pictures_of_documents() -> None:
    picture = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(2, 2, 3))
    item = results_of("clip-s", references=None, image="image")({"image": picture}, ["a dog"])["clip-s"]
    assert (item["caption"], item["references"]) == ("a dog", None)
    assert isinstance(item["image"], BytesMedia)
    with Image.open(item["image"].open()) as stored:
        assert np.array_equal(np.asarray(stored), np.asarray(picture))


def test_mistakes() -> None:
    with pytest.raises(CaplensError, match="cider-x"):
        results_of("cider-d", "cider-x")
    with pytest.raises(CaplensError, match="no captions were given"):
        aggregation("bleu-1")([])
    with pytest.raises(CaplensError, match="a picture is a int"):
        results_of("clip-s", references=None, image="image")({"image": 3}, ["a dog"])
