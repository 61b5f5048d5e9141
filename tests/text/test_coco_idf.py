"""The document frequencies of COCO: built once, made anew when damaged, kept in memory where there is no cache."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from caplens.core.errors import CaplensWarning
from caplens.storage import weights
from caplens.text import coco_idf
from caplens.text.coco_idf import MEMBER, coco_val_idf


@pytest.fixture(autouse=True)
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Captions of two images, in place of COCO's."""
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "captions.zip"
    annotations = [{"image_id": image, "caption": text} for image, text in ((2, "a dog"), (1, "a cat"), (1, "a dog"))]
    with zipfile.ZipFile(path, "w") as captions:
        captions.writestr(MEMBER, json.dumps({"annotations": annotations}))
    monkeypatch.setattr(weights, "require", lambda name: path)
    coco_val_idf.cache_clear()
    yield path
    coco_val_idf.cache_clear()


def fresh() -> str:
    """The checksum, as another process would read it."""
    coco_val_idf.cache_clear()
    return coco_val_idf().checksum


def test_built_once(archive: Path, tmp_path: Path) -> None:
    before = fresh()
    archive.unlink()
    assert fresh() == before
    assert coco_val_idf().images == 2
    assert len(list((tmp_path / "cache" / "idf").glob("coco-val2014-*.safetensors"))) == 1


def test_a_damaged_table_is_built_again(tmp_path: Path) -> None:
    before = fresh()
    (path,) = (tmp_path / "cache" / "idf").glob("coco-val2014-*.safetensors")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.warns(CaplensWarning, match="was damaged"):
        assert fresh() == before
    assert fresh() == before


def test_without_a_cache_it_is_built_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fresh()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "file"))
    with pytest.warns(CaplensWarning, match="nothing can be kept in"):
        assert fresh() == before
    assert coco_idf.coco_val_idf() is coco_idf.coco_val_idf()
