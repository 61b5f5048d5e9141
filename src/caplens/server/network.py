"""Who may talk to the server, and what every answer carries: host, origin, token, size, headers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException

from caplens.server.settings import LOOPBACK_NAMES, Limits, Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

COOKIE = "caplens-session"
OPEN_PATHS = frozenset({"/health", "/login"})
"""What whoever lacks the token may see, besides the styles of the page that asks for it."""
OPEN_FOLDER = "/static/"
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}

_ADDED = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
LOG = logging.getLogger("caplens.server")


def refusal(status: int, problem: str, **headers: str) -> HTTPException:
    """Return the answer that ends a request, to be raised; headers are named with underscores."""
    return HTTPException(status, problem, {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass(frozen=True)
class HostPolicy:
    """Which names a request may call the server by.

    A page of another site can only reach us under a name of its own (DNS rebinding), never under an address: so
    addresses are as good as the server's own names, unless only this machine is served.
    """

    loopback: bool
    names: frozenset[str]

    def allows(self, host: str) -> bool:
        """Say whether a Host header is ours.

        >>> HostPolicy(True, frozenset()).allows("localhost:8000"), HostPolicy(True, frozenset()).allows("evil.example")
        (True, False)
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in LOOPBACK_NAMES or name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.loopback


def same_origin(origin: str, host: str) -> bool:
    """Say whether an Origin header is that of a page of this very server.

    >>> same_origin("http://localhost:8000", "localhost:8000"), same_origin("null", "localhost:8000")
    (True, False)
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc == host and not parts.path


def session_of(token: str) -> str:
    """Return what the browser keeps instead of the token."""
    return hmac.new(token.encode(), b"caplens session", hashlib.sha256).hexdigest()


def has_token(token: str, authorization: str, cookies: str) -> bool:
    """Say whether a request carries the token, or the cookie that was given for it; in constant time."""
    scheme, _, given = authorization.partition(" ")
    by_header = scheme.lower() == "bearer" and same_secret(given.strip(), token)
    try:
        kept = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        kept = None
    return by_header or (kept is not None and same_secret(kept.value, session_of(token)))


def same_secret(given: str, secret: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


class Guard:
    """ASGI middleware in front of everything: refuses what is not for us, and limits what comes in."""

    def __init__(self, app: App, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self.hosts = HostPolicy(settings.loopback, settings.names)
        self.in_work = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            else:  # nothing here speaks WebSocket
                await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers(scope["headers"])
        counted = _Counted(receive, self.settings.limits)
        sending = _Sending(send)
        self.in_work += 1
        began = time.monotonic()
        try:
            self._check(scope, headers)
            await self.app(scope, counted, sending)
        except HTTPException as error:
            await _answer(sending, error)
        except Exception as error:  # it was answered; the log names it without its message, which may be a caption
            LOG.error("%s %s: %s (CAPLENS_DEBUG=1 says more)", scope["method"], scope["path"], type(error).__name__)
        finally:
            self.in_work -= 1
            # The path alone: what follows a question mark may be words of captions.
            LOG.info(
                "%s %s %d %.0f ms", scope["method"], scope["path"], sending.status, 1000 * (time.monotonic() - began)
            )

    def _check(self, scope: Message, headers: dict[str, str]) -> None:
        host, method, path = headers.get("host", ""), scope["method"], scope["path"]
        if not self.hosts.allows(host):
            raise refusal(421, f"this server is not called {host[:100]!r}; start it with --name to allow a name")
        if "origin" in headers and not same_origin(headers["origin"], host):
            raise refusal(403, "a page of another site sent this")
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "")
        follows_link = method == "GET" and mode == "navigate" and not path.startswith("/v1/")
        if site not in ("none", "same-origin") and not follows_link:
            raise refusal(403, "a page of another site sent this")
        token = self.settings.token
        opened = path in OPEN_PATHS or path.startswith(OPEN_FOLDER)
        if (
            token is not None
            and not opened
            and not has_token(token, headers.get("authorization", ""), headers.get("cookie", ""))
        ):
            if follows_link or (method == "GET" and "text/html" in headers.get("accept", "")):
                raise refusal(303, "the token comes first", location="/login")
            raise refusal(401, "the token is missing or wrong", www_authenticate="Bearer")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > self.settings.limits.body_bytes:
            raise refusal(413, f"more than {self.settings.limits.body_bytes // 2**20} MB were sent")
        if (
            method in ("POST", "PUT", "PATCH")
            and headers.get("content-type", "").partition(";")[0] != "application/json"
        ):
            raise refusal(415, "send application/json")
        if self.in_work > self.settings.limits.at_once:
            raise refusal(503, "the server is busy", retry_after="2")


class _Counted:
    """Reads a request's body no further and no longer than the limits allow."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self.receive, self.limits = receive, limits
        self.left, self.complete = limits.body_bytes, False

    async def __call__(self) -> Message:
        if self.complete:  # what comes now is that the client has left
            return await self.receive()
        try:
            message = await asyncio.wait_for(self.receive(), self.limits.body_seconds)
        except TimeoutError:
            raise refusal(408, "the request did not arrive in time") from None
        self.left -= len(message.get("body", b""))
        self.complete = not message.get("more_body", False)
        if self.left < 0:
            raise refusal(413, f"more than {self.limits.body_bytes // 2**20} MB were sent")
        return message


class _Sending:
    """Sends an answer with the headers that all carry, and remembers its status."""

    def __init__(self, send: Send) -> None:
        self.send, self.status = send, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            present = {name.lower() for name, _ in message["headers"]}
            added = [(name, value) for name, value in _ADDED if name not in present]
            message = {**message, "headers": [*message["headers"], *added]}
        await self.send(message)


async def _answer(send: Send, error: HTTPException) -> None:
    """Send a refusal as json, as every error of this server is."""
    body = json.dumps({"error": error.detail}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **(error.headers or {})}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status_code, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; of several with one name all count, so that none hides behind another."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joiner = "; " if key == "cookie" else ", "
        headers[key] = f"{headers[key]}{joiner}{text}" if key in headers else text
    return headers
