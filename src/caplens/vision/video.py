"""Frames of a video, one at a time: all of them, every k-th, or n spread evenly."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from caplens.core.captions import BinarySource, Media, media_name
from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.vision.fetch import is_url
from caplens.vision.images import MOST_PIXELS, first_line, read_media

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_BYTES_IN_MEMORY = 1024 * 1024 * 1024
# A playlist posing as a film must not reach the network.
_OPTIONS = {"protocol_whitelist": "file"}


@dataclass(frozen=True)
class Sampling:
    """Which frames are looked at; `str()` of it goes into signatures.

    >>> str(Sampling.parse("uniform-10")), str(Sampling.parse("every-3")), str(Sampling.parse("all"))
    ('uniform-10', 'every-3', 'all')
    """

    kind: Literal["all", "every", "uniform"] = "all"
    number: int = 1

    @classmethod
    def parse(cls, text: str) -> Sampling:
        """Read "all", "every-K" or "uniform-N"."""
        if text == "all":
            return cls()
        match = re.fullmatch(r"(every|uniform)-([1-9][0-9]{0,6})", text)
        if match is None:
            raise InputError(f"no way to choose frames is called {text!r}", remedy="use all, every-K or uniform-N")
        return cls("every" if match[1] == "every" else "uniform", int(match[2]))

    def __str__(self) -> str:
        return "all" if self.kind == "all" else f"{self.kind}-{self.number}"

    def wanted(self, count: int) -> set[int] | None:
        """Positions of the wanted frames among `count`; None: decide by `takes`."""
        if self.kind != "uniform":
            return None
        # The truncated linspace of EMScore's VATEX evaluation.
        return set(np.linspace(0, max(count - 1, 0), self.number).astype(int).tolist())

    def takes(self, position: int) -> bool:
        return self.kind == "all" or position % self.number == 0


def _av() -> Any:
    return require("av", purpose="reading videos")


def decoder() -> str:
    """Name and version of what decodes videos, for signatures."""
    return f"pyav-{_av().__version__}"


def frames(media: Media, sampling: Sampling, *, allow_urls: bool = False) -> Iterator[Image]:
    """The chosen frames in order, decoded as they are asked for; an `InputError` says why a video is unusable."""
    av = _av()
    name = media_name(media)
    wanted = None
    if sampling.kind == "uniform":
        wanted = sampling.wanted(_count_frames(_source(media, allow_urls), name))
    given = 0
    failure: Exception | None = None
    try:
        with av.open(_source(media, allow_urls), mode="r", options=_OPTIONS) as container:
            if not container.streams.video:
                raise InputError("has no video stream", where=name)
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            for position, frame in enumerate(container.decode(stream)):
                if frame.width * frame.height > MOST_PIXELS:
                    raise InputError(f"has frames of {frame.width} × {frame.height} pixels", where=name)
                if (position in wanted) if wanted is not None else sampling.takes(position):
                    given += 1
                    yield frame.to_image()
    except (av.error.FFmpegError, OSError, ValueError) as error:
        failure = error
    # A film that breaks off late has been seen for the most part; one that never showed a frame has not.
    if given == 0:
        reason = f"cannot be decoded ({_said(failure)})" if failure else "has no frames"
        raise InputError(reason, where=name)


def _source(media: Media, allow_urls: bool) -> str | io.BytesIO:
    """What PyAV opens. Never a URL itself: FFmpeg would follow it with its own protocols."""
    name = media_name(media)
    if isinstance(media, os.PathLike | str) and not is_url(name):
        if os.path.isdir(name):
            raise InputError("is a folder, not a video", where=name)
        if not os.path.isfile(name):
            raise InputError("no such file", where=name)
        if os.path.getsize(name) == 0:
            raise InputError("is empty (0 bytes)", where=name)
        return "file:" + os.path.abspath(name)
    assert isinstance(media, str | BinarySource)
    return io.BytesIO(read_media(media, allow_urls=allow_urls, most_bytes=MOST_BYTES_IN_MEMORY))


def _count_frames(source: str | io.BytesIO, name: str) -> int:
    """Frames by counting packets, without decoding: the count in a file's header is often missing or wrong."""
    av = _av()
    try:
        with av.open(source, mode="r", options=_OPTIONS) as container:
            if not container.streams.video:
                raise InputError("has no video stream", where=name)
            return sum(1 for packet in container.demux(container.streams.video[0]) if packet.size)
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise InputError(f"cannot be decoded ({_said(error)})", where=name) from None


def _said(error: Exception) -> str:
    """What FFmpeg says, without its number and the address that was opened."""
    return str(getattr(error, "strerror", None) or first_line(error))
