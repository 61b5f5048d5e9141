"""Outputs: whole or absent, through links, with their modes, and never over what is read or is no file."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from caplens.core.errors import InputError
from caplens.storage.atomic import atomic_folder, atomic_path, refuse_overwriting, write_atomically

posix = pytest.mark.skipif(os.name != "posix", reason="not on Windows: pipes, devices and modes")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("before")

    def interrupted() -> None:
        with atomic_path(tmp_path / "out") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "out").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_folders_are_made_and_long_names_taken(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / ("x" * 250)
    write_atomically(target, "text")
    assert target.read_text() == "text"
    assert len(list(target.parent.iterdir())) == 1


@posix
def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    for existing in (0o600, 0o640, 0o666):
        (tmp_path / "out").write_text("before")
        (tmp_path / "out").chmod(existing)
        write_atomically(tmp_path / "out", "after")
        assert mode(tmp_path / "out") == existing
        assert (tmp_path / "out").read_text() == "after"


@posix
def test_a_secret_is_secret_while_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("before")
    (tmp_path / "out").chmod(0o600)
    with atomic_path(tmp_path / "out") as temporary:
        assert mode(temporary) == 0o600


@posix
def test_a_new_file_gets_the_umask_which_nobody_touches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask belongs to the whole process"))
        write_atomically(tmp_path / "out", "text")
        with atomic_folder(tmp_path / "folder") as folder:
            (folder / "file").write_text("text")
        assert mode(tmp_path / "out") == 0o640
        assert mode(tmp_path / "folder") == 0o750
    finally:
        monkeypatch.undo()
        os.umask(before)


@posix
def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("before")
    (tmp_path / "link").symlink_to("real/file")
    write_atomically(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "after"
    (tmp_path / "dangling").symlink_to(tmp_path / "new" / "file")
    write_atomically(tmp_path / "dangling", "made")
    assert (tmp_path / "dangling").is_symlink()
    assert (tmp_path / "new" / "file").read_text() == "made"


@posix
@pytest.mark.parametrize("by_path", [True, False], ids=["atomic_path", "write_atomically"])
def test_a_pipe_is_written_to_as_a_stream(tmp_path: Path, by_path: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    if by_path:
        with atomic_path(pipe) as temporary:
            temporary.write_bytes(b"text")
    else:
        write_atomically(pipe, b"text")
    reader.join(10)
    assert received == [b"text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@posix
def test_devices_are_written_to_and_stay_devices() -> None:
    write_atomically("/dev/null", "text")
    with atomic_path("/dev/null") as temporary:
        temporary.write_text("text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="No space left"):
            write_atomically("/dev/full", "text")
        assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@posix
def test_a_file_behind_standard_output_is_not_replaced(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as out:
        if not os.path.exists(f"/dev/fd/{out.fileno()}"):
            pytest.skip("no /dev/fd here")
        inode = (tmp_path / "out").stat().st_ino
        out.write("first\n")
        out.flush()
        write_atomically(f"/dev/fd/{out.fileno()}", "second\n")
    assert (tmp_path / "out").read_text() == "first\nsecond\n"
    assert (tmp_path / "out").stat().st_ino == inode


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a folder; name a file"):
        write_atomically(tmp_path, "text")


@posix
def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        with pytest.raises(InputError, match="it is a socket"), atomic_path("socket"):
            pass


def test_a_folder_takes_the_place_of_another_whole(tmp_path: Path) -> None:
    for text in ("one", "two"):
        with atomic_folder(tmp_path / "folder") as temporary:
            (temporary / text).write_text(text)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "two"]

    def failing() -> None:
        with atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "three").write_text("three")
            raise ValueError

    with pytest.raises(ValueError):
        failing()
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "two"]


def test_an_output_that_is_an_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("")
    refuse_overwriting([None, "-", tmp_path / "b", tmp_path / "new"], [None, tmp_path / "a", tmp_path])
    with pytest.raises(InputError, match="would be overwritten"):
        refuse_overwriting([str(tmp_path / "." / "a")], [tmp_path / "a"])
    if os.name == "posix":
        os.link(tmp_path / "a", tmp_path / "hard")
        (tmp_path / "soft").symlink_to("a")
        for name in ("hard", "soft"):
            with pytest.raises(InputError, match="would be overwritten"):
                refuse_overwriting([tmp_path / name], [tmp_path / "a"])
