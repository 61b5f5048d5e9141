"""Who may talk to the server: names, origins, tokens, sizes; what every answer carries; what is read from disk."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
from starlette.testclient import TestClient
from tests.server.conftest import IMAGES

from caplens.core.errors import InputError
from caplens.server.app import create_app
from caplens.server.settings import Limits, Settings

TOKEN = "a-token-of-twenty-four-ch"
HOME = "http://127.0.0.1:8000"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    """Makes a client of an application with some settings."""
    opened: list[Any] = []

    def with_settings(**settings: Any) -> TestClient:
        app = create_app(Settings(state=tmp_path / str(len(opened)), **settings))
        opened.append(app)
        return TestClient(app, base_url=settings.pop("base", HOME), raise_server_exceptions=False)

    yield with_settings
    for app in opened:
        app.app.state.caplens.close()


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "localhost", "[::1]:8000"])
def test_it_answers_to_its_own_names(make: Any, host: str) -> None:
    assert make().get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "["],
)
def test_it_answers_to_no_other_name(make: Any, host: str) -> None:
    answer = make().get("/health", headers={"host": host})
    assert answer.status_code == 421
    assert "is not called" in answer.json()["error"]


def test_names_that_were_given_are_its_own(make: Any) -> None:
    client = make(names=frozenset({"captions.example"}))
    assert client.get("/health", headers={"host": "captions.example"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9000"},
        {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_sites_cannot_ask(make: Any, headers: dict[str, str]) -> None:
    answer = make().post("/v1/explain", json={"caption": "a cat", "references": ["a cat"]}, headers=headers)
    assert (answer.status_code, answer.json()) == (403, {"error": "a page of another site sent this"})


def test_its_own_pages_can_ask_and_links_from_elsewhere_open_pages_only(make: Any) -> None:
    client = make()
    own = {"origin": HOME, "sec-fetch-site": "same-origin"}
    assert client.get("/v1/metrics", headers=own).status_code == 200
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/runs", headers=followed).status_code == 200
    assert client.get("/v1/runs", headers=followed).status_code == 403


def test_a_form_of_another_site_is_no_json(make: Any) -> None:
    answer = make().post("/v1/explain", content='{"caption": "a cat"}', headers={"content-type": "text/plain"})
    assert (answer.status_code, answer.json()) == (415, {"error": "send application/json"})


def test_another_address_needs_a_token(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"on 0\.0\.0\.0 everybody in reach could use this server"):
        Settings(state=tmp_path, host="0.0.0.0")
    with pytest.raises(InputError, match="the token has 5 characters"):
        Settings(state=tmp_path, token="short")
    assert not Settings(state=tmp_path, host="0.0.0.0", token=TOKEN).loopback


def test_the_token_opens_everything_and_nothing_opens_without(make: Any) -> None:
    client = make(host="0.0.0.0", token=TOKEN)
    away = {"host": "192.168.1.5:8000"}  # an address cannot be rebound to us
    for path in ("/v1/metrics", "/v1/runs", "/openapi.json", "/v1/jobs"):
        assert client.get(path, headers=away).status_code == 401
        wrong = {**away, "authorization": f"Bearer {TOKEN}x"}
        assert client.get(path, headers=wrong).status_code == 401
        assert client.get(path, headers={**away, "authorization": f"Bearer {TOKEN}"}).status_code == 200
    page = client.get("/", headers={**away, "accept": "text/html"}, follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "/login")
    assert client.get("/health", headers=away).status_code == 200


def test_a_browser_logs_in_once(make: Any) -> None:
    client = make(token=TOKEN)
    assert client.post("/login", json={"token": "wrong"}).status_code == 401
    assert client.post("/login", json=["token"]).status_code == 401
    assert client.post("/login", content=b"{", headers={"content-type": "application/json"}).status_code == 400
    answer = client.post("/login", json={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert client.get("/v1/metrics").status_code == 200


def test_every_answer_carries_the_policy(make: Any) -> None:
    client = make(token=TOKEN)
    for path in ("/login", "/health", "/v1/metrics", "/nowhere", "/static/app.css"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


def test_what_is_too_large_is_not_read(make: Any) -> None:
    client = make(limits=Limits(body_bytes=1000))
    announced = client.post("/v1/explain", json={"caption": "a cat", "references": ["a" * 2000]})
    assert announced.status_code == 413

    def pieces() -> Iterator[bytes]:  # without a length, as a chunked request
        yield b'{"caption": "'
        for _ in range(100):
            yield b"a" * 100
        yield b'"}'

    kind = {"content-type": "application/json"}
    assert client.post("/v1/explain", content=pieces(), headers=kind).status_code == 413
    assert client.post("/v1/explain", content=b"{}", headers={**kind, "content-length": "x"}).status_code in (400, 413)


def test_who_comes_when_it_is_busy_is_told_when_to_come_back(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caplens.server.engine.LOOK", 0.0)  # no answer is quicker than that
    asked = {"caption": "a cat", "references": ["a cat"]}
    job = {"kind": "check", "request": {"texts": ["a cat"]}}
    busy = make(limits=Limits(waiting=0, jobs=0))
    for answer, status in (
        (busy.post("/v1/explain", json=asked), 503),
        (busy.post("/v1/jobs", json=job), 429),
        (make(limits=Limits(at_once=0)).get("/health"), 503),
        (make(limits=Limits(answer_seconds=-1)).post("/v1/explain", json=asked), 503),
    ):
        assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (status, True)


@pytest.mark.parametrize(
    "path", ["/static/../settings.py", "/static/%2e%2e/settings.py", "/static/frame.html", "/static/app.py", "/static/"]
)
def test_no_other_file_is_served(make: Any, path: str) -> None:
    assert make().get(path).status_code == 404


def test_files_are_read_below_named_folders_only(make: Any, tmp_path: Path) -> None:
    folder, outside = tmp_path / "named", tmp_path / "secret.jpg"
    folder.mkdir()
    outside.write_bytes((IMAGES / "cat.jpg").read_bytes())
    (folder / "inside.jpg").write_bytes(outside.read_bytes())
    (folder / "link.jpg").symlink_to(outside)
    settings = Settings(state=tmp_path / "state", folders=(folder,))
    assert settings.find_media("inside.jpg") == settings.find_media(str(folder / "inside.jpg"))
    assert settings.find_media("elsewhere/inside.jpg") == (folder / "inside.jpg").resolve()
    for name in ("../secret.jpg", str(outside), "link.jpg", "/etc/passwd", "", ".", "inside.jpg\0", "a" * 5000):
        assert settings.find_media(name) is None, name
    client = make(folders=(folder,))
    answer = client.post("/v1/explain", json={"caption": "a cat", "image": {"path": str(outside)}})
    assert answer.status_code == 422
    assert "is not below a folder of this server" in answer.json()["error"]


def test_no_address_is_fetched_unless_asked(make: Any) -> None:
    answer = make().post("/v1/explain", json={"caption": "a cat", "image": {"url": "http://127.0.0.1:1/cat.jpg"}})
    assert answer.status_code == 422
    assert "addresses are not fetched here" in answer.json()["error"]


def test_the_log_has_no_captions_unless_asked(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="caplens.server")
    asked = {"caption": "a zebra on a sofa", "references": ["a horse"]}
    make().post("/v1/explain", json=asked)
    make().get("/v1/runs/000000000000/captions?words=zebra")
    assert "POST /v1/explain 200" in caplog.text
    assert "zebra" not in caplog.text
    make(log_captions=True).post("/v1/explain", json=asked)
    assert "zebra" in caplog.text


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    first = create_app(Settings(state=tmp_path))
    with pytest.raises(InputError, match="another server keeps its jobs and ratings there"):
        create_app(Settings(state=tmp_path))
    first.app.state.caplens.close()  # type: ignore[attr-defined]
    create_app(Settings(state=tmp_path)).app.state.caplens.close()  # type: ignore[attr-defined]
