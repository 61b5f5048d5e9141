"""Tables in memory, and pictures inside tables."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caplens.core.errors import InputError
from caplens.readers import read
from caplens.readers.media import BytesMedia
from caplens.readers.parquet import ParquetPicture
from caplens.vision.images import read_media

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


class Dataset:
    """What of a Hugging Face data set is relied on."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.column_names = table.column_names

    def with_format(self, kind: str) -> Dataset:
        assert kind == "arrow"
        return self

    def iter(self, batch_size: int) -> Iterator[Any]:
        for start in range(0, len(self), batch_size):
            yield self.table.slice(start, batch_size)

    def __getitem__(self, row: int) -> Any:
        return self.table.slice(row, 1)

    def __len__(self) -> int:
        return int(self.table.num_rows)


def pictures(count: int) -> Any:
    """A table as Hugging Face writes it, with pictures inside."""
    rows = [
        {
            "image": {"bytes": f"picture {number}".encode(), "path": f"p{number}.jpg"},
            "caption": f"caption {number}",
            "references": [f"reference {number}"],
        }
        for number in range(count)
    ]
    return pyarrow.Table.from_pylist(rows)


def check(captions: Any, count: int) -> None:
    assert captions.ids == [f"p{number}" for number in range(count)]
    assert captions.candidates == [f"caption {number}" for number in range(count)]
    assert captions.references == [[f"reference {number}"] for number in range(count)]
    assert [read_media(image) for image in captions.images] == [f"picture {number}".encode() for number in range(count)]


def test_pictures_inside_parquet_are_read_from_it_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    parquet.write_table(pictures(100), path, row_group_size=30)
    captions = read(path)
    check(captions, 100)
    assert captions.images is not None
    for row in (99, 3, 31, 30, 0, 98):
        image = pickle.loads(pickle.dumps(captions.images[row]))
        assert isinstance(image, ParquetPicture)
        assert image.name == f"{path}, row {row + 1}, p{row}.jpg"
        assert image.open().read() == f"picture {row}".encode()


def test_pictures_of_packed_parquet_are_kept(tmp_path: Path) -> None:
    parquet.write_table(pictures(3), tmp_path / "plain.parquet")
    path = tmp_path / "train.parquet.gz"
    path.write_bytes(gzip.compress((tmp_path / "plain.parquet").read_bytes()))
    captions = read(path)
    check(captions, 3)
    assert captions.images is not None
    assert isinstance(captions.images[0], BytesMedia)


def test_a_cell_without_bytes_names_a_file(tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").write_bytes(b"cat")
    rows = [
        {"image": {"bytes": data, "path": "cat.jpg"}, "caption": "a", "id": key} for key, data in ((1, None), (2, b"x"))
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    captions = read(tmp_path / "a.parquet")
    assert captions.images is not None
    assert [read_media(image) for image in captions.images if image] == [b"cat", b"x"]
    (tmp_path / "cat.jpg").unlink()
    with pytest.raises(InputError, match=r"cat\.jpg: there is no such file"):
        read_media(captions.images[0] or "")


def test_plain_bytes_and_plain_paths(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"id": [1], "alt": ["a"], "image": [b"bytes"]}), tmp_path / "a.parquet")
    captions = read(tmp_path / "a.parquet")
    assert captions.images is not None
    assert read_media(captions.images[0] or "") == b"bytes"
    parquet.write_table(pyarrow.table({"id": [1], "alt": ["a"], "image": ["cat.jpg"]}), tmp_path / "b.parquet")
    assert read(tmp_path / "b.parquet").images == [str(tmp_path / "cat.jpg")]


def test_a_file_that_changed_does_not_give_old_pictures(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pictures(3), path)
    (first, *_, last) = read(path).images or []
    assert read_media(first or "") == b"picture 0"
    parquet.write_table(pictures(1), path)
    with pytest.raises(InputError, match="is not there any more"):
        read_media(last or "")


def test_a_data_frame(tmp_path: Path) -> None:
    frame = pandas.DataFrame(
        {
            "image_id": [1, 2],
            "caption": ["a dog", ""],
            "references": ["a hound|a puppy", ["a cat"]],
            "image": [tmp_path / "1.jpg", None],
            "note": [None, 3.5],
        }
    )
    captions = read(frame)
    assert (captions.ids, captions.candidates) == (["1", "2"], ["a dog", ""])
    assert captions.references == [["a hound", "a puppy"], ["a cat"]]
    assert captions.images == [str(tmp_path / "1.jpg"), None]
    assert captions.source == "the DataFrame"
    with pytest.raises(InputError, match=r"the DataFrame, row 2, id '2': the caption must be a string"):
        read(pandas.DataFrame({"id": ["1", "2"], "caption": ["a", 7]}))
    for missing in (float("nan"), None, pandas.NA):
        with pytest.raises(InputError, match="the DataFrame, row 2, id '2': neither a caption nor references"):
            read(pandas.DataFrame({"id": [1, 2], "caption": ["a", missing]}))


def test_references_may_be_a_data_frame() -> None:
    captions = pandas.DataFrame({"id": [1, 2], "caption": ["a", "b"]})
    references = pandas.DataFrame({"image_id": [1, 2, 1], "caption": ["x", "y", "z"]})
    assert read(captions, references).references == [["x", "z"], ["y"]]


def test_a_data_set() -> None:
    captions = read(Dataset(pictures(600)))
    check(captions, 600)
    splits = Dataset(pictures(1))
    splits.column_names = {"train": ["caption"]}
    with pytest.raises(InputError, match=r"the Dataset: has splits \(train\); choose one"):
        read(splits)


def test_a_real_data_set() -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset(pictures(5)).cast_column("image", datasets.Image())
    check(read(data), 5)
    check(pickle.loads(pickle.dumps(read(data))), 5)
    assert read(data.select([4, 2])).ids == ["p4", "p2"]
    with pytest.raises(InputError, match="has splits"):
        read(datasets.DatasetDict(test=data))
    with pytest.raises(InputError, match="cannot read captions from a IterableDataset"):
        read(data.to_iterable_dataset())


def test_other_things_are_refused() -> None:
    with pytest.raises(InputError, match=r"cannot read captions from a dict; .*caplens\.evaluate"):
        read({"1": "a dog"})
