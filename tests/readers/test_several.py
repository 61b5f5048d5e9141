"""Several captions per picture: only where they are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caplens.core.errors import InputError
from caplens.readers import read


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


ROWS = [("7", "a dog"), ("8", "a cat"), ("7", "a hound")]
LAYOUTS = {
    "records.json": [{"image_id": int(key), "caption": text} for key, text in ROWS],
    "annotations.json": {
        "images": [{"id": 7}, {"id": 8}],
        "annotations": [{"id": 90 + n, "image_id": int(key), "caption": text} for n, (key, text) in enumerate(ROWS)],
    },
    "rows.jsonl": "\n".join(json.dumps({"id": key, "caption": text}) for key, text in ROWS),
    "rows.csv": "image_id,caption\n" + "\n".join(f"{key},{text}" for key, text in ROWS),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_repeated_ids_are_an_error_unless_several_are_wanted(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, LAYOUTS[name])
    with pytest.raises(InputError, match=rf"{name}, row 3.*, id '7': the same id as in row 1; .*several=True"):
        read(path)
    references = write(tmp_path / "r.json", {"7": ["dog"], "8": ["cat"]})
    captions = read(path, references, several=True)
    assert captions.ids == ["7#0", "8#0", "7#1"]
    assert captions.groups == ["7", "8", "7"]
    assert captions.candidates == ["a dog", "a cat", "a hound"]
    assert captions.references == [["dog"], ["cat"], ["dog"]]


@pytest.mark.parametrize(
    "content",
    [
        {"7": ["a dog", "a hound"], "8": ["a cat"]},
        [{"image_id": 7, "captions": ["a dog", "a hound"]}, {"image_id": 8, "captions": ["a cat"]}],
    ],
)
def test_lists_of_captions_are_taken_apart(content: object, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", content)
    with pytest.raises(
        InputError, match=r"id '7': a list, not one caption to judge; .*--references, or .*several=True"
    ):
        read(path)
    captions = read(path, several=True)
    assert captions.ids == ["7#0", "7#1", "8#0"]
    assert captions.groups == ["7", "7", "8"]
    assert captions.candidates == ["a dog", "a hound", "a cat"]


def test_own_ids_are_kept_and_pictures_go_by_the_group(tmp_path: Path) -> None:
    rows = [{"id": f"beam-{n}", "image_id": key, "caption": text} for n, (key, text) in enumerate(ROWS)]
    path = write(tmp_path / "a.json", rows)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for key in "78":
        (pictures / f"{key}.jpg").touch()
    references = write(tmp_path / "r.csv", "image_id,references\n7,dog|hound\n8,cat\n")
    captions = read(path, references, images=pictures, several=True)
    assert captions.ids == ["beam-0", "beam-1", "beam-2"]
    assert captions.groups == ["7", "8", "7"]
    assert captions.references == [["dog", "hound"], ["cat"], ["dog", "hound"]]
    assert captions.images == [str(pictures / f"{key}.jpg") for key in "787"]
    # Without asking, the rows' own ids stay what captions are joined by.
    alone = read(path)
    assert (alone.ids, alone.groups) == (captions.ids, None)
    with pytest.raises(InputError, match="no references for ids 'beam-0'"):
        read(path, references)


def test_references_with_ids_of_their_own_are_joined_by_the_picture(tmp_path: Path) -> None:
    captions = write(tmp_path / "c.json", [{"image_id": 7, "caption": "a dog"}])
    references = write(
        tmp_path / "r.json", [{"id": 900 + n, "image_id": 7, "caption": text} for n, text in enumerate(("x", "y"))]
    )
    assert read(captions, references).references == [["x", "y"]]


def test_a_single_caption_per_picture_is_a_group_of_one(tmp_path: Path) -> None:
    captions = read(write(tmp_path / "a.json", {"7": "a dog"}), several=True)
    assert (captions.ids, captions.groups) == (["7#0"], ["7"])
