"""What references support: by words and stems everywhere, by synonyms, kinds and scene graphs where the data is."""

from __future__ import annotations

from pathlib import Path

import pytest

from caplens.core.captions import CaptionSet
from caplens.core.details import Details
from caplens.core.errors import MissingData
from caplens.core.progress import silent
from caplens.evaluation.details import left_out, wrong_words
from caplens.evaluation.reference_support import ReferenceMatcher, ReferenceSupport
from caplens.storage import weights
from caplens.text import meteor_data


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing was fetched."""
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path))
    monkeypatch.setattr(weights, "find", lambda name: None)


@pytest.fixture(scope="module")
def support() -> ReferenceMatcher:
    """With everything it can use."""
    try:
        meteor_data.build(weights.require("meteor"), silent)
        weights.check("wordnet-3.0", "en_core_web_md", purpose="explaining by references")
    except MissingData as missing:
        pytest.skip(str(missing))
    return ReferenceMatcher()


def statuses(details: Details) -> dict[str, str]:
    return {word["text"]: word["status"] for word in details["words"] if "status" in word}


@pytest.mark.usefixtures("nothing")
def test_with_nothing_fetched_words_and_stems_are_compared() -> None:
    bare = ReferenceMatcher()
    [made] = bare.explain(["The dogs RUN near a sofa!"], [["A dog running to the couch.", "dog"]])
    assert statuses(made) == {"dogs": "stem", "RUN": "stem", "sofa": "wrong"}
    assert [word["text"] for word in made["words"]] == ["The", "dogs", "RUN", "near", "a", "sofa", "!"]
    assert left_out(made) == ["couch"]
    assert made["precision"] == pytest.approx(2 / 3)
    assert made["recall"] == pytest.approx(3 / 4)
    assert made["overall"] == pytest.approx(2 * (2 / 3) * (3 / 4) / (2 / 3 + 3 / 4))
    assert [note.rpartition(": ")[2] for note in bare.notes] == [
        "caplens weights fetch meteor",
        "caplens weights fetch wordnet-3.0",
        "caplens weights fetch en_core_web_md",
    ]


@pytest.mark.usefixtures("nothing")
def test_function_words_are_never_wrong_and_a_repeated_word_is_no_mistake() -> None:
    [made] = ReferenceMatcher().explain(["it is the dog behind another dog, not on one"], [["dog"]])
    assert statuses(made) == {"dog": "exact"}
    assert wrong_words(made) == []
    assert [word.get("status") for word in made["words"] if word["text"] == "dog"] == ["exact", "exact"]


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("caption", ["", "😀 🎉", "of the and", "...", "\ud83d"])
def test_a_caption_without_content_is_not_judged(caption: str) -> None:
    [made] = ReferenceMatcher().explain([caption], [["a dog"]])
    assert (made["precision"], made["recall"], made["overall"]) == (None, 0.0, None)
    assert "no word of the caption" in made["note"]
    assert left_out(made) == ["dog"]


@pytest.mark.usefixtures("nothing")
def test_references_without_content_leave_nothing_out() -> None:
    [made] = ReferenceMatcher().explain(["a dog"], [["", "of the"]])
    assert (made["precision"], made["recall"], made["overall"]) == (0.0, None, None)
    assert made["missing"] == []


@pytest.mark.usefixtures("nothing")
def test_other_languages_are_compared_as_they_are() -> None:
    [made] = ReferenceMatcher().explain(["Кошка спит"], [["кошка сидит"]])
    assert statuses(made) == {"Кошка": "exact", "спит": "wrong"}
    assert "only English" in made["note"]
    [german] = ReferenceMatcher().explain(["eine Katze sitzt"], [["eine Katze schläft"]])
    assert "only English" in german["note"]


@pytest.mark.usefixtures("nothing")
def test_what_more_references_say_comes_first() -> None:
    [made] = ReferenceMatcher().explain(["a cat"], [["a dog barks", "one dog", "brown dogs bark"]])
    assert [(item["text"], item["note"]) for item in made["missing"]] == [
        ("dog", "in 3 of 3 references, also as dogs"),
        ("bark", "in 2 of 3 references, also as barks"),
        ("brown", "in 1 of 3 references"),
    ]


@pytest.mark.usefixtures("nothing")
def test_long_captions_are_explained_to_the_end() -> None:
    words = [f"word{number}" for number in range(300)]
    [made] = ReferenceMatcher().explain([" ".join(words)], [[" ".join(words[:-1])]])
    assert wrong_words(made) == ["word299"]


@pytest.mark.parametrize(
    ("caption", "reference", "expected"),
    [
        ("a sofa", "the couch", {"sofa": "synonym"}),
        ("kids ride bikes", "children riding bicycles", {"kids": "synonym", "ride": "stem", "bikes": "synonym"}),
        ("an animal", "a cat", {"animal": "partly"}),
        ("a puppy", "a dog", {"puppy": "partly"}),
        ("people in a park", "a man in a park", {"people": "paraphrase", "park": "exact"}),
        ("a cat", "the dog", {"cat": "wrong"}),
        ("two people", "a couple", {"two": "paraphrase", "people": "wrong"}),
        ("he ran", "he is running", {"ran": "synonym"}),
    ],
)
def test_words_that_mean_the_same_or_a_kind_of_it(
    support: ReferenceMatcher, caption: str, reference: str, expected: dict[str, str]
) -> None:
    [made] = support.explain([caption], [[reference]])
    assert statuses(made) == expected
    assert support.notes == []


def test_one_thing_by_several_names_is_left_out_once(support: ReferenceMatcher) -> None:
    [made] = support.explain(["snow"], [["a dog", "a puppy", "a running dog", "he ran"]])
    assert made["missing"][0] == {"text": "dog", "score": 0.75, "note": "in 3 of 4 references, also as puppy"}
    assert len(made["missing"]) == 2


def test_a_graph_shows_what_went_to_the_wrong_thing() -> None:
    graph: Details = {
        "tuples": [
            {"text": ["dog"], "status": "right", "kind": "object"},
            {"text": ["dog", "red"], "status": "wrong", "kind": "attribute"},
            {"text": ["sofa/couch"], "status": "right", "kind": "object"},
        ],
        "categories": {"Object": 1.0},
    }
    [made] = ReferenceMatcher().explain(["a red dog, a zofa"], [["a brown dog and a red car"]], [graph])
    assert statuses(made) == {"red": "partly", "dog": "exact", "zofa": "wrong"}
    assert made["words"][1]["note"] == "said, but not of “dog”"
    assert made["precision"] == pytest.approx(1.5 / 3)
    assert made["tuples"] == graph["tuples"]


@pytest.mark.usefixtures("nothing")
def test_a_graph_stands_in_for_synonyms() -> None:
    graph: Details = {"tuples": [{"text": ["couch/sofa"], "status": "right", "kind": "object"}]}
    [made] = ReferenceMatcher().explain(["a sofa"], [["a couch"]], [graph])
    assert statuses(made) == {"sofa": "synonym"}


@pytest.mark.usefixtures("nothing")
def test_a_set_is_worked_out_in_the_order_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReferenceSupport, "PORTION", 2)
    captions = CaptionSet.of([f"cat{row}" for row in range(5)], [["cat3"]] * 5)
    lazy = ReferenceSupport(captions, [4, 3, 4, 0, 1, 2], None)
    assert len(lazy) == 5
    assert [wrong_words(lazy[row]) for row in (4, 3, 0)] == [["cat4"], [], ["cat0"]]
