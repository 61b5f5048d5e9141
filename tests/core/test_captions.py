"""CaptionSet takes lists and mappings alike and refuses what it cannot line up."""

from __future__ import annotations

import pytest

from caplens import CaptionSet
from caplens.core.errors import CaplensWarning, InputError


def test_lists_and_mappings_give_the_same_set() -> None:
    from_lists = CaptionSet.of(["a", "b"], [["r"], ("s", "t")], ids=["x", "y"])
    from_mappings = CaptionSet.of({"x": "a", "y": "b"}, {"y": ["s", "t"], "x": ["r"]})
    assert from_lists == from_mappings


def test_numbers_and_their_text_are_the_same_id() -> None:
    captions = CaptionSet.of({7: "a"}, {"7": ["r"]}, images={"7": "seven.jpg"})
    assert (captions.ids, captions.references, captions.images) == (["7"], [["r"]], ["seven.jpg"])


def test_take_keeps_ids_unique_when_rows_repeat() -> None:
    captions = CaptionSet.of(["a", "b"], [["r"], ["s"]])
    taken = captions.take([1, 1, 0])
    assert taken.candidates == ["b", "b", "a"]
    assert len(set(taken.ids)) == 3
    assert captions.take([1]).ids == ["1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": "a dog"}, "candidates is one string"),
        ({"candidates": ["a", 3]}, "row 2, id '1': the candidate must be a string, not int"),
        ({"candidates": ["a"], "references": ["r"]}, "references must be a list of strings, not str"),
        ({"candidates": ["a"], "references": [[None]]}, "a reference must be a string"),
        ({"candidates": ["a"], "references": [["r"], ["s"]]}, "2 references for 1 candidates"),
        ({"candidates": ["a"], "references": "r"}, "references is one string"),
        ({"candidates": ["a", "b"], "ids": ["x", "x"]}, "id 'x' stands in row 1 and again in row 2"),
        ({"candidates": {"x": "a"}, "ids": ["x"]}, "ids were given twice"),
        ({"candidates": {"x": "a"}, "references": {"y": ["r"]}}, "no references for id 'x'"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CaptionSet.of(**arguments)  # type: ignore[arg-type]


def test_unused_references_are_mentioned() -> None:
    with pytest.warns(CaplensWarning, match="id 'y' are left out"):
        CaptionSet.of({"x": "a"}, {"x": ["r"], "y": ["s"]})


def test_groups_name_the_picture_of_each_caption() -> None:
    captions = CaptionSet.of(["a", "b", "c"], {"x": ["r"], 7: ["s"]}, images={"x": "x.jpg"}, groups=["x", 7, "x"])
    assert captions.ids == ["x#0", "7#0", "x#1"]
    assert captions.groups == ["x", "7", "x"]
    assert captions.references == [["r"], ["s"], ["r"]]
    assert captions.images == ["x.jpg", None, "x.jpg"]
    taken = captions.take([2, 2, 1])
    assert taken.groups == ["x", "x", "7"]
    assert CaptionSet.of(["a"]).take([0]).groups is None
    assert captions != CaptionSet.of(["a", "b", "c"], captions.references, captions.images, ids=captions.ids)


def test_groups_go_with_ids_of_their_own() -> None:
    by_id = CaptionSet.of({"p": "a", "q": "b"}, {"x": ["r"]}, groups={"q": "x", "p": "x"})
    assert (by_id.ids, by_id.groups, by_id.references) == (["p", "q"], ["x", "x"], [["r"], ["r"]])
    assert CaptionSet.of(["a", "b"], ids=["p", "q"], groups=["x", "x"]).ids == ["p", "q"]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["x"], "1 groups for 2 candidates"),
        ("xy", "groups is one string"),
        ({"x": "y"}, "no groups for ids '0', '1'"),
    ],
)
def test_groups_that_do_not_fit_are_refused(groups: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CaptionSet.of(["a", "b"], groups=groups)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the group must be a string, not int"):
        CaptionSet(["p"], ["a"], groups=[7])  # type: ignore[list-item]
