"""caplens.explain: what it refuses, what it gives, and that the page cannot be broken by a caption."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from PIL import Image

import caplens
from caplens.core.errors import InputError, MissingData
from caplens.core.plain_json import json_text
from caplens.evaluation import explain as module
from caplens.evaluation.details import left_out
from caplens.storage import weights


@pytest.fixture
def no_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """SPICE has no parser here."""

    def missing(*arguments: object) -> None:
        raise MissingData("en_core_web_md not on this machine yet")

    monkeypatch.setattr(module, "score_captions", missing)


@pytest.mark.usefixtures("no_graphs")
def test_references_alone_explain_and_say_what_is_missing() -> None:
    made = caplens.explain("a cat flies", references=["a cat sleeps", " "])
    assert made.references == ["a cat sleeps"]
    assert made.wrong_words() == ["flies"]
    assert made["references"]["missing"][0]["text"] == "sleeps"
    assert made.views[0].notes[-1] == "scene graphs were left out: en_core_web_md not on this machine yet"
    assert json.loads(json_text(made.to_dict()))["explanations"]["references"]["recall"] == 0.5
    with pytest.raises(KeyError, match="has: references"):
        made["picture"]


@pytest.mark.usefixtures("no_graphs")
def test_a_picture_that_cannot_be_looked_at_is_noted_if_there_are_references(tmp_path: Path) -> None:
    Image.new("RGB", (30, 20)).save(tmp_path / "photo.png")
    made = caplens.explain("a cat", tmp_path / "photo.png", ["a dog"])
    assert [view.name for view in made.views] == ["references"]
    assert made.notes == ("the picture was not looked at: en_core_web_md not on this machine yet",)
    made.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8").count("data:image/jpeg") == 2  # shown, and for the script
    with pytest.raises(MissingData):
        caplens.explain("a cat", tmp_path / "photo.png")


@pytest.mark.parametrize(
    ("caption", "references", "message"),
    [
        ("", ["a"], "the caption is empty"),
        (" \n", ["a"], "the caption is empty"),
        ("a cat", None, "nothing to compare the caption with"),
        ("a cat", ["", " "], "nothing to compare the caption with"),
        ("a cat", "a dog", "one string"),
    ],
)
def test_unusable_input_is_refused(caption: str, references: list[str] | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        caplens.explain(caption, references=references)


def test_a_picture_that_is_none_is_refused_even_with_references(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("no picture")
    with pytest.raises(InputError, match=r"text.jpg: is not a picture"):
        caplens.explain("a cat", tmp_path / "text.jpg", ["a dog"])
    with pytest.raises(InputError, match="no such file"):
        caplens.explain("a cat", tmp_path / "absent.jpg", ["a dog"])


@pytest.mark.usefixtures("no_graphs")
def test_the_page_is_whole_and_markup_in_it_stays_text(tmp_path: Path) -> None:
    evil = "</script><script>alert('x')</script><img src=x onerror=alert(1)> & \u2028\ud83d"
    caplens.explain(evil, references=[evil, "a dog"]).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert len(re.findall("<script", page)) == 2
    assert "<img" not in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert "://" not in page


def test_words_and_regions_of_a_picture_are_linked_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    if weights.find("clip-vocabulary") is None:
        pytest.skip("the encoder's vocabulary is not in the cache: caplens weights fetch clip-vocabulary")
    monkeypatch.setattr("caplens.storage.cache.cache_folder", lambda: tmp_path / "cache")
    Image.new("RGB", (30, 20), "green").save(tmp_path / "photo.png")
    boxes = {"boxes": [[0, 0, 15, 20], [15, 0, 30, 20]], "width": 30, "height": 20, "labels": ["dog", "cat"]}
    (tmp_path / "boxes.json").write_text(json.dumps({"photo": boxes}))
    made = caplens.explain("two dogs!", tmp_path / "photo.png", regions=str(tmp_path / "boxes.json"))
    details = made["picture"]
    assert [word["text"] for word in details["words"]] == ["two", "dogs", "!"]
    assert [word.get("regions") for word in details["words"]] == [None, [0], None]
    assert [region["label"] for region in details["regions"]] == ["dog", "cat"]
    assert "dog" not in left_out(details)  # whatever its weight: the caption names it
    assert set(left_out(details)) <= {"cat"}
    assert not any("CLIP" in note for note in made.views[0].notes)
    assert made.views[0].signature.startswith("infometic|")
    german = caplens.explain("ein Hund sitzt hier", tmp_path / "photo.png", regions=str(tmp_path / "boxes.json"))
    assert "does not look English" in german["picture"]["note"]
    assert not german.wrong_words()
    assert not left_out(german["picture"])
    assert not any("English" in note for note in german.views[0].notes), "once is enough"
    assert [region["label"] for region in german["picture"]["regions"]] == ["dog", "cat"]
    german.to_html(tmp_path / "page.html")
    assert "does not look English" in (tmp_path / "page.html").read_text("utf-8")
    long = caplens.explain("dogs " * 300, tmp_path / "photo.png", regions=str(tmp_path / "boxes.json"))
    judged = [word for word in long["picture"]["words"] if "status" in word]
    assert 0 < len(judged) < 40  # what the network does not read is not called wrong
    assert any("only the first 30 pieces of words" in note for note in long.views[0].notes)
