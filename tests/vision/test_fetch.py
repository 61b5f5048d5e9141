"""Fetching: only from public addresses, by one deadline, within limits. Servers are on loopback."""

from __future__ import annotations

import io
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import pytest
from PIL import Image
from tests.serving import Handler, serve

from caplens.core.errors import InputError
from caplens.vision import fetch as fetching
from caplens.vision.fetch import fetch, is_public, public_address
from caplens.vision.images import open_image

LIMIT = 0.6


def a_picture() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (40, 20), "blue").save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "10.1.2.3", "169.254.169.254", "0.0.0.0", "0.1.2.3", "100.64.0.1", "172.31.255.255"),
        *("192.0.0.8", "192.0.0.170", "192.0.0.9", "192.0.2.1", "192.88.99.1", "192.168.1.1", "192.31.196.1"),
        *("198.19.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1", "::10.0.0.1", "::ffff:0:7f00:1"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::c000:1", "64:ff9b:1::1", "64:ff9b:1:ffff::808:808"),
        *("2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1"),
        *("2001:10::1", "2001:db8::1", "3fff::1", "2620:4f:8000::1", "100::1", "5f00::1"),
        *("fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "feff::1", "ff02::1", "ff0e::1"),
    ],
)
def test_only_public_addresses_are_fetched(host: str) -> None:
    assert not is_public(ipaddress.ip_address(host))
    with pytest.raises(InputError, match="not on the public internet"):
        public_address(host, 80)


@pytest.mark.parametrize(
    "host",
    ["8.8.8.8", "192.0.1.1", "100.63.255.255", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808"],
)
def test_public_addresses_pass(host: str) -> None:
    assert is_public(ipaddress.ip_address(host))


def test_one_private_address_among_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 80)) for host in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: entries)
    with pytest.raises(InputError, match=r"leads to 10\.0\.0\.1"):
        public_address("two.example", 80)


REDIRECTS = {"/away": "file:///etc/passwd", "/round": "/round", "/inside": "http://[::ffff:10.0.0.1]/secret"}


class _Answers(Handler):
    def do_GET(self) -> None:
        if self.path in REDIRECTS:
            self.send_response(302)
            self.send_header("Location", REDIRECTS[self.path])
            self.end_headers()
        elif self.path == "/picture":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(a_picture())
        else:
            self.send_response(404)
            self.end_headers()


def server() -> AbstractContextManager[str]:
    return serve(_Answers)


@pytest.fixture
def loopback_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test's own servers be reached; every other address is still checked."""
    checked = public_address
    monkeypatch.setattr(
        fetching, "public_address", lambda host, port: host if host == "127.0.0.1" else checked(host, port)
    )


def test_loopback_is_refused() -> None:
    with server() as address, pytest.raises(InputError, match="not on the public internet"):
        fetch(f"{address}/picture")


@pytest.mark.usefixtures("loopback_is_public")
def test_fetching_keeps_its_limits() -> None:
    with server() as address:
        assert open_image(f"{address}/picture", allow_urls=True).size == (40, 20)
        reasons = {
            "/away": "neither http",
            "/round": "redirects more",
            "/none": "answered 404",
            "/inside": "leads to ::ffff:.*not on the public internet",
        }
        for path, reason in reasons.items():
            with pytest.raises(InputError, match=reason):
                fetch(address + path)
        with pytest.raises(InputError, match="larger than"):
            fetch(f"{address}/picture", most_bytes=20)


def test_the_address_that_was_checked_is_the_one_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    with server() as address:
        port = address.rpartition(":")[2]

        def checked(host: str, port: int) -> str:
            asked.append(host)
            return "127.0.0.1"

        monkeypatch.setattr(fetching, "public_address", checked)
        monkeypatch.setattr(socket, "getaddrinfo", _only_numbers(socket.getaddrinfo))
        assert fetch(f"http://pictures.example:{port}/picture") == a_picture()
    assert asked == ["pictures.example"]


def _only_numbers(real: Callable[..., Any]) -> Callable[..., Any]:
    def look_up(host: str, *rest: Any, **options: Any) -> Any:
        ipaddress.ip_address(host)  # a name would be looked up a second time
        return real(host, *rest, **options)

    return look_up


@contextmanager
def talking(script: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that says what the script says to everyone who connects, until its hearer leaves."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, suppress(OSError):
                        script(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]


def drip(connection: socket.socket, start: bytes, drop: bytes) -> None:
    connection.sendall(start)
    for _ in range(200):
        time.sleep(0.05)
        connection.sendall(drop)


OK = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "silence": (b"", b""),
    "status line": (b"HTTP/1.1 2", b"0"),
    "headers": (OK, b"X-Slow: y\r\n"),
    "one header": (OK + b"X-Slow: ", b"y"),
    "100-continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunk size": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "body": (OK + b"Content-Length: 1000\r\n\r\n", b"x"),
    "body without end": (OK + b"\r\n", b"x"),
    "trailers": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Slow: y\r\n"),
}


@pytest.mark.usefixtures("loopback_is_public")
@pytest.mark.parametrize("kind", DRIPS)
def test_a_slow_drip_ends_at_the_deadline(kind: str) -> None:
    start, drop = DRIPS[kind]
    with talking(lambda connection: drip(connection, start, drop)) as port:
        begun = time.monotonic()
        with pytest.raises(InputError, match=f"did not arrive within {LIMIT:g} seconds"):
            fetch(f"http://127.0.0.1:{port}/", most_seconds=LIMIT)
        assert time.monotonic() - begun < LIMIT + 1


@pytest.mark.usefixtures("loopback_is_public")
@pytest.mark.parametrize(("start", "drop"), [(b"", b""), (b"\x16\x03\x03\x3f\xff", b"\x02")])
def test_a_slow_handshake_ends_at_the_deadline(start: bytes, drop: bytes) -> None:
    with talking(lambda connection: drip(connection, start, drop)) as port:
        begun = time.monotonic()
        with pytest.raises(InputError, match="did not arrive"):
            fetch(f"https://127.0.0.1:{port}/", most_seconds=LIMIT)
        assert time.monotonic() - begun < LIMIT + 1


@pytest.mark.usefixtures("loopback_is_public")
def test_redirects_share_the_deadline() -> None:
    def redirect(connection: socket.socket) -> None:
        time.sleep(LIMIT * 0.4)
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")

    with talking(redirect) as port, pytest.raises(InputError, match="did not arrive"):
        fetch(f"http://127.0.0.1:{port}/", most_seconds=LIMIT)


def test_a_slow_name_look_up_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(5))
    begun = time.monotonic()
    with pytest.raises(InputError, match="did not arrive"):
        fetch("http://slow.example/", most_seconds=0.2)
    assert time.monotonic() - begun < 2


@pytest.mark.usefixtures("loopback_is_public")
def test_a_server_without_a_certificate_we_trust_is_refused() -> None:
    with server() as address, pytest.raises(InputError, match="cannot be fetched"):
        fetch(f"{address.replace('http:', 'https:')}/picture", most_seconds=5)
