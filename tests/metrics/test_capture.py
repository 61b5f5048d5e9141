"""capture: three stages of matching against a slow twin, and what it says of real captions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.battery import result

import caplens
from caplens.metrics.base import Result
from caplens.metrics.capture import Matched, Matcher, f1_of, score_of

WORDS = ["dog", "puppy", "cat", "car", "auto", "red", "sky"]
SYNONYMS = [{"dog", "puppy"}, {"car", "auto"}]
COSINES = np.random.default_rng(0).random((len(WORDS), len(WORDS)))
COSINES = (COSINES + COSINES.T) / 2
CLAIMS = st.lists(st.sampled_from(WORDS).map(lambda word: (word,)), unique=True, max_size=6)


def are_synonyms(one: str, other: str) -> bool:
    return any({one, other} <= group for group in SYNONYMS)


def alike(mine: Sequence[tuple[str, ...]], theirs: Sequence[tuple[str, ...]]) -> np.ndarray:
    return np.array([[COSINES[WORDS.index(one[0]), WORDS.index(other[0])] for other in theirs] for one in mine])


def naive(mine: list[tuple[str, ...]], theirs: list[tuple[str, ...]]) -> tuple[float, float]:
    """Sums of support on either side, stage by stage, as the paper tells it."""
    own, others = [word for (word,) in mine], [word for (word,) in theirs]
    matched = 0
    for same in (str.__eq__, are_synonyms):
        for word in list(own):
            for other in list(others):
                if same(word, other):
                    own.remove(word)
                    others.remove(other)
                    matched += 1
                    break
    soft_mine = [max((COSINES[WORDS.index(word), WORDS.index(other)] for other in others), default=0) for word in own]
    soft_theirs = [max((COSINES[WORDS.index(word), WORDS.index(other)] for word in own), default=0) for other in others]
    return matched + sum(soft_mine), matched + sum(soft_theirs)


@given(CLAIMS, CLAIMS)
def test_matching_equals_the_slow_twin(mine: list[tuple[str, ...]], theirs: list[tuple[str, ...]]) -> None:
    made = Matcher(alike, are_synonyms).match_kind(mine, theirs)
    supported, found = naive(mine, theirs)
    assert made.mine.sum() == pytest.approx(supported)
    assert made.theirs.sum() == pytest.approx(found)
    f1 = f1_of(made)
    if mine and theirs:
        precision, recall = supported / len(mine), found / len(theirs)
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall))
    else:
        assert f1 == (0.0 if mine or theirs else None)


def test_kinds_are_weighted_as_in_the_paper_and_left_out_where_neither_side_has_them() -> None:
    def matched(support: float) -> Matched:
        return Matched(np.array([support]), np.array([support]), [0], [False])

    nothing = Matched(np.empty(0), np.empty(0), [], [])
    kinds = {"object": matched(1.0), "attribute": matched(0.5), "relation": matched(0.2)}
    assert score_of(kinds) == pytest.approx((5 * 1.0 + 5 * 0.5 + 2 * 0.2) / 12)
    assert score_of({**kinds, "relation": nothing}) == pytest.approx(0.75)
    assert score_of(dict.fromkeys(kinds, nothing)) == 0.0


def scored(candidate: str, *references: str) -> Result:
    return result(caplens.load_metric("capture"), caplens.CaptionSet.of([candidate], [list(references)]))


STREET = "A red car and a white truck are on a city street. A clock tower stands under a blue sky."


def test_what_is_the_same_has_one_and_what_is_left_out_or_wrong_costs() -> None:
    assert scored(STREET, STREET).score == 1.0
    less = scored("A red car and a white truck are on a city street.", STREET)
    wrong = scored(STREET.replace("truck", "elephant"), STREET)
    assert 0.5 < less.score < 1
    assert 0.5 < wrong.score < 1
    assert "tower" in {item["text"] for item in less.explained(0)["missing"]}
    objects = {claim["text"][0]: claim for claim in wrong.explained(0)["tuples"] if claim["kind"] == "object"}
    assert objects["elephant"]["status"] == "wrong"
    assert objects["car"]["status"] == "exact"


def test_synonyms_count_in_full_and_the_mean_of_references_is_taken() -> None:
    auto = scored("an automobile", "a car")
    assert auto.score == 1.0
    assert auto.explained(0)["tuples"][0]["status"] == "synonym"
    near, far = scored("a car", "a car"), scored("a car", "a spoon")
    assert scored("a car", "a car", "a spoon").score == pytest.approx((near.score + far.score) / 2)


def test_talk_about_the_photo_itself_is_no_claim() -> None:
    assert scored("The image shows a dog.", "A photo of a dog.").score == 1.0
