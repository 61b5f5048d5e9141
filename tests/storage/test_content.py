"""The content of captions: every text and every byte counts, ids and folders do not."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pytest

from caplens.core.captions import CaptionSet
from caplens.storage.content import content_identity


@dataclass
class Member:
    """A picture in an archive."""

    name: str
    data: bytes

    def open(self) -> BinaryIO:
        return io.BytesIO(self.data)


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.jpg" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_bytes(b"picture %d" % number)
    return paths


def identity(candidates: list[str], references: list[list[str]] | None = None, **columns: object) -> str:
    made = content_identity(CaptionSet.of(candidates, references, **columns))  # type: ignore[arg-type]
    assert made.lasting
    return made.text


def test_every_text_counts_and_so_does_where_it_stands() -> None:
    sets = [
        identity(["a b", "c"]),
        identity(["a", "b c"]),
        identity(["c", "a b"]),
        identity(["a b", "c"], [[], []]),
        identity(["a b", "c"], [["x"], []]),
        identity(["a b", "c"], [[], ["x"]]),
        identity(["a b", "c"], [["x", "y"], []]),
        identity(["a b", "c"], [["xy"], []]),
        identity(["a b", "c"], [["x"], ["y"]]),
        identity(["a b", "c\ud83d"]),
    ]
    assert len(set(sets)) == len(sets)


def test_ids_count_for_nothing() -> None:
    assert identity(["a", "b"], ids=["x", "y"]) == identity(["a", "b"])


def test_shuffled_pictures_of_one_size_are_others(pictures: list[Path]) -> None:
    captions = ["a", "b", "c"]
    before = identity(captions, images=pictures)
    assert identity(captions, images=[*pictures]) == before
    assert identity(captions, images=[pictures[1], pictures[0], pictures[2]]) != before
    first, second = (path.read_bytes() for path in pictures[:2])
    pictures[0].write_bytes(second)
    pictures[1].write_bytes(first)
    assert identity(captions, images=pictures) != before
    assert identity(captions, videos=pictures) != identity(captions, images=pictures)


def test_a_picture_in_another_folder_is_the_same_and_under_another_name_is_not(pictures: list[Path]) -> None:
    before = identity(["a"], images=[pictures[0]])
    (pictures[0].parent / "moved").mkdir()
    moved = pictures[0].rename(pictures[0].parent / "moved" / pictures[0].name)
    assert identity(["a"], images=[str(moved)]) == before
    assert identity(["a"], images=[moved.rename(moved.with_name("other.jpg"))]) != before


def test_which_rows_share_a_picture_counts(pictures: list[Path]) -> None:
    copy = pictures[0].parent / "copies"
    copy.mkdir()
    (copy / "0.jpg").write_bytes(pictures[0].read_bytes())
    assert identity(["a", "b"], images=[pictures[0]] * 2) != identity(["a", "b"], images=[pictures[0], copy / "0.jpg"])


def test_a_picture_that_comes_or_goes_changes_the_content(pictures: list[Path]) -> None:
    seen = {identity(["a"], images=pictures[:1]), identity(["a"], images=[None]), identity(["a"])}
    pictures[0].unlink()
    seen.add(identity(["a"], images=pictures[:1]))
    pictures[0].mkdir()
    seen.add(identity(["a"], images=[str(pictures[0]) + "\0"]))
    assert len(seen) >= 4


def test_members_of_archives_count_with_their_bytes() -> None:
    one = identity(["a"], images=[Member("0.jpg", b"one")])
    assert identity(["a"], images=[Member("0.jpg", b"one")]) == one
    assert identity(["a"], images=[Member("0.jpg", b"two")]) != one


def test_only_the_columns_asked_for_count(pictures: list[Path]) -> None:
    bare = CaptionSet.of(["a"])
    full = CaptionSet.of(["a"], [["b"]], images=pictures[:1])
    assert content_identity(bare, ()) == content_identity(full, ())
    assert content_identity(bare, {"references"}) != content_identity(full, {"references"})
    assert content_identity(bare, {"image"}) != content_identity(full, {"image"})


def test_what_an_address_shows_may_be_another_tomorrow() -> None:
    addressed = CaptionSet.of(["a"], images=["https://example.org/cat.jpg"])
    assert not content_identity(addressed).lasting
    assert content_identity(addressed, ()).lasting
