"""Fetch one file over http(s), only when the user allows it, with limits on size, time and address."""

from __future__ import annotations

import http.client
import io
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

from caplens.core.errors import InputError

T = TypeVar("T")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MOST_BYTES = 50 * 1024 * 1024
MOST_SECONDS = 20.0
MOST_REDIRECTS = 3
_REDIRECTS = {301, 302, 303, 307, 308}

# What the registries of special addresses (IANA, RFC 6890 and its successors) keep from ordinary hosts. Python's own
# table grows from version to version; this one is the same everywhere, and an address must be public by both.
SPECIAL_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # behind a carrier's address translation
        "127.0.0.0/8",  # this machine
        "169.254.0.0/16",  # this link, and the metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # multicast tunnels
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which wraps any IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
# All other IPv6 is loopback, mapped, local, site-local, multicast or not handed out.
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
# Networks without IPv4 reach it through this prefix; the last 32 bits are the address that counts.
TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")


def is_url(name: str) -> bool:
    """Whether a name is an address rather than a path.

    >>> is_url("https://example.org/cat.jpg"), is_url("photos/cat.jpg"), is_url("C:/cat.jpg")
    (True, False, False)
    """
    scheme, separator, _ = name.partition("://")
    return bool(separator) and scheme.isalnum()


def fetch(url: str, most_bytes: int = MOST_BYTES, most_seconds: float = MOST_SECONDS) -> bytes:
    """The bytes behind a public http(s) address; an `InputError` says why not.

    The time is all there is for name look-ups, connections, handshakes, headers, redirects and the body together.
    """
    deadline = time.monotonic() + most_seconds
    address = url
    try:
        for _ in range(MOST_REDIRECTS + 1):
            answer = _request(address, most_bytes, deadline)
            if isinstance(answer, bytes):
                return answer
            address = urljoin(address, answer)
    except InputError as error:
        raise InputError(error.problem, where=url, remedy=error.remedy) from None
    except TimeoutError:
        raise InputError(f"did not arrive within {most_seconds:g} seconds", where=url) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InputError(f"cannot be fetched ({error})", where=url) from None
    raise InputError(f"redirects more than {MOST_REDIRECTS} times", where=url)


def is_public(address: Address) -> bool:
    """Say whether an address lies on the public internet, whatever it is wrapped in.

    >>> [is_public(ipaddress.ip_address(text)) for text in ("8.8.8.8", "127.0.0.1", "64:ff9b::7f00:1", "::7f00:1")]
    [True, False, False, False]
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address in TRANSLATED:
            address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        elif address not in GLOBAL_UNICAST:
            return False
    return address.is_global and not any(address in network for network in SPECIAL_NETWORKS)


def public_address(host: str, port: int) -> str:
    """An address of the host that lies on the public internet; a host that has any other is refused."""
    resolved = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    for text in sorted(resolved):
        address = ipaddress.ip_address(text.partition("%")[0])
        if not is_public(address):
            raise InputError(f"leads to {address}, which is not on the public internet")
    return min(resolved)


def _request(url: str, most_bytes: int, deadline: float) -> bytes | str:
    """The body, or where a redirect points to."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError("is neither http nor https")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with _connect(parts, deadline) as raw:
        connection = http.client.HTTPConnection(parts.hostname, parts.port)
        connection.sock = _TimedSocket(raw, deadline)
        connection.request("GET", path, headers={"User-Agent": "caplens", "Accept": "image/*,video/*"})
        response = connection.getresponse()
        if response.status in _REDIRECTS:
            return response.getheader("Location") or ""
        if response.status != 200:
            raise InputError(f"the server answered {response.status} {response.reason}")
        announced = response.getheader("Content-Length") or "0"
        too_large = InputError(f"is larger than {most_bytes // 2**20} MB")
        if announced.isdigit() and int(announced) > most_bytes:
            raise too_large
        body = bytearray()
        while chunk := response.read1(1 << 16):
            body += chunk
            if len(body) > most_bytes:
                raise too_large
        return bytes(body)


def _connect(parts: SplitResult, deadline: float) -> socket.socket:
    """Connect to the very address that was checked, so that a second name look-up cannot lead elsewhere."""
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    address = _in_time(lambda: public_address(host, port), deadline)
    raw = socket.create_connection((address, port), timeout=_left(deadline))
    if not secure:
        return raw
    try:
        raw.settimeout(_left(deadline))  # for the whole handshake
        return ssl.create_default_context().wrap_socket(raw, server_hostname=host)
    except BaseException:
        raw.close()
        raise


class _TimedSocket:
    """What http.client needs of a socket, with one deadline over all reading and writing.

    A socket's own timeout starts again with every byte, so that a server may drip for hours.
    """

    def __init__(self, raw: socket.socket, deadline: float) -> None:
        self._raw, self._deadline = raw, deadline

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._raw.settimeout(_left(self._deadline))
            rest = rest[self._raw.send(rest) :]

    def makefile(self, mode: str, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._raw, self._deadline))

    def close(self) -> None:
        """Do nothing: http.client closes as soon as it has a reader, and `_request` when it is done."""


class _TimedReader(io.RawIOBase):
    def __init__(self, raw: socket.socket, deadline: float) -> None:
        self._raw, self._deadline = raw, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._raw.settimeout(_left(self._deadline))
        return self._raw.recv_into(buffer)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _in_time(work: Callable[[], T], deadline: float) -> T:
    """Do something that has no timeout of its own, such as a name look-up; what is late is left to its thread."""
    answers: queue.SimpleQueue[tuple[T | None, Exception | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((work(), None))
        except Exception as error:
            answers.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        value, error = answers.get(timeout=_left(deadline))
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
