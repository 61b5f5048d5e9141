"""Fetch one file over http(s), only when the user allows it, with limits on size, time and address."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from urllib.parse import SplitResult, urljoin, urlsplit

from caplens.core.errors import InputError

MOST_BYTES = 50 * 1024 * 1024
MOST_SECONDS = 20.0
MOST_REDIRECTS = 3
_REDIRECTS = {301, 302, 303, 307, 308}


def is_url(name: str) -> bool:
    """Whether a name is an address rather than a path.

    >>> is_url("https://example.org/cat.jpg"), is_url("photos/cat.jpg"), is_url("C:/cat.jpg")
    (True, False, False)
    """
    scheme, separator, _ = name.partition("://")
    return bool(separator) and scheme.isalnum()


def fetch(url: str, most_bytes: int = MOST_BYTES, most_seconds: float = MOST_SECONDS) -> bytes:
    """The bytes behind a public http(s) address; an `InputError` says why not."""
    deadline = time.monotonic() + most_seconds
    place = url
    try:
        for _ in range(MOST_REDIRECTS + 1):
            answer = _request(place, most_bytes, deadline)
            if isinstance(answer, bytes):
                return answer
            place = urljoin(place, answer)
    except InputError as error:
        raise InputError(error.problem, where=url, remedy=error.remedy) from None
    except TimeoutError:
        raise InputError(f"did not arrive within {most_seconds:g} seconds", where=url) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InputError(f"cannot be fetched ({error})", where=url) from None
    raise InputError(f"redirects more than {MOST_REDIRECTS} times", where=url)


def _request(url: str, most_bytes: int, deadline: float) -> bytes | str:
    """The body, or where a redirect points to."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError("is neither http nor https")
    connection = _connect(parts, deadline)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
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
            if time.monotonic() > deadline:
                raise TimeoutError
        return bytes(body)
    finally:
        connection.close()


def _connect(parts: SplitResult, deadline: float) -> http.client.HTTPConnection:
    """Connect to the very address that was checked, so that a second name lookup cannot lead elsewhere."""
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    address = public_address(host, port)
    connection = http.client.HTTPConnection(host, port, timeout=max(deadline - time.monotonic(), 0.001))
    raw = socket.create_connection((address, port), timeout=connection.timeout)
    connection.sock = ssl.create_default_context().wrap_socket(raw, server_hostname=host) if secure else raw
    return connection


def public_address(host: str, port: int) -> str:
    """An address of the host that lies on the public internet; a host that has any other is refused."""
    found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    for text in sorted(found):
        address = ipaddress.ip_address(text.partition("%")[0])
        address = getattr(address, "ipv4_mapped", None) or address
        if not address.is_global or address.is_multicast:
            raise InputError(f"leads to {address}, which is not on the public internet")
    return min(found)
