"""The client of the package index: where it looks, what it accepts, and that only sums are trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.storage.fake_index import WHEEL, Served, as_zip, served_index, sha256, use_index, write_index

from caplens.core.errors import MissingData
from caplens.storage import registry
from caplens.storage.registry import download, locations

ARCHIVE = as_zip({"a.txt": b"hello" * 500})


def get(target: Path, data: bytes = ARCHIVE, size: int | None = None) -> bytes:
    download("toy.Carrier", WHEEL, sha256(data), len(data) if size is None else size, target)
    return target.read_bytes()


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "html"])
@pytest.mark.parametrize("listed_sum", [None, ""], ids=["with sum", "without sum"])
def test_a_server_that_answers_in_json_or_html(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool, listed_sum: str | None
) -> None:
    with served_index(Served({WHEEL: ARCHIVE}, as_json, listed_sum)) as address:
        use_index(monkeypatch, address)
        assert get(tmp_path / "got") == ARCHIVE


def test_folders_as_addresses_and_as_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = write_index(tmp_path / "mirror", {WHEEL: ARCHIVE})
    for place in (address, str(tmp_path / "mirror" / "simple"), address + "/"):
        use_index(monkeypatch, place)
        assert get(tmp_path / "got") == ARCHIVE


def test_a_folder_of_wheels_comes_before_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / WHEEL).write_bytes(ARCHIVE)
    served = Served({})
    with served_index(served) as address:
        use_index(monkeypatch, address)
        monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
        assert get(tmp_path / "got") == ARCHIVE
    assert served.asked == []


def test_the_next_index_is_asked_when_one_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = write_index(tmp_path / "right", {WHEEL: ARCHIVE})
    wrong = write_index(tmp_path / "wrong", {WHEEL: ARCHIVE[:-1] + b"?"}, sums=False)
    use_index(monkeypatch, wrong)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{(tmp_path / 'nowhere').as_uri()} {right}")
    assert get(tmp_path / "got") == ARCHIVE


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "html"])
def test_another_sum_is_refused_and_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    other = ARCHIVE[:-1] + b"?"
    with served_index(Served({WHEEL: other}, as_json, listed_sum=sha256(ARCHIVE))) as address:
        use_index(monkeypatch, address)
        with pytest.raises(MissingData, match="not the file it should be"):
            get(tmp_path / "got")
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_is_listed_with_another_sum_is_not_even_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served({WHEEL: ARCHIVE}, listed_sum="0" * 64)
    with served_index(served) as address:
        use_index(monkeypatch, address)
        with pytest.raises(MissingData, match="lists another file under this name"):
            get(tmp_path / "got")
    assert served.asked == ["/simple/toy-carrier/"]


@pytest.mark.parametrize("announced", [None, len(ARCHIVE)], ids=["short", "cut off"])
def test_a_truncated_archive_is_refused_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, announced: int | None
) -> None:
    served = Served({WHEEL: ARCHIVE[:100]}, listed_sum="", announced=announced)
    with served_index(served) as address:
        use_index(monkeypatch, address)
        with pytest.raises(MissingData, match=r"only 100 of .* bytes arrived|IncompleteRead"):
            get(tmp_path / "got")
    assert list(tmp_path.iterdir()) == []
    assert len(served.asked) == 1 + registry.ATTEMPTS


def test_no_more_than_the_recorded_size_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = b"x" * 20_000_000
    written: list[int] = []
    with served_index(Served({WHEEL: endless}, listed_sum="")) as address:
        use_index(monkeypatch, address)
        with pytest.raises(MissingData, match="larger than the 1,000 bytes"):
            download(
                "toy-carrier", WHEEL, "0" * 64, 1000, tmp_path / "got", lambda task, done, total: written.append(done)
            )
    assert list(tmp_path.iterdir()) == []
    assert max(written) <= 1  # megabytes


def test_a_target_that_cannot_be_written_is_not_the_indexs_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_index(monkeypatch, write_index(tmp_path / "mirror", {WHEEL: ARCHIVE}))
    with pytest.raises(FileNotFoundError):
        get(tmp_path / "nowhere" / "got")


def test_what_is_not_there_is_said_for_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served_index(Served({})) as address:
        use_index(monkeypatch, address)
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://127.0.0.1:9/simple")
        with pytest.raises(MissingData, match=rf"{WHEEL}.*does not have it; http://127.0.0.1:9/simple: .*refused"):
            get(tmp_path / "got")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("application/json", "[1, 2]"),
        ("application/json", '{"files": [{"filename": 3}]}'),
        ("application/json", "no json"),
        ("application/json", "[" * 200_000),
        ("text/html", "<a href='http://[::1/x.whl'>x</a><a href=''><a>"),
    ],
)
def test_a_page_that_makes_no_sense_is_a_reason_not_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    with served_index(Served({}, pages={"/simple/toy-carrier/": (kind, text)})) as address:
        use_index(monkeypatch, address)
        with pytest.raises(MissingData, match=r"cannot be read|does not have it"):
            get(tmp_path / "got")


def test_a_remote_page_cannot_name_a_local_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / WHEEL).write_bytes(ARCHIVE)
    page = f'<a href="{(tmp_path / WHEEL).as_uri()}">{WHEEL}</a>'
    with served_index(Served({}, pages={"/simple/toy-carrier/": ("text/html", page)})) as address:
        use_index(monkeypatch, address)
        with pytest.raises(MissingData, match="does not have it"):
            get(tmp_path / "got")


def test_a_login_goes_to_its_host_and_into_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served_index(Served({WHEEL: ARCHIVE}, login="Basic bWU6c2VjcmV0IQ==")) as address:
        use_index(monkeypatch, address.replace("://", "://me:secret%21@"))
        assert get(tmp_path / "got") == ARCHIVE
        with pytest.raises(MissingData) as caught:
            get(tmp_path / "got", b"other")
        assert "secret" not in str(caught.value)


@pytest.fixture
def plain_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("platformdirs.site_config_dir", lambda *_, **__: str(tmp_path / "site"))
    monkeypatch.setattr(registry, "SYSTEM_FOLDER", tmp_path / "etc")
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def configure(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "pip.conf").write_text(text)


@pytest.mark.skipif(os.name != "posix", reason="not on Windows: the names of configuration files are others there")
def test_settings_come_from_the_environment_then_from_pips_files(
    plain_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = plain_environment
    assert [place.address for place in locations()] == [registry.PUBLIC_INDEX]
    configure(root / "etc", "[global]\nindex-url = https://one.example/simple\nextra-index-url = https://x.example/s\n")
    configure(root / ".config" / "pip", "[install]\nindex-url = https://two.example/simple\n")
    assert [place.address for place in locations()] == ["https://two.example/simple", "https://x.example/s"]
    configure(root / "prefix", "[global]\nindex-url = https://three.example/simple\nfind-links =\n  /one\n  /two\n")
    assert [place.address for place in locations()] == [
        "/one",
        "/two",
        "https://three.example/simple",
        "https://x.example/s",
    ]
    configure(root / "chosen", "[global]\nindex-url = https://four.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(root / "chosen" / "pip.conf"))
    assert registry.setting("index-url") == "https://four.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://five.example/simple")
    assert registry.setting("index-url") == "https://five.example/simple"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert [place.address for place in locations()] == ["/one", "/two"]


def test_a_configuration_file_that_cannot_be_read_is_passed_over(
    plain_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plain_environment / "pip.conf").write_bytes(b"[global\nindex-url = \xff")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(plain_environment / "pip.conf"))
    assert registry.setting("index-url") == ""
