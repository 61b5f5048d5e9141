"""hallucination: the worst word decides, and what supports it."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from tests.battery import result

import caplens
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics.base import Result
from caplens.metrics.hallucination import WRONG_BELOW, match_objects


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
    assert scored("a dog lies on the couch", "a dog lies on the couch").scores[0] == pytest.approx(1)
    assert scored("a puppy on a sofa", "a dog lies on the couch").scores[0] > 2 * WRONG_BELOW
    assert scored("an animal in a photo", "a dog lies on the couch").scores[0] > 2 * WRONG_BELOW  # a photo is no object


def test_the_worst_word_decides_and_is_named() -> None:
    made = scored("a dog and a fork on the couch", "a dog lies on the couch", "a dog")
    words = {word["text"]: word for word in made.explained(0)["words"] if "status" in word}
    assert made.scores[0] == words["fork"]["score"]
    assert made.scores[0] < WRONG_BELOW
    assert {text: word["status"] for text, word in words.items()} == {"dog": "exact", "fork": "wrong", "couch": "exact"}


@pytest.mark.parametrize(
    ("candidate", "reference", "wrong"),
    [
        ("a dog runs on the couch", "a dog lies on the couch", "runs"),
        ("a black dog on the grass", "a white dog on the grass", "black"),
        ("three dogs on the grass", "two dogs on the grass", "three"),
    ],
)
def test_verbs_adjectives_and_numbers_are_judged_too(candidate: str, reference: str, wrong: str) -> None:
    made = scored(candidate, reference)
    words = {word["text"]: word["score"] or 0 for word in made.explained(0)["words"] if "score" in word}
    assert min(words, key=lambda text: words[text]) == wrong
    assert made.scores[0] == words[wrong] < scored(reference, reference).scores[0]


def test_a_number_may_be_said_otherwise() -> None:
    exact, otherwise, wrong = (scored(f"{count} dogs", "a pair of dogs") for count in ("a pair of", "two", "three"))
    assert exact.scores[0] > otherwise.scores[0] > 2 * wrong.scores[0]


def test_a_like_kind_does_not_vouch_for_a_coco_object() -> None:
    """Vectors of cat and dog are nearer than those of cat and lamp, but a cat is no dog."""
    assert scored("a cat", "a dog").scores[0] < scored("a puppy", "a dog").scores[0] / 2 + 0.1
    assert scored("nothing much", "a dog").scores[0] == 1
    assert scored("a cat", "").scores[0] == 0


def test_words_are_held_against_every_word_of_the_references_one_by_one() -> None:
    """The textbook version: every pair of words by itself."""
    encoder = load_sentence_encoder("all-MiniLM-L6-v2")
    candidate, references = "a man slowly rides", ["a person riding fast", "somebody walks"]
    made = scored(candidate, *references).explained(0)["words"]
    own = encoder.encode_words([candidate.split()])[0]
    for place, word in enumerate(made):
        if word["text"] in ("slowly", "rides"):
            others = (vector for text in references for vector in encoder.encode_words([text.split()])[0])
            nearest = max(sum(float(a) * float(b) for a, b in zip(own[place], other, strict=True)) for other in others)
            assert word["score"] == pytest.approx(nearest, abs=1e-5)


def test_what_annotations_have_needs_no_reference(tmp_path: Path) -> None:
    instances = {
        "images": [{"id": 7}],
        "categories": [{"id": 1, "name": "fork"}],
        "annotations": [{"image_id": 7, "category_id": 1}],
    }
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(instances), "utf-8")
    captions = caplens.CaptionSet.of(["a dog and a fork"], [["a dog lies there"]], ids=["7"])
    by_references = result(caplens.load_metric("hallucination"), captions)
    by_both = result(caplens.load_metric("hallucination", annotations=path), captions)
    assert by_references.scores[0] < WRONG_BELOW < by_both.scores[0]
    alone = caplens.CaptionSet.of(["a dog runs by a fork"], ids=["7"])
    words = result(caplens.load_metric("hallucination", annotations=path), alone).explained(0)["words"]
    assert {word["text"] for word in words if "score" in word} == {"dog", "fork"}  # no reference says what it does
