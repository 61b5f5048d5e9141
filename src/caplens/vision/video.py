"""Frames of a video, one at a time: all of them, every k-th, or n spread evenly."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from caplens.core.captions import Media, media_name
from caplens.core.errors import CaplensError, InputError
from caplens.core.optional import require
from caplens.vision.fetch import is_url
from caplens.vision.images import first_line, read_media

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")

MOST_BYTES = 16 * 1024**3
"""Of a video file."""
MOST_BYTES_IN_MEMORY = 1024**3
"""Of a video that is no file of its own."""
MOST_FRAME_PIXELS = 40_000_000
"""Of one frame; a film of 7680 × 4320 has 33 million."""
MOST_FRAMES = 18_000
"""Frames of one video that are looked at: ten minutes at 30 a second, if all of them are."""
MOST_SECONDS = 600.0
"""Spent on reading and decoding one video, whatever the encoder takes."""
# Formats that hold their own frames. Playlists (hls, dash), scripts (concat) and the like name other files, and are
# never opened, whatever their name ends in; nor is anything but a file.
FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,h264,hevc,ivf,obu,flv,asf,ogg,gif,apng,dv,nut,"
    "yuv4mpegpipe,mjpeg"
)
_OPTIONS = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}


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

    def positions(self, count: int) -> set[int] | None:
        """Positions of the chosen frames among `count`; None: decide by `takes`."""
        if self.kind != "uniform":
            return None
        # The truncated linspace of EMScore's VATEX evaluation.
        return set(np.linspace(0, max(count - 1, 0), self.number).astype(int).tolist())

    def takes(self, position: int) -> bool:
        return self.kind == "all" or position % self.number == 0

    def count(self, frames: int) -> int:
        """How many of so many frames are looked at, at most.

        >>> Sampling.parse("all").count(10), Sampling.parse("every-3").count(10), Sampling.parse("uniform-4").count(10)
        (10, 4, 4)
        """
        return min(frames, self.number) if self.kind == "uniform" else -(-frames // self.number)


def decoder() -> str:
    """Name and version of what decodes videos, for signatures."""
    return f"pyav-{_pyav().__version__}"


def _pyav() -> Any:
    return require("av", purpose="reading videos")


@dataclass(frozen=True)
class Video:
    """A video that is there; its content has not been looked at."""

    name: str
    size: int
    path: str = ""
    data: bytes = field(default=b"", repr=False)
    """Its bytes, where it is no file of its own."""

    def digest(self) -> bytes:
        """The sha256 of its bytes."""
        if not self.path:
            return hashlib.sha256(self.data).digest()
        try:
            with open(self.path, "rb") as stream:
                return hashlib.file_digest(stream, "sha256").digest()
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror or error})", where=self.name) from None

    def frames(self, sampling: Sampling) -> Generator[Image, None, None]:
        """The chosen frames in order, decoded as they are asked for; an `InputError` says why there are none."""
        clock = _Clock(self.name)
        positions = self._positions(sampling, clock)
        count = 0
        failure: Exception | None = None
        try:
            with _open(self) as container:
                stream = container.streams.video[0]
                _check_size(stream.codec_context.width, stream.codec_context.height, self.name)
                stream.thread_type = "AUTO"
                # A film may grow on the way, and what is too large must not be decoded to see that it is.
                stream.codec_context.options = {"max_pixels": str(MOST_FRAME_PIXELS)}
                for position, frame in enumerate(clock.time(container.decode(stream))):
                    _check_size(frame.width, frame.height, self.name)
                    if (position in positions) if positions is not None else sampling.takes(position):
                        count += 1
                        self._check_count(count)
                        yield frame.to_image()
        except CaplensError:
            raise
        except Exception as error:  # FFmpeg's own errors, and whatever else a damaged film breaks
            failure = error
        # A film that breaks off late has been seen for the most part; one that never showed a frame has not.
        if count == 0:
            raise _undecodable(failure, self.name) if failure else InputError("has no frames", where=self.name)

    def _positions(self, sampling: Sampling, clock: _Clock) -> set[int] | None:
        """Positions of the chosen frames, or None where `sampling.takes` decides; too many are refused at once."""
        count = 0
        try:
            with _open(self) as container:
                # By its packets: the count in a file's header is often missing or wrong.
                for packet in clock.time(container.demux(container.streams.video[0])):
                    count += bool(packet.size)
        except CaplensError:
            raise
        except Exception as error:
            if sampling.kind == "uniform":  # the others take what there is
                raise _undecodable(error, self.name) from None
        self._check_count(sampling.count(count))
        return sampling.positions(count)

    def _check_count(self, frames: int) -> None:
        if frames > MOST_FRAMES:
            raise InputError(
                f"has more than {MOST_FRAMES:,} frames to look at",
                where=self.name,
                remedy="look at fewer: frames='uniform-32' (-o frames=uniform-32)",
            )


def open_video(media: Media, *, allow_urls: bool = False) -> Video:
    """A video by its path, address or archive member; an `InputError` says why there is none.

    FFmpeg is never given an address itself: it would follow it with its own protocols.
    """
    name = media_name(media)
    if is_url(name) or not isinstance(media, str | os.PathLike):
        data = read_media(media, allow_urls=allow_urls, most_bytes=MOST_BYTES_IN_MEMORY)
        return Video(name, len(data), data=data)
    try:
        status = os.stat(name)
    except FileNotFoundError:
        raise InputError("no such file", where=name) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=name) from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError("is a folder, not a video", where=name)
    if not stat.S_ISREG(status.st_mode):
        raise InputError("is not a regular file", where=name)
    if status.st_size == 0:
        raise InputError("is empty (0 bytes)", where=name)
    if status.st_size > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES // 2**30} GB", where=name)
    return Video(name, status.st_size, path=os.path.abspath(name))


def frames(media: Media, sampling: Sampling, *, allow_urls: bool = False) -> Generator[Image, None, None]:
    """The chosen frames of a video in order, decoded as they are asked for."""
    return open_video(media, allow_urls=allow_urls).frames(sampling)


def _open(video: Video) -> Any:
    """The film as PyAV reads it, with a video stream."""
    av = _pyav()
    source = f"file:{video.path}" if video.path else io.BytesIO(video.data)
    try:
        container = av.open(source, mode="r", options=_OPTIONS, timeout=MOST_SECONDS)
    except av.error.ArgumentError:  # not among the formats
        raise InputError("is not a video in a known format", where=video.name) from None
    if not container.streams.video:
        container.close()
        raise InputError("has no video stream", where=video.name)
    return container


def _check_size(width: int, height: int, name: str) -> None:
    if width * height > MOST_FRAME_PIXELS:
        raise InputError(f"has frames of {width} × {height} pixels", where=name, remedy="reduce the video")


def _too_slow(name: str) -> InputError:
    return InputError(f"took longer than {MOST_SECONDS:g} seconds to decode", where=name)


def _undecodable(error: Exception, name: str) -> InputError:
    """With what FFmpeg says, without its number and the address that was opened."""
    if isinstance(error, _pyav().error.ExitError):  # reading alone took so long
        return _too_slow(name)
    reason = getattr(error, "strerror", None) or first_line(error)
    return InputError(f"cannot be decoded ({reason})", where=name)


class _Clock:
    """The time that one video has taken; an `InputError` when it is too long."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spent = 0.0

    def time(self, items: Iterable[T]) -> Iterator[T]:
        """The same items; only what it takes to make them counts."""
        source = iter(items)
        while True:
            start = monotonic()
            try:
                item = next(source)
            except StopIteration:
                return
            finally:
                self._spent += monotonic() - start
            if self._spent > MOST_SECONDS:
                raise _too_slow(self._name)
            yield item
