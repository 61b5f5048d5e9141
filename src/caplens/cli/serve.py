"""`caplens serve`: the page to work in, and the API behind it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._arguments import AllowUrls, Encoder
from caplens.cli._show import tell
from caplens.core.errors import InputError


def command(
    runs: Annotated[
        Path | None,
        typer.Argument(metavar="[RUNS]", help="Folder of runs to show: what --json wrote, folders of scored shards."),
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Option("--images", metavar="DIR", help="Folder of pictures that may be shown; may be repeated."),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; any but this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="NUMBER", help="Port to listen on; 0 for any.")] = 8000,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token: the one in CAPLENS_TOKEN, or a new one that is printed.")
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A name that the server is called by, as behind a proxy; may be repeated."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where jobs and ratings are kept.", show_default="serve in the folder of caplens's data"
        ),
    ] = None,
    encoder: Encoder = "embedded",
    allow_urls: AllowUrls = False,
    log_captions: Annotated[
        bool, typer.Option("--log-captions", help="Write what people ask into the log; else only paths and times.")
    ] = False,
) -> None:
    """Open a page to try captions, browse and compare runs, and collect ratings; with an API.

    Example: caplens serve runs --images photos
    """
    from caplens.core.optional import check

    check("fastapi", "uvicorn", purpose="caplens serve")
    from caplens.server.run_server import serve
    from caplens.server.settings import Settings, default_state

    for folder in (*([runs] if runs is not None else ()), *(images or ())):
        if not folder.is_dir():
            raise InputError("is no folder", where=str(folder))
    secret = os.environ.get("CAPLENS_TOKEN") or (secrets.token_urlsafe(24) if token else None)
    serve(
        Settings(
            runs=runs,
            folders=tuple(images or ()),
            state=state or default_state(),
            host=host,
            port=port,
            token=secret,
            names=frozenset(name or ()),
            allow_urls=allow_urls,
            log_captions=log_captions,
            encoder=encoder,
        ),
        tell,
    )
