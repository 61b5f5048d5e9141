"""What a filter writes does no more harm than what it read: no way out of a folder, no secrets."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from PIL import Image

from caplens.readers import read
from caplens.scale.filter import filter_shards

pytest.importorskip("pyarrow")


def tar_with(path: Path, names: list[str]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 5
            archive.addfile(member, io.BytesIO(b"a dog"))
    return path


@pytest.mark.parametrize("name", ["../../evil.txt", "/etc/evil.txt", "a/../../evil.txt"])
def test_a_member_that_leads_outside_is_not_passed_on(name: str, tmp_path: Path) -> None:
    evil, sound = tar_with(tmp_path / "evil.tar", ["ok.txt", name]), tar_with(tmp_path / "sound.tar", ["a/b.txt"])
    report = filter_shards([evil, sound], output=tmp_path / "out", keep="length > 0")
    assert "outside of its folder" in " ".join(report.errors.values())
    written = sorted(path.name for path in (tmp_path / "out").glob("*.tar"))
    assert written == ["sound.tar"]


def test_a_row_that_names_a_secret_as_its_picture_does_not_pack_it(tmp_path: Path) -> None:
    secret, picture = tmp_path / "secret.key", tmp_path / "photo.png"
    secret.write_bytes(b"-----BEGIN PRIVATE KEY-----")
    Image.new("RGB", (4, 4)).save(picture)
    rows = [
        {"id": str(number), "caption": "a dog", "image": str(path)} for number, path in enumerate([secret, picture])
    ]
    shard = tmp_path / "rows.jsonl"
    shard.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    filter_shards([shard], output=tmp_path / "out", keep="length > 0", to="webdataset")
    with tarfile.open(tmp_path / "out" / "rows.tar") as archive:
        assert sorted(archive.getnames()) == ["0.json", "0.txt", "1.json", "1.png", "1.txt"]


def test_ids_that_look_alike_as_members_stay_two(tmp_path: Path) -> None:
    shard = tmp_path / "rows.jsonl"
    rows = [{"id": name, "caption": f"a dog {name}"} for name in ("a.b", "a_b", "a/b")]
    shard.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    filter_shards([shard], output=tmp_path / "out", keep="length > 0", to="webdataset")
    assert read(tmp_path / "out" / "rows.tar").candidates == ["a dog a.b", "a dog a_b", "a dog a/b"]
