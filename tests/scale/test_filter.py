"""What a filter keeps, and how it is written."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.scale.conftest import make_rows, write_shards

import caplens
from caplens.core.errors import InputError
from caplens.scale.filter import filter_shards, parse_conditions

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def kept_ids(folder: Path) -> list[str]:
    return [name for path in sorted(folder.glob("*.parquet")) for name in parquet.read_table(path)["id"].to_pylist()]


def test_conditions_keep_what_fulfills_them(folder: Path, whole: Path, tmp_path: Path) -> None:
    report = filter_shards(folder, output=tmp_path / "kept", keep="rouge-l >= 0.3 and length < 9", workers=1)
    alone = caplens.evaluate(caplens.read(whole), metrics=["rouge-l", "length"])
    good = (alone["rouge-l"].scores >= 0.3) & (alone["length"].scores < 9)
    assert kept_ids(tmp_path / "kept") == [name for name, keep in zip(alone.captions.ids, good, strict=True) if keep]
    assert (report.rows, report.kept, report.unscored) == (120, int(good.sum()), 0)
    report.to_html(tmp_path / "kept.html")
    assert "rouge-l &gt;= 0.3 and length &lt; 9" in (tmp_path / "kept.html").read_text()


def test_the_top_share_is_exact_and_ties_stay(folder: Path, whole: Path, tmp_path: Path) -> None:
    report = filter_shards(folder, output=tmp_path / "kept", top="30%", metric="rouge-l", workers=1)
    scores = caplens.evaluate(caplens.read(whole), metrics=["rouge-l"])["rouge-l"].scores
    threshold = np.sort(scores)[::-1][round(0.3 * 120) - 1]
    assert report.conditions[0].threshold == threshold
    assert report.kept == int((scores >= threshold).sum())
    json.dumps(report.to_dict())


def test_parquet_keeps_every_column(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    table = pyarrow.Table.from_pylist([{**row, "url": f"https://example.org/{row['id']}"} for row in rows])
    (tmp_path / "data").mkdir()
    parquet.write_table(table, tmp_path / "data" / "x.parquet", row_group_size=50)
    filter_shards(tmp_path / "data", output=tmp_path / "kept", keep="length > 7", workers=1)
    kept = parquet.read_table(tmp_path / "kept" / "x.parquet")
    assert kept.schema == table.schema
    expected = [row["id"] for row in rows if len(row["caption"].split()) > 7]
    assert kept["id"].to_pylist() == expected
    assert kept["url"].to_pylist() == [f"https://example.org/{name}" for name in expected]


def picture(color: int) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (32, 32), (color, 0, 0)).save(made, "PNG")
    return made.getvalue()


def write_tar(path: Path, samples: list[dict[str, bytes]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for number, sample in enumerate(samples):
            for suffix, data in sample.items():
                member = tarfile.TarInfo(f"{number:04d}{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def test_a_tar_keeps_whole_samples(tmp_path: Path) -> None:
    samples = [
        {".jpg": picture(1), ".txt": b"one two three", ".json": b'{"url": "a"}'},
        {".jpg": picture(2)},  # nothing to judge: no row
        {".jpg": picture(3), ".txt": b"one", ".flac": b"sound"},
        {".jpg": picture(4), ".txt": b"one two three four"},
    ]
    write_tar(tmp_path / "data" / "000.tar", samples)
    report = filter_shards(tmp_path / "data", output=tmp_path / "kept", keep="length >= 3", workers=1)
    assert (report.rows, report.kept) == (3, 2)
    with tarfile.open(tmp_path / "kept" / "000.tar") as archive:
        found = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    assert found == {f"{number:04d}{suffix}": data for number in (0, 3) for suffix, data in samples[number].items()}


def test_between_the_layouts(tmp_path: Path) -> None:
    write_tar(tmp_path / "data" / "000.tar", [{".png": picture(9), ".txt": b"a red square"}])
    filter_shards(tmp_path / "data", output=tmp_path / "rows", keep="length > 0", to="parquet", workers=1)
    (row,) = parquet.read_table(tmp_path / "rows" / "000.parquet").to_pylist()
    assert (row["caption"], row["image"]["bytes"]) == ("a red square", picture(9))
    filter_shards(
        tmp_path / "rows" / "000.parquet", output=tmp_path / "tars", keep="length > 0", to="webdataset", workers=1
    )
    back = caplens.read(tmp_path / "tars" / "000.tar")
    assert back.candidates == ["a red square"]
    assert back.images is not None
    with back.images[0].open() as stream:  # type: ignore[union-attr]
        assert stream.read() == picture(9)


def test_uids_are_as_datacomp_takes_them(tmp_path: Path) -> None:
    uids = ["f" * 32, "0123456789abcdef" * 2, "0" * 31 + "1"]
    rows = [{"uid": uid, "text": "one two"} for uid in uids] + [{"uid": "a" * 32, "text": "one"}]
    data = write_shards(tmp_path / "data", rows, 2)
    target = tmp_path / "uids.npy"
    report = filter_shards(data, output=target, keep="length > 1", to="uids", id_column="uid", workers=1)
    found = np.load(target)
    assert found.dtype == np.dtype("u8,u8")
    assert [f"{high:016x}{low:016x}" for high, low in found.tolist()] == sorted(uids)
    assert report.kept == 3
    with pytest.raises(InputError, match="--id-column uid"):
        filter_shards(
            write_shards(tmp_path / "other", make_rows(2), 1),
            output=tmp_path / "no.npy",
            scores=tmp_path / "s",
            keep="length > 1",
            to="uids",
            workers=1,
        )


def test_repeated_rows_are_counted_and_dropped_on_request(tmp_path: Path) -> None:
    rows = [{"id": str(number), "caption": text} for number, text in enumerate(["a cat", "a dog", "a cat", "a cat"])]
    data = write_shards(tmp_path / "data", rows, 2)
    counted = filter_shards(data, output=tmp_path / "all", keep="length > 0", workers=1)
    assert (counted.duplicates, counted.dropped_duplicates, counted.kept) == (2, 0, 4)
    dropped = filter_shards(data, output=tmp_path / "once", keep="length > 0", deduplicate=True, workers=1)
    assert (dropped.duplicates, dropped.dropped_duplicates, dropped.kept) == (2, 2, 2)
    assert kept_ids(tmp_path / "once") == ["0", "1"]


@pytest.mark.parametrize(
    "text", ["pac-s", "pac-s = 1", "nothing >= 1", "length >= one", "length > 1 or length < 3", ""]
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_conditions(text)


def test_one_of_keep_and_top(folder: Path, tmp_path: Path) -> None:
    for wrong in ({}, {"keep": "length > 1", "top": "3%"}, {"top": "30%"}, {"top": "a lot", "metric": "length"}):
        with pytest.raises(InputError):
            filter_shards(folder, output=tmp_path / "kept", workers=1, **wrong)  # type: ignore[arg-type]


def test_what_is_read_is_not_written_over(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    source = tmp_path / "data" / "x.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), source)
    before = source.read_bytes()
    with pytest.raises(InputError, match="shards are read from this folder"):
        filter_shards(source, output=tmp_path / "data", scores=tmp_path / "scores", keep="length > 7", workers=1)
    with pytest.raises(InputError, match="shards are read from this folder"):
        caplens.evaluate_shards(source, "length", output=tmp_path / "data", workers=1)
    assert source.read_bytes() == before
