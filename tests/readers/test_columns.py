"""Columns are found by any sensible name; what is ambiguous is the user's to say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caplens.core.errors import InputError
from caplens.readers import read
from caplens.readers.columns import CAPTION_NAMES, IMAGE_NAMES, ColumnChoice, find_columns


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", [*CAPTION_NAMES, "Alt Text", "ALT-TEXT", " Caption "])
def test_captions_are_found_by_name(name: str, tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.csv", f"id,{name}\n1,a dog\n")).candidates == ["a dog"]
    assert read(write(tmp_path / "a.jsonl", json.dumps({"id": 1, name: "a dog"}))).candidates == ["a dog"]


@pytest.mark.parametrize("name", [*IMAGE_NAMES, "File Name", "Image-Path"])
def test_pictures_are_found_by_name_and_name_the_row(name: str, tmp_path: Path) -> None:
    captions = read(write(tmp_path / "a.csv", f"{name},alt\np/cat.jpg,a cat\n"))
    assert captions.images == [str(tmp_path / "p/cat.jpg")]
    assert captions.ids == ["cat"]


def test_a_local_picture_is_taken_before_an_address(tmp_path: Path) -> None:
    captions = read(write(tmp_path / "a.csv", "url,file_name,text\nhttp://h/1.jpg,cat.jpg,a cat\n"))
    assert captions.images == [str(tmp_path / "cat.jpg")]


def test_two_captions_are_the_users_choice(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv", "id,caption,prediction\n1,what people wrote,a guess\n")
    lines = write(tmp_path / "a.jsonl", '{"id": 1, "caption": "what people wrote", "prediction": "a guess"}')
    for path, place in ((table, r"a\.csv, line 1"), (lines, r"a\.jsonl, row 1")):
        with pytest.raises(InputError, match=f"{place}: 'caption' and 'prediction' both look like .*--caption-column"):
            read(path)
        assert read(path, caption_column="prediction").candidates == ["a guess"]
    # Null says that there is none.
    assert read(write(tmp_path / "b.jsonl", '{"id": 1, "caption": null, "text": "a dog"}')).candidates == ["a dog"]


def test_two_columns_of_references_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'refs' and 'reference_1' both look like the references"):
        read(write(tmp_path / "a.csv", "id,caption,refs,reference_1\n1,a,b,c\n"))


def test_columns_of_any_name_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "Nummer,Bild,Beschreibung\n7,cat.jpg,eine Katze\n")
    with pytest.raises(InputError, match=r"no column we know as a caption .*'Nummer', 'Bild', 'Beschreibung'"):
        read(path)
    captions = read(path, caption_column="beschreibung", image_column="Bild", id_column="Nummer")
    assert (captions.ids, captions.candidates, captions.images) == (["7"], ["eine Katze"], [str(tmp_path / "cat.jpg")])
    with pytest.raises(
        InputError, match="no column 'Text', only 'Nummer', 'Bild', 'Beschreibung'; check --caption-col"
    ):
        read(path, caption_column="Text")


def test_a_chosen_id_column_is_also_looked_for_among_the_references(tmp_path: Path) -> None:
    captions = write(tmp_path / "a.csv", "photo_number,caption\n7,a cat\n")
    for header in ("photo_number", "image_id"):
        references = write(tmp_path / "r.csv", f"{header},references\n7,cat|cats\n")
        assert read(captions, references, id_column="photo_number").references == [["cat", "cats"]]


@pytest.mark.parametrize(
    "text",
    [
        "id,caption,references\n1,a dog,a hound|a puppy\n",
        "id;caption;references\n1;a dog;a hound | a puppy |\n",
        "id\tcaption\treferences\n1\ta dog\ta hound|a puppy\n",
        'id,caption,references\n1,a dog,"a hound\na puppy"\n',
        'id,caption,references\r\n1,a dog,"a hound\r\na puppy"\r\n',
        'id,caption,references\n1,a dog,"[""a hound"", ""a puppy""]"\n',
        '"id";"caption";"references"\n"1";"a dog";"a hound|a puppy"\n',
        "\nid,caption,reference_1,reference_2\n1,a dog,a hound,a puppy\n",
    ],
)
def test_tables_by_any_separator_hold_several_references(text: str, tmp_path: Path) -> None:
    for name in ("a.csv", "a.tsv"):
        captions = read(write(tmp_path / name, text))
        assert (captions.ids, captions.candidates) == (["1"], ["a dog"])
        assert captions.references == [["a hound", "a puppy"]]


def test_text_with_other_separators_stays_whole(tmp_path: Path) -> None:
    captions = read(write(tmp_path / "a.csv", "id;caption;references\n1;a dog, a cat;dog, cat\n"))
    assert (captions.candidates, captions.references) == (["a dog, a cat"], [["dog, cat"]])
    captions = read(write(tmp_path / "a.jsonl", '{"id": 1, "caption": "a|b", "references": "a|b"}'))
    assert (captions.candidates, captions.references) == (["a|b"], [["a|b"]])


def test_records_of_many_shapes_are_told_apart() -> None:
    wide = [f"column {number}" for number in range(100)]
    assert find_columns([*wide, "caption"], ColumnChoice(), "here").caption == "caption"
    columns = find_columns(["id", "image_id", "caption"], ColumnChoice(), "here")
    assert (columns.id, columns.group) == ("id", "image_id")
    assert find_columns(["image_id", "caption"], ColumnChoice(), "here").group is None
