"""Merging synonyms and matching claims, with a toy WordNet."""

from __future__ import annotations

from caplens.text.concepts import SceneGraph, matches

SYNSETS = {
    "car": {1, 2}, "auto": {1}, "machine": {2, 3, 4, 5}, "red": {10}, "crimson": {10, 11}, "near": {20}, "by": {20, 21},
}  # fmt: skip


def synsets(word: str) -> frozenset[int]:
    return frozenset(SYNSETS.get(word, ()))


def texts(*propositions: tuple[str, ...]) -> list[list[str]]:
    return [claim.text for claim in SceneGraph(propositions, synsets).claims()]


def test_synonyms_are_one_object_and_its_claims_merge() -> None:
    assert texts(("car",), ("auto", "red"), ("car", "crimson"), ("car", "tree", "near"), ("auto", "tree", "by")) == [
        ["auto/car"],
        ["tree"],
        ["auto/car", "crimson/red"],
        ["auto/car", "by/near", "tree"],
    ]


def test_a_word_joins_the_object_it_shares_most_with() -> None:
    assert texts(("machine",), ("auto",), ("car",)) == [["machine"], ["auto/car"]]


def test_repeated_claims_count_once_and_be_is_dropped() -> None:
    assert texts(("dog",), ("dog",), ("dog", "mat", "be on"), ("dog", "mat", "on")) == [
        ["dog"],
        ["mat"],
        ["dog", "on", "mat"],
    ]


def test_claims_match_by_word_or_synset_part_by_part() -> None:
    mine = SceneGraph([("car", "red"), ("dog", "mat", "on")], synsets).claims()
    theirs = SceneGraph([("auto", "crimson"), ("dog", "mat", "under")], synsets).claims()
    found = {tuple(claim.text): matched for claim, matched in zip(mine, matches(mine, theirs), strict=True)}
    assert found == {
        ("car",): True,
        ("dog",): True,
        ("mat",): True,
        ("car", "red"): True,
        ("dog", "on", "mat"): False,
    }
