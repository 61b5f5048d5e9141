"""A run's pictures: read and decoded once, within a budget, by any number of threads."""

from __future__ import annotations

import gc
import io
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.core.workspace import Workspace
from caplens.vision import pictures as module
from caplens.vision.images import decode_image, open_image, read_media
from caplens.vision.pictures import PictureReader, pictures_of

SIDE = 50
ONE = SIDE * SIDE * 4
"""Bytes of one decoded picture."""


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    rng = np.random.default_rng(0)
    for number in range(8):
        Image.fromarray(rng.integers(0, 255, (SIDE, SIDE, 3), np.uint8)).save(tmp_path / f"{number}.png")
    return sorted(tmp_path.glob("*.png"))


class Work:
    """How often each picture was read and decoded."""

    def __init__(self) -> None:
        self.read: Counter[str] = Counter()
        self.decoded: Counter[str] = Counter()


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    done = Work()
    read, decode = read_media, decode_image

    def counted_read(media: object, **options: object) -> bytes:
        done.read[Path(str(media)).name] += 1
        return read(media, **options)  # type: ignore[arg-type]

    def counted_decode(data: bytes, name: str) -> Image.Image:
        done.decoded[Path(name).name] += 1
        return decode(data, name)

    monkeypatch.setattr(module, "read_media", counted_read)
    monkeypatch.setattr(module, "decode_image", counted_decode)
    return done


def test_each_picture_is_read_and_decoded_once(paths: list[Path], work: Work) -> None:
    reader = PictureReader()
    for _ in range(3):
        for path in paths:
            picture = reader.read(str(path))
            assert np.array_equal(np.asarray(picture.image()), np.asarray(open_image(path)))
    assert set(work.read.values()) == set(work.decoded.values()) == {1}
    assert len({reader.read(path).digest for path in paths}) == len(paths)


def test_the_budget_keeps_the_first_and_decodes_the_others_anew(paths: list[Path], work: Work) -> None:
    reader = PictureReader(most_bytes=3 * ONE + 100)
    for _ in range(3):
        for path in paths:
            reader.open(path)
    assert [work.decoded[path.name] for path in paths] == [1, 1, 1, 3, 3, 3, 3, 3]
    assert reader._kept_bytes <= reader.most_bytes


def test_the_latest_run_has_the_memory(paths: list[Path], work: Work) -> None:
    earlier, later = PictureReader(), PictureReader()
    earlier.open(paths[0])
    later.open(paths[0])
    assert earlier._kept == {}
    earlier.open(paths[0])
    assert (work.read["0.png"], work.decoded["0.png"]) == (3, 3)
    later.forget()
    assert later._kept_bytes == 0
    del earlier, later
    gc.collect()
    assert len(module._keepers) == 0, "a run that is over holds no pictures"


def test_threads_share_a_reader(paths: list[Path], work: Work) -> None:
    reader = PictureReader()
    with ThreadPoolExecutor(8) as pool:
        shown = list(pool.map(reader.open, paths * 20))
    assert set(work.decoded.values()) == {1}
    assert shown[0] is shown[len(paths)]


def test_a_file_that_changes_is_another_picture(paths: list[Path], work: Work) -> None:
    reader = PictureReader()
    before = reader.read(paths[0])
    before.image()
    Image.new("RGB", (9, 9), "red").save(paths[0])
    after = reader.read(paths[0])
    assert after.digest != before.digest
    assert after.image().size == (9, 9)


def test_a_file_that_changes_between_digest_and_decoding_is_refused(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST_HELD", 0)
    picture = PictureReader(most_bytes=0).read(paths[0])
    Image.new("RGB", (9, 9), "red").save(paths[0])
    with pytest.raises(InputError, match="changed while it was looked at"):
        picture.image()


def test_what_is_wrong_is_found_once_and_said_every_time(tmp_path: Path, work: Work) -> None:
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n and nothing else")
    reader = PictureReader()
    for _ in range(3):
        with pytest.raises(InputError, match=r"bad\.png: is damaged|bad\.png: is not a picture"):
            reader.open(tmp_path / "bad.png")
        with pytest.raises(InputError, match=r"none\.png: no such file"):
            reader.read(tmp_path / "none.png")
    assert (work.decoded["bad.png"], work.read["bad.png"], work.read["none.png"]) == (1, 1, 1)


def test_an_address_that_one_may_not_fetch_another_may(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (5, 4)).save(stream, "PNG")
    fetched: list[str] = []

    def fetch(url: str) -> bytes:
        fetched.append(url)
        return stream.getvalue()

    monkeypatch.setattr("caplens.vision.images.fetch", fetch)
    reader = PictureReader()
    with pytest.raises(InputError, match="allow_urls"):
        reader.open("https://example.org/a.png")
    assert reader.open("https://example.org/a.png", allow_urls=True).size == (5, 4)
    assert reader.open("https://example.org/a.png").size == (5, 4), "it is at hand, nothing is fetched"
    assert len(fetched) == 1


def test_members_of_an_archive_are_told_apart(paths: list[Path], work: Work) -> None:
    class Member:
        name = "same name"

        def __init__(self, path: Path) -> None:
            self.path = path

        def open(self) -> io.BytesIO:
            return io.BytesIO(self.path.read_bytes())

    reader = PictureReader()
    digests = {reader.read(Member(path)).digest for path in paths}  # each object is gone when the next is made
    assert len(digests) == len(paths)


def test_an_archive_that_raises_anything_costs_one_picture() -> None:
    class Broken:
        name = "broken.tar/1.png"

        def open(self) -> io.BytesIO:
            raise RuntimeError("the archive is\ngone")

    with pytest.raises(InputError, match=r"broken\.tar/1\.png: cannot be read \(the archive is\)"):
        PictureReader().read(Broken())


def test_a_reader_is_the_workspaces_and_travels_without_its_pictures(paths: list[Path]) -> None:
    space = Workspace(CaptionSet.of(["a"], images=[paths[0]]))
    reader = pictures_of(space)
    assert pictures_of(space) is reader
    reader.open(paths[0])
    copied = pickle.loads(pickle.dumps(reader))
    assert copied._kept == {}
    assert copied.open(paths[0]).size == (SIDE, SIDE)
