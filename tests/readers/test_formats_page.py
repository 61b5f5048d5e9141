"""docs/guide/file-formats.md: its files are read by its own lines of Python, and all to the same captions."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path

import pytest

import caplens
from caplens.readers.columns import CAPTION_NAMES, ID_NAMES, IMAGE_NAMES, REFERENCES_NAMES, VIDEO_NAMES
from caplens.readers.limits import ReadLimits

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "file-formats.md").read_text("utf-8")
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL))
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TREE = re.compile(r"^[├└]── (\S+) *(.*)$", re.MULTILINE)


def write_files(folder: Path) -> None:
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")
    for tree in re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        name = tree.partition("\n")[0]
        if name.endswith(".tar"):
            with tarfile.open(folder / name, "w") as archive:
                for member, content in TREE.findall(tree):
                    info = tarfile.TarInfo(member)
                    info.size = len(content.encode())
                    archive.addfile(info, io.BytesIO(content.encode()))
        else:
            (folder / name).mkdir()
            for member, content in TREE.findall(tree):
                (folder / name / member).write_text(content)


def test_every_example_reads_to_the_same_captions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"caplens": caplens}
    for block in BLOCKS:
        names.pop("captions", None)
        exec(block, names)
        if (captions := names.get("captions")) is not None:
            assert isinstance(captions, caplens.CaptionSet)
            assert captions.candidates == ["a dog runs", "a cat"], block
            if "page.html" not in block:
                assert captions.ids == ["7", "8"], block
                assert captions.references == [["a running dog", "a dog"], ["a cat sits"]], block
        for expression, value in re.findall(r"^(\w+\.\w+) +# (.*)$", block, re.MULTILINE):
            assert repr(eval(expression, names)) == value


def test_the_page_uses_every_file_it_shows() -> None:
    code = "".join(BLOCKS)
    assert len(FILES) >= 10
    assert [name for name in FILES if f'"{name}"' not in code] == []


def test_the_page_names_all_columns_and_limits() -> None:
    rows = dict(re.findall(r"^\| (\w+) \| (`.*) \|$", PAGE, re.MULTILINE))
    for row, names in (
        ("id", ID_NAMES),
        ("caption", CAPTION_NAMES),
        ("references", REFERENCES_NAMES),
        ("image", IMAGE_NAMES),
        ("video", VIDEO_NAMES),
    ):
        listed = re.findall(r"`(\w+)`", rows[row].partition("; or")[0])
        assert listed == list(names), row
    units = {"GB": 10**9, "MB": 10**6, "million": 10**6, "times": 1, "": 1}
    limits = re.findall(r"^\| `(\w+)` \| (\d+) ?(\w*) \|", PAGE, re.MULTILINE)
    assert {name: int(count) * units[unit] for name, count, unit in limits} == vars(ReadLimits())
