"""Starts the server: one process, one event loop, and a line that says where it is."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from urllib.parse import quote

import uvicorn

from caplens.core.errors import InputError
from caplens.core.memory import give_back_freed
from caplens.server.app import create_app
from caplens.server.settings import Settings

CLOSING = 5
"""Seconds that open requests have when the server is asked to end."""


def serve(settings: Settings, tell: Callable[[str], None]) -> None:
    """Serve until somebody interrupts."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    give_back_freed()
    listening = _listen(settings)
    port = listening.getsockname()[1]
    app = create_app(settings)
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{shown}:{port}/"
    if settings.token is not None:
        address += f"login#{quote(settings.token, safe='')}"
    tell(f"caplens serves at {address}")
    tell(f"jobs and ratings are kept in {settings.state}; Ctrl-C ends the server")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=CLOSING,
        ws="none",
        proxy_headers=False,
        h11_max_incomplete_event_size=64 * 1024,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _listen(settings: Settings) -> socket.socket:
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(512)
    except OSError as error:
        raise InputError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}",
            remedy="choose another: --port 0 takes any that is free",
        ) from None
    return listening
