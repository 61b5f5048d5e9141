"""The pictures of one run: each is read and decoded once, however many metrics and pages look at it."""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from caplens.core.captions import Media, media_name
from caplens.core.errors import InputError
from caplens.core.workspace import Workspace
from caplens.vision.fetch import is_url
from caplens.vision.images import RGB_BYTES, decode_image, first_line, read_media

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_KEPT_BYTES = 256 * 1024 * 1024
"""Memory for the pictures of a run that are kept for whoever looks at them next."""
LARGEST_HELD = 8 * 1024 * 1024
"""A larger file is not held between being digested and being decoded, but read again."""

_picture_locks = [threading.Lock() for _ in range(64)]
_memory_lock = threading.Lock()
_keepers: weakref.WeakSet[PictureReader] = weakref.WeakSet()
"""The run whose pictures are in memory: there is one budget for the whole process, and the latest run has it."""


def media_key(media: Media) -> Hashable:
    """What tells pictures apart without reading them: a path, an address, or the very object."""
    return os.fspath(media) if isinstance(media, str | os.PathLike) else id(media)


def pictures_of(work: Workspace) -> PictureReader:
    """The reader that all metrics of a run share."""
    return work.get_or_compute("pictures", PictureReader)


@dataclass
class Picture:
    """A picture that was read; decoded when somebody asks."""

    name: str
    digest: bytes
    """The sha256 of its file."""
    reader: PictureReader = field(repr=False)
    media: Media = field(repr=False)
    key: Hashable = field(repr=False)
    data: bytes | None = field(repr=False)
    """Its file, until it is decoded; None where it is read again."""
    allow_urls: bool = field(repr=False)

    def image(self) -> Image:
        """The picture as upright RGB, which others share: do not change it. An `InputError` says what is wrong."""
        return self.reader.decode(self)


class PictureReader:
    """Reads and decodes pictures, and keeps them as far as its memory reaches.

    The first pictures that fit are kept, rather than the latest: every metric of a run goes through them in the same
    order, so the latest would always be gone when they are wanted again. What does not fit is read and decoded anew.
    Threads may share a reader. A file that changes meanwhile is another picture.
    """

    def __init__(self, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self.most_bytes = most_bytes
        self._digests: dict[Hashable, bytes] = {}
        self._failures: dict[Hashable, tuple[str, str, str]] = {}
        """Problem, place and remedy, for pictures that cannot be used."""
        self._kept: dict[Hashable, bytes | Image] = {}
        self._kept_bytes = 0
        self._sources: dict[int, Media] = {}
        """Objects whose `id` is a key: they must live as long as it."""

    def __reduce__(self) -> tuple[type[PictureReader], tuple[int]]:
        return PictureReader, (self.most_bytes,)  # a report that travels to another process leaves the pictures behind

    def read(self, media: Media, *, allow_urls: bool = False) -> Picture:
        """The picture and the digest of its file; an `InputError` says why it cannot be read."""
        key = self._identify(media)
        with _lock_of(key):
            self._check(key)
            data = None
            if key not in self._digests:
                data = self._fetch(media, key, allow_urls)
                self._digests[key] = hashlib.sha256(data).digest()
                self._keep(key, data, len(data))
            held = data if data is not None and len(data) <= LARGEST_HELD else None
            return Picture(media_name(media), self._digests[key], self, media, key, held, allow_urls)

    def digest_of(self, media: Media) -> str | None:
        """The sha256 of a picture's file, if the run has read it."""
        known = self._digests.get(self._identify(media))
        return None if known is None else known.hex()

    def open(self, media: Media, *, allow_urls: bool = False) -> Image:
        """The picture as upright RGB."""
        return self.read(media, allow_urls=allow_urls).image()

    def decode(self, picture: Picture) -> Image:
        """The picture as upright RGB: kept from before, or decoded now."""
        key = picture.key
        with _lock_of(key):
            self._check(key)
            kept = self._kept.get(key)
            if kept is not None and not isinstance(kept, bytes):
                return kept
            data = picture.data or kept
            picture.data = None
            if data is None:
                data = self._fetch(picture.media, key, picture.allow_urls)
                if hashlib.sha256(data).digest() != picture.digest:
                    raise InputError("changed while it was looked at", where=picture.name)
            try:
                image = decode_image(data, picture.name)
            except InputError as error:
                raise self._remember(key, error) from None
            self._keep(key, image, image.width * image.height * RGB_BYTES)
            return image

    def forget(self) -> None:
        """Give the memory back; what is looked at from now on is read and decoded anew."""
        with _memory_lock:
            self._release()

    def _fetch(self, media: Media, key: Hashable, allow_urls: bool) -> bytes:
        """Its bytes, from the file or the network."""
        name = media_name(media)
        try:
            return read_media(media, allow_urls=allow_urls)
        except InputError as error:
            if is_url(name) and not allow_urls:  # another metric may be allowed to fetch it
                raise
            raise self._remember(key, error) from None
        except Exception as error:  # an archive may raise anything
            raise self._remember(key, InputError(f"cannot be read ({first_line(error)})", where=name)) from None

    def _check(self, key: Hashable) -> None:
        """Raise what was wrong with it the first time."""
        if key in self._failures:
            problem, where, remedy = self._failures[key]
            raise InputError(problem, where=where, remedy=remedy)

    def _remember(self, key: Hashable, error: InputError) -> InputError:
        """The same error; only its words are kept, as the exception itself would hold on to the picture's bytes."""
        self._failures[key] = (error.problem, error.where, error.remedy)
        return error

    def _identify(self, media: Media) -> Hashable:
        key = media_key(media)
        if isinstance(key, int):
            self._sources[key] = media
            return key
        try:
            status = os.stat(str(key))
        except (OSError, ValueError):  # a URL, or `read_media` says what is wrong
            return key
        return key, status.st_size, status.st_mtime_ns, status.st_ino

    def _keep(self, key: Hashable, content: bytes | Image, size: int) -> None:
        """Keep a picture if there is room; its pixels replace its bytes."""
        with _memory_lock:
            if self not in _keepers:
                for earlier in _keepers:
                    earlier._release()
                _keepers.clear()
                _keepers.add(self)
            present = self._kept.get(key)
            freed = len(present) if isinstance(present, bytes) else 0
            if self._kept_bytes - freed + size <= self.most_bytes:
                self._kept[key] = content
                self._kept_bytes += size - freed

    def _release(self) -> None:
        self._kept.clear()
        self._kept_bytes = 0


def _lock_of(key: Hashable) -> threading.Lock:
    """One of several locks: two threads never decode the same picture, and seldom wait for another."""
    return _picture_locks[hash(key) % len(_picture_locks)]
