"""Word vectors: every file format gives the same table."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from caplens.core.errors import CaplensWarning, InputError, MissingData
from caplens.text.vectors import load_vectors, vectors_name

WORDS = ["dog", "café", "new york", "dog"]
MATRIX = np.array([[1, 0.5], [-2, 3], [0.25, 1e-3], [9, 9]], dtype=np.float32)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))


def as_text(header: bool) -> bytes:
    lines = [f"{word} {' '.join(str(number) for number in row)}" for word, row in zip(WORDS, MATRIX, strict=True)]
    return "\n".join(["4 2"] * header + lines + [""]).encode()


def as_binary(newline: bytes) -> bytes:
    words = [word.replace(" ", "_").encode() for word in WORDS]
    return b"4 2\n" + b"".join(
        word + b" " + row.astype("<f4").tobytes() + newline for word, row in zip(words, MATRIX, strict=True)
    )


@pytest.mark.parametrize(
    ("name", "content", "phrase"),
    [
        ("glove.txt", as_text(header=False), "new york"),
        ("fasttext.vec", as_text(header=True), "new york"),
        ("glove.txt.gz", gzip.compress(as_text(header=False)), "new york"),
        ("word2vec.bin", as_binary(b""), "new_york"),
        ("newlines.bin", as_binary(b"\n"), "new_york"),
        ("word2vec.bin.gz", gzip.compress(as_binary(b"")), "new_york"),
    ],
)
def test_formats(tmp_path: Path, name: str, content: bytes, phrase: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for _ in range(2):  # the second time from the cache
        vectors = load_vectors(path)
        rows = vectors.rows(["dog", "cat", "café", phrase, ""])
        assert rows.tolist() == [0, -1, 1, 2, -1]
        assert np.array_equal(vectors.matrix[[0, 1, 2]], MATRIX[:3])
    assert np.allclose(np.linalg.norm(vectors.unit(np.array([0, 1])), axis=1), 1)
    assert len(list((tmp_path / "cache" / "vectors").glob("*.vectors"))) == 1
    assert vectors_name(path).startswith(f"{name}@")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"dog 1 2\n")
    before = load_vectors(path).name
    path.write_bytes(b"dog 1 2\ncat 3 4\n")
    assert load_vectors(path).rows(["cat"]).tolist() == [1]
    assert load_vectors(path).name != before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("short.txt", b"dog 1 2\ncat 3\n", "line 2"),
        ("letters.txt", b"dog 1 2\ncat 3 x\n", "lines 2 to 2|not made of numbers"),
        ("empty.txt", b"", "no word vectors"),
        ("cut.bin", as_binary(b"")[:-3], "ends after 3 of 4 words"),
    ],
)
def test_damaged_files_are_refused_and_leave_nothing(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_vectors(path)
    assert [path for path in (tmp_path / "cache" / "vectors").iterdir() if path.suffix != ".lock"] == []


def test_a_damaged_conversion_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"dog 1 2\ncat 3 4\n")
    load_vectors(path)
    (converted,) = (tmp_path / "cache" / "vectors").glob("*.vectors")
    data = bytearray(converted.read_bytes())
    data[3] ^= 0x40  # the first number
    converted.write_bytes(data)
    with pytest.warns(CaplensWarning, match="was damaged; it is made anew"):
        vectors = load_vectors(path)
    assert vectors.matrix.tolist() == [[1, 2], [3, 4]]


def test_without_a_cache_vectors_are_converted_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"dog 1 2\ncat 3 4\n")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "file"))
    with pytest.warns(CaplensWarning, match="nothing can be kept in"):
        assert load_vectors(path).matrix.tolist() == [[1, 2], [3, 4]]
    assert load_vectors(path).rows(["cat"]).tolist() == [1]


def test_missing_vectors_name_the_remedy() -> None:
    with pytest.raises(MissingData, match="caplens weights fetch glove-6b-50d"):
        load_vectors("glove-6b-50d")
