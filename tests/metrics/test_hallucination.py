"""hallucination: the worst object decides, and what supports it."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from tests.battery import result

import caplens
from caplens.metrics.base import Result
from caplens.metrics.hallucination import match_objects


def scored(candidate: str, *references: str) -> Result:
    return result(caplens.load_metric("hallucination"), caplens.CaptionSet.of([candidate], [list(references)]))


def test_the_assignment_is_the_best_of_all() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        likeness = random.random((3, 5))
        best = max(permutations(range(5), 3), key=lambda chosen: sum(likeness[range(3), chosen]))
        made = match_objects(likeness, "abcde")
        assert [support.match for support in made] == ["abcde"[place] for place in best]
        assert [support.score for support in made] == pytest.approx(likeness[range(3), best])


def test_what_the_references_say_otherwise_is_no_hallucination() -> None:
    assert scored("a puppy on a sofa", "a dog lies on the couch").scores[0] == 1
    assert scored("an animal in a photo", "a dog lies on the couch").scores[0] == 1  # a photo is no object


def test_the_worst_object_decides_and_is_named() -> None:
    made = scored("a dog and a fork on the couch", "a dog lies on the couch", "a dog")
    words = {word["text"]: word for word in made.explained(0)["words"] if "status" in word}
    assert made.scores[0] == words["fork"]["score"]
    assert made.scores[0] < 0.5
    assert {text: word["status"] for text, word in words.items()} == {"dog": "exact", "fork": "wrong", "couch": "exact"}


def test_a_like_kind_does_not_vouch_for_a_coco_object() -> None:
    """Vectors of cat and dog are nearer than those of cat and lamp, but a cat is no dog."""
    assert scored("a cat", "a dog").scores[0] < 0.5
    assert scored("nothing much", "a dog").scores[0] == 1
    assert scored("a cat", "").scores[0] == 0
