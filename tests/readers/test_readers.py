"""Every layout reads to the same CaptionSet, and every kind of bad file is refused by file, row and id."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caplens.core.errors import CaplensWarning, InputError
from caplens.readers import read, read_references
from caplens.readers.table import read_row
from caplens.readers.webdataset import TarMember

CAPTIONS = {"1": "a dog runs", "2": "", "3": "ein Käfer, “rot”"}
REFERENCES = {"1": ["a dog is running", "dog"], "2": ["a cat"], "3": ["a red beetle", "甲虫"]}


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def rows() -> list[dict[str, object]]:
    return [{"id": key, "caption": CAPTIONS[key], "references": REFERENCES[key]} for key in CAPTIONS]


def coco(folder: Path) -> tuple[Path, Path]:
    results = write(folder / "results.json", [{"image_id": int(k), "caption": c} for k, c in CAPTIONS.items()])
    pairs = [(key, text) for key, texts in REFERENCES.items() for text in texts]
    annotations = {
        "images": [{"id": int(k), "file_name": f"COCO_val2014_{int(k):012d}.jpg"} for k in CAPTIONS],
        "annotations": [{"id": 900 + n, "image_id": int(k), "caption": text} for n, (k, text) in enumerate(pairs)],
    }
    return results, write(folder / "annotations.json", annotations)


def mapping(folder: Path) -> tuple[Path, Path]:
    return write(folder / "candidates.json", CAPTIONS), write(folder / "references.json", REFERENCES)


def karpathy(folder: Path) -> tuple[Path, Path]:
    images = [
        {
            "filepath": "val2014",
            "filename": f"COCO_val2014_{int(key):012d}.jpg",
            "split": "test",
            "imgid": 90 + int(key),
            "cocoid": int(key),
            "sentids": [1, 2],
            "sentences": [{"tokens": text.split(), "raw": text, "imgid": 90, "sentid": 1} for text in texts],
        }
        for key, texts in REFERENCES.items()
    ]
    return coco(folder)[0], write(folder / "dataset_coco.json", {"images": images, "dataset": "coco"})


def jsonl(folder: Path) -> tuple[Path, None]:
    return write(folder / "rows.jsonl", "\n".join(json.dumps(row) for row in rows()) + "\n\n"), None


def jsonl_gz(folder: Path) -> tuple[Path, None]:
    path = folder / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows()).encode()))
    return path, None


def csv_json_cell(folder: Path) -> tuple[Path, None]:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    lines = [f"{k},{cell(c)},{cell(json.dumps(REFERENCES[k]))}" for k, c in CAPTIONS.items()]
    return write(folder / "rows.csv", "﻿id,caption,references\n" + "\n".join(lines) + "\n"), None


def csv_reference_columns(folder: Path) -> tuple[Path, None]:
    lines = [f"{k}\t{c}\t{chr(9).join((REFERENCES[k] + [''])[:2])}" for k, c in CAPTIONS.items()]
    return write(folder / "rows.tsv", "id\tcaption\treference_1\treference_2\n" + "\n".join(lines) + "\n"), None


def reference_per_row(folder: Path) -> tuple[Path, Path]:
    lines = [f"{key},{text}" for key, texts in REFERENCES.items() for text in texts]
    return coco(folder)[0], write(folder / "references.csv", "id,caption\n" + "\n".join(lines) + "\n")


def parquet(folder: Path) -> tuple[Path, None]:
    pyarrow = pytest.importorskip("pyarrow")
    parquet_module = pytest.importorskip("pyarrow.parquet")
    parquet_module.write_table(pyarrow.Table.from_pylist(rows()), folder / "rows.parquet")
    return folder / "rows.parquet", None


def webdataset(folder: Path) -> tuple[Path, None]:
    path = folder / "shard.tar"
    with tarfile.open(path, "w") as archive:
        for key, caption in CAPTIONS.items():
            members = {"jpg": b"picture " + key.encode(), "txt": caption.encode()}
            members["json"] = json.dumps({"references": REFERENCES[key], "file_name": "elsewhere.jpg"}).encode()
            for suffix, data in members.items():
                info = tarfile.TarInfo(f"{key}.{suffix}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return path, None


def captioned_folder(folder: Path) -> tuple[Path, None]:
    jsonl(folder)[0].rename(folder / "captions.jsonl")
    return folder, None


LAYOUTS = [
    coco,
    mapping,
    karpathy,
    jsonl,
    jsonl_gz,
    csv_json_cell,
    csv_reference_columns,
    reference_per_row,
    parquet,
    webdataset,
    captioned_folder,
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_reads_alike(layout: Callable[[Path], tuple[Path, Path | None]], tmp_path: Path) -> None:
    captions = read(*layout(tmp_path))
    assert dict(zip(captions.ids, captions.candidates, strict=True)) == CAPTIONS
    assert captions.references is not None
    assert dict(zip(captions.ids, captions.references, strict=True)) == REFERENCES


def test_tar_members_are_read_in_place_and_pickle(tmp_path: Path) -> None:
    captions = read(webdataset(tmp_path)[0])
    assert captions.images is not None
    assert [p.name for p in tmp_path.iterdir()] == ["shard.tar"]
    member = pickle.loads(pickle.dumps(captions.images[2]))
    assert isinstance(member, TarMember)
    assert member.open().read() == b"picture 3"


def test_pictures_are_found_by_id_by_file_name_and_by_coco_number(tmp_path: Path) -> None:
    results, annotations = coco(tmp_path)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in ("COCO_val2014_000000000001.jpg", "2.png"):
        (pictures / name).touch()
    expected = [str(pictures / "COCO_val2014_000000000001.jpg"), str(pictures / "2.png"), None]
    assert read(results, annotations, images=pictures).images == expected
    assert read(results, images=pictures).images == expected
    (pictures / "2.png").rename(pictures / "cat.png")
    (pictures / "COCO_val2014_000000000001.jpg").unlink()
    with pytest.raises(InputError, match="none of the 3 captions has a file here"):
        read(results, images=pictures)


def test_paths_in_a_file_are_relative_to_it(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", '{"caption": "x", "image": "p/cat.jpg"}\n{"caption": "y", "image": "http://h/d.jpg"}'
    )
    captions = read(path)
    assert captions.images == [str(tmp_path / "p/cat.jpg"), "http://h/d.jpg"]
    assert captions.ids == ["cat", "d"]


def test_karpathys_pictures_are_named_by_file_where_they_have_no_number(tmp_path: Path) -> None:
    content = {"images": [{"filename": "1000_ab.jpg", "imgid": 0, "split": "val", "sentences": [{"raw": "a dog"}]}]}
    path = write(tmp_path / "dataset_flickr8k.json", {**content, "dataset": "flickr8k"})
    assert read_references(path) == {"1000_ab": ["a dog"]}
    captions = write(tmp_path / "c.json", [{"imgid": 0, "caption": "a cat"}])
    assert read(captions, path, id_column="imgid").references == [["a dog"]]
    write(path, {"images": [{"filename": "a.jpg", "sentences": ["a dog"]}]})
    with pytest.raises(InputError, match=r"row 1: sentences must be a list of objects"):
        read_references(path)
    write(path, {"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": []})
    with pytest.raises(InputError, match="the images have neither annotations nor sentences"):
        read_references(path)


def test_annotations_may_come_before_their_pictures(tmp_path: Path) -> None:
    notes = [{"id": 5, "image_id": 1, "caption": "a dog"}]
    content = {
        "info": {"year": 2014},
        "annotations": notes,
        "licenses": [],
        "images": [{"id": 1, "file_name": "x.jpg"}],
    }
    captions = read(write(tmp_path / "a.json", content))
    assert (captions.ids, captions.images) == (["1"], [str(tmp_path / "x.jpg")])


def test_long_json_is_read_in_pieces(tmp_path: Path) -> None:
    """Values that lie across the pieces a file is read in: texts, escapes, numbers, and white space between."""
    texts = [f'{"é" * (number % 700)} "{number}" \\ \u00e9' for number in range(6000)]
    rows = [{"image_id": number, "caption": text} for number, text in enumerate(texts)]
    path = tmp_path / "a.json"
    for indent in (None, 7):
        path.write_text(json.dumps(rows, indent=indent, ensure_ascii=bool(indent)), encoding="utf-8")
        assert path.stat().st_size > 3_000_000
        captions = read(path)
        assert captions.candidates == texts
    path.write_text(path.read_text() + "x")
    with pytest.raises(
        InputError, match=rf"line {path.read_text().count(chr(10)) + 1}, column 2: not json: Extra data"
    ):
        read(path)


def test_a_cell_may_be_longer_than_the_csv_module_reads(tmp_path: Path) -> None:
    words = 'a "long" one,\n' * 20_000
    cell = words.replace('"', '""')
    (tmp_path / "a.csv").write_text(f'id,caption\n1,"{cell}"\n2,{"b" * 200_000}\n3,c\n')
    captions = read(tmp_path / "a.csv")
    assert captions.candidates == [words, "b" * 200_000, "c"]
    assert len(words) > csv.field_size_limit(), "the limit of the process is what it was"
    (tmp_path / "b.csv").write_text(f'id,caption\n1,"{cell}" more\n')
    with pytest.raises(InputError, match=r"b\.csv, row 1: not csv: ',' expected after a cell"):
        read(tmp_path / "b.csv")


@given(st.text('a",\n\r', min_size=1, max_size=20))
def test_a_row_is_cut_as_the_csv_module_cuts_it(text: str) -> None:
    def cells(cut: Callable[[Iterator[str]], list[str]]) -> list[str] | None:
        try:
            return cut(iter(re.findall("[^\n]*\n|[^\n]+", text)))
        except csv.Error:
            return None

    expected = cells(lambda lines: next(csv.reader(lines, strict=True)) or [""])
    assert cells(lambda lines: read_row(lines, ",")) == expected


def test_side_files(tmp_path: Path) -> None:
    for name in ("b.jpg", "a.png", "c.mp4", "lonely.jpg"):
        (tmp_path / name).touch()
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"caption of {name}\n" if name != "b" else "")
    captions = read(tmp_path)
    assert dict(zip(captions.ids, captions.candidates, strict=True)) == {
        "a": "caption of a",
        "b": "",
        "c": "caption of c",
    }
    assert captions.videos == [None, None, str(tmp_path / "c.mp4")]


def test_references_alone(tmp_path: Path) -> None:
    assert read_references(coco(tmp_path)[1]) == REFERENCES


def test_references_for_unknown_ids_are_named_and_left_out(tmp_path: Path) -> None:
    captions = write(tmp_path / "c.json", {"1": "a dog"})
    references = write(tmp_path / "r.json", REFERENCES)
    with pytest.warns(CaplensWarning, match=r"r\.json: references for ids '2', '3' are left out"):
        assert read(captions, references).references == [REFERENCES["1"]]


BAD_FILES = [
    ("empty.json", b"", "empty.json: the file is empty"),
    ("blank.jsonl", b"\n \n", "the file is empty"),
    ("list.json", b"[]", "the list is empty"),
    ("cut.json", b'[{"image_id": 1, "caption": "a"', "line 1, column 32: not json"),
    ("cut.jsonl", b'{"id": 1, "caption": "a"}\n{"id": 2, "capt', r"cut.jsonl, row 2: not json"),
    ("array.jsonl", b"[1]", "row 1: each line must be an object"),
    (
        "number.jsonl",
        b'{"id": "cat", "caption": 7}',
        r"row 1, id 'cat': the caption must be a string, not a number \(7\)",
    ),
    ("null.json", b'{"cat": null}', "id 'cat': the caption must be a string, not null"),
    ("twice.jsonl", b'{"id":1,"caption":"a"}\n{"id":"1","caption":"b"}', r"row 2, id '1': the same id as in .*row 1"),
    ("twice.json", b'{"1": "a", "1": "b"}', "line 1: the key '1' stands twice"),
    ("refs.jsonl", b'{"id":1,"caption":"a","references":[1]}', "id '1': reference 1 must be a string"),
    ("refs.json", b'[{"id":1,"caption":"a","references":{"a":1}}]', "references must be a list of strings"),
    (
        "some.jsonl",
        b'{"id":1,"caption":"a","references":["b"]}\n{"id":2,"caption":"c"}',
        "id '2': no references",
    ),
    ("latin.csv", b"id,caption\n1,ok\n2,caf\xe9\n", "latin.csv, line 3: byte 0xe9 is not UTF-8"),
    ("half.jsonl", b'{"id": 1, "caption": "\\ud83d"}', r"half a character \(U\+D83D at position 1\)"),
    ("header.csv", b"1,a dog\n2,a cat\n", "no column we know"),
    ("cells.csv", b"id,caption\n1,a dog, a cat\n", r"row 1 \(line 2\): 3 cells for 2 columns"),
    ("quote.csv", b'id,caption\n1,"a dog\n', "row 1: not csv: unexpected end of data"),
    ("cell.csv", b'id,caption,references\n1,a,"[""b"""\n', "json list but are none"),
    ("columns.jsonl", b'{"name": "x"}', "neither a caption nor references, only 'name'"),
    ("boolean.jsonl", b'{"id": true, "caption": "x"}', "the id must be text or a whole number"),
    ("bad.gz.json.gz", b"no gzip", "gzip data is damaged"),
    ("plain.tar", b"not a tar at all", "not a plain tar"),
    ("x.parquet", b"PARQUET?", "not parquet"),
    ("captions.docx", b"x", "cannot tell what kind of file"),
    ("scalar.json", b"3", "expected a list or an object"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES, ids=[name for name, _, _ in BAD_FILES])
def test_bad_files_are_refused_with_their_place(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)


def test_missing_things_are_named(tmp_path: Path) -> None:
    captions = write(tmp_path / "c.json", {"1": "a", "2": "b", "3": "c", "4": "d"})
    with pytest.raises(InputError, match=r"nowhere\.json: there is no such file"):
        read(tmp_path / "nowhere.json")
    with pytest.raises(InputError, match="no such folder"):
        read(captions, images=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"r\.json: no references for ids '2', '3', '4'; add references"):
        read(captions, write(tmp_path / "r.json", {"1": ["a"]}))
    with pytest.raises(InputError, match="a list, not one caption to judge; give the captions first"):
        read(tmp_path / "r.json")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="no captions in this folder"):
        read(empty)
