"""METEOR's indexes: built once, believed only while unchanged, and never the reason that a metric is lost."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from caplens.core.errors import CaplensWarning
from caplens.core.progress import silent
from caplens.metrics.meteor import Meteor
from caplens.text import meteor_data
from caplens.text.meteor_data import JAR, TABLE, build


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))
    folder = tmp_path / "meteor"
    folder.mkdir()
    with zipfile.ZipFile(folder / JAR, "w") as jar:
        jar.writestr("synonym/english.synsets", "puppy\n00000001\npup\n00000001 00000002\n")
        jar.writestr("synonym/english.exceptions", "pup\npuppen\n")
    with gzip.open(folder / TABLE, "wt") as file:
        file.write("0.5\nin front of\nbefore\n0.25\nold\naged\n")
    return folder


def score(data: Path) -> float:
    from caplens import evaluate

    return evaluate(["an aged pup"], [["an old puppy"]], metrics=[Meteor(data=data)])["meteor"].score


def test_a_damaged_index_is_built_again(files: Path) -> None:
    before = score(files)
    indexes = build(files, silent, own=True)
    for path in (indexes.synonyms, indexes.paraphrases):
        assert path is not None
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
        with pytest.warns(CaplensWarning, match="was damaged; it is made anew"):
            assert score(files) == before


def test_without_a_cache_the_indexes_are_built_elsewhere(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = score(files)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "file"))
    with pytest.warns(CaplensWarning, match="nothing can be kept in"):
        assert score(files) == before
    assert score(files) == before  # once per process, and one note


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_not_called_a_bad_table(files: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        meteor_data._build_synonyms(files / JAR, Path("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        meteor_data._build_paraphrases(files / TABLE, Path("/dev/full"), silent)


def test_meteor_imports_where_there_is_no_fcntl_of_ours() -> None:
    """As on Windows: nothing of ours imports fcntl; filelock, which knows both systems, may."""
    code = (
        "import sys, filelock, tempfile, multiprocessing\n"
        "sys.modules['fcntl'] = None\n"
        "import caplens.metrics.meteor, caplens.text.meteor_data, caplens.storage.locks\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
