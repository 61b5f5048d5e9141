"""The typed structure of `.details`: every metric keeps to it, and what does not is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.toys import Overlap, Picky

import caplens
from caplens.core.details import Details, LazyDetails, Word, read_details
from caplens.core.errors import InputError
from caplens.evaluation.details import apply_verdict_rules, left_out, wrong_words
from caplens.metrics._mlp import Contributions, FeatureMLP


class Counted(LazyDetails):
    """Says its row, and counts how often it was asked."""

    def __init__(self, rows: int) -> None:
        self.rows, self.asked = rows, 0

    def __len__(self) -> int:
        return self.rows

    def of(self, row: int) -> Details:
        self.asked += 1
        return {"note": str(row)}


def test_lazy_details_behave_like_a_list() -> None:
    lazy = Counted(4)
    assert lazy.asked == 0
    assert [entry["note"] for entry in lazy] == ["0", "1", "2", "3"]
    assert lazy[-1] == {"note": "3"}
    assert lazy[1:3] == [{"note": "1"}, {"note": "2"}]
    with pytest.raises(IndexError):
        lazy[4]


def test_a_result_reads_its_details_with_their_types() -> None:
    report = caplens.evaluate(["a cat flies"], [["a cat sleeps"]], metrics=[Picky(), Overlap()])
    details = report["toy-overlap"].explained(0)
    assert wrong_words(details) == ["flies"]
    assert left_out(details) == ["sleeps"]
    assert report["toy-picky"].explained(0) == {}


def test_contributions_are_details() -> None:
    layers = ((np.ones((2, 1)), np.zeros(1)),)
    network = FeatureMLP(("one", "two"), layers, np.zeros(2), np.ones(2), np.full(2, 0.5))
    made = read_details(Contributions(network, np.array([[1.0, 0.5]]))[0])
    assert [entry["name"] for entry in made["contributions"]] == ["one", "two"]
    assert made["contributions"][1]["share"] == 0


def test_a_doubted_word_that_names_a_region_is_half_right() -> None:
    details: Details = {
        "words": [
            {"text": "dog", "status": "wrong", "regions": [0]},
            {"text": "hat", "status": "wrong"},
            {"text": "cat", "status": "right", "regions": [1]},
        ],
        "regions": [
            {"box": [0, 0, 1, 1], "status": status} for status in ("missing", "missing", "missing", "mentioned")
        ],
    }
    made = apply_verdict_rules(details)
    assert [word["status"] for word in made["words"]] == ["partly", "wrong", "right"]
    assert [region["status"] for region in made["regions"]] == ["partly", "partly", "missing", "mentioned"]
    assert details["words"][0]["status"] == "wrong", "the metric's own details stay as they are"
    assert apply_verdict_rules({"note": "x"}) == {"note": "x"}


def test_words_are_judged_by_where_they_stand_among_peoples_words() -> None:
    words: list[Word] = [
        {"text": str(percentile), "status": "wrong", "percentile": percentile} for percentile in (0.05, 0.2, 0.6)
    ]
    made = apply_verdict_rules({"words": [*words, {"text": "a"}], "regions": [{"box": [0, 0, 1, 1]}]})
    assert [word.get("status") for word in made["words"]] == ["wrong", "partly", "right", None]
    assert made["words"][1]["note"] == "doubted: 20 % of people's words weigh less"


@pytest.mark.parametrize(("percentile", "status"), [(0.05, "missing"), (0.2, "mentioned"), (0.6, "mentioned")])
def test_where_no_word_fits_no_region_is_mentioned(percentile: float, status: str) -> None:
    details: Details = {
        "words": [{"text": "a"}, {"text": "dog", "percentile": 0.02}, {"text": "chair", "percentile": percentile}],
        "missing": [{"text": "cup", "regions": [2]}],
        "regions": [
            {"box": [0, 0, 1, 1], "status": "mentioned", "label": "cat"},
            {"box": [0, 0, 1, 1], "status": "mentioned"},
            {"box": [0, 0, 1, 1], "status": "missing", "label": "cup"},
        ],
    }
    for word in details["words"][1:]:
        word["status"] = "right"
    made = apply_verdict_rules(details)
    assert [region["status"] for region in made["regions"]] == [status, status, "missing"]
    assert left_out(made) == (["cup", "cat"] if status == "missing" else ["cup"])
    assert left_out(details) == ["cup"], "the metric's own details stay as they are"


def test_without_a_judged_word_nobody_says_that_the_words_are_right() -> None:
    details: Details = {
        "words": [{"text": "!"}],
        "precision": 3.0,
        "recall": 2.0,
        "overall": 5.0,
        "percentiles": {"precision": 0.9, "recall": 0.2, "overall": 0.8},
        "regions": [{"box": [0, 0, 1, 1]}],
    }
    made = apply_verdict_rules(details)
    assert (made["precision"], made["recall"], made["overall"]) == (None, 2.0, None)
    assert made["percentiles"] == {"recall": 0.2}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"words": "a cat"}, "words: details have a str"),
        ({"words": ["a"]}, r"words\[0\]: details have 'a'"),
        ({"words": [{"status": "wrong"}]}, r"words\[0\]"),
        ({"missing": ["a", 7]}, r"missing\[1\]"),
        ({"regions": [{"box": [0, 0, 1]}]}, "left, top, right, bottom"),
        ({"words": [{"text": "a", "regions": [0]}]}, "region 0 of 0"),
        ({"contributions": [{"value": 1}]}, r"contributions\[0\]"),
    ],
)
def test_another_shape_is_refused_by_name(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_details(entry)
