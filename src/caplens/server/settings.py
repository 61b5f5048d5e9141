"""What a server is started with, and the limits on what it is sent."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from caplens.core.errors import InputError
from caplens.storage.paths import data_folder

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
LEAST_TOKEN = 16
"""Characters of a token that somebody chose."""


@dataclass(frozen=True)
class Limits:
    """What one request may ask for; `GET /v1/limits` tells it."""

    body_bytes: int = 48 * 1024 * 1024
    body_seconds: float = 30.0
    """Between two pieces of a request."""
    picture_pixels: int = 50_000_000
    video_bytes: int = 32 * 1024 * 1024
    text_characters: int = 5_000
    """Of one caption or reference."""
    references: int = 100
    """Of one caption."""
    captions: int = 64
    """That are answered at once; more go in as a job."""
    job_captions: int = 100_000
    systems: int = 20
    """Compared with each other."""
    answer_seconds: float = 60.0
    """After which a request is told to come back as a job."""
    job_seconds: float = 6 * 3600.0
    waiting: int = 24
    """Requests that wait for the models; whoever comes then is told to come back (503)."""
    at_once: int = 200
    """Requests of any kind."""
    jobs: int = 100
    """That wait; more are refused (429)."""
    listeners: int = 100
    """Of the progress of jobs."""


def default_state() -> Path:
    """Return the folder where jobs and ratings are kept unless another is named."""
    return data_folder() / "serve"


@dataclass(frozen=True)
class Settings:
    """How a server was started."""

    runs: Path | None = None
    """The folder of runs to show."""
    folders: tuple[Path, ...] = ()
    """Pictures and videos are read below these, and nowhere else."""
    state: Path = field(default_factory=default_state)
    """Where jobs and ratings are kept."""
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    names: frozenset[str] = frozenset()
    """Host names that the server answers to besides its own address."""
    allow_urls: bool = False
    log_captions: bool = False
    encoder: str | None = "embedded"
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < LEAST_TOKEN:
            raise InputError(
                f"the token has {len(self.token)} characters",
                remedy=f'use at least {LEAST_TOKEN}: python -c "import secrets; print(secrets.token_urlsafe())"',
            )
        if not self.loopback and self.token is None:
            raise InputError(
                f"on {self.host} everybody in reach could use this server",
                remedy="set a token in CAPLENS_TOKEN (or let --token make one), or leave --host out",
            )

    @property
    def loopback(self) -> bool:
        """Say whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def picture_folders(self) -> tuple[Path, ...]:
        """Return the folders that pictures may be in, as they really are."""
        named = (*self.folders, *(() if self.runs is None else (self.runs,)))
        return tuple(Path(os.path.realpath(folder)) for folder in named)

    def find_media(self, name: str) -> Path | None:
        """Return the file behind a name, if it is below a folder that was named at the start; links are followed.

        A run may have been scored elsewhere, so a file's last name is looked for in the named folders, too.
        """
        if "\0" in name or not name:
            return None
        for folder in self.picture_folders:
            for candidate in _below(folder, name):
                real = Path(os.path.realpath(candidate))
                if real.is_relative_to(folder) and os.path.isfile(real):
                    return real
        return None


def _below(folder: Path, name: str) -> Iterable[Path]:
    yield folder / name  # an absolute name stands for itself
    yield folder / Path(name).name
