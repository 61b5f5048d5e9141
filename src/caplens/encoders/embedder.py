"""Pictures, videos and texts to vectors through an encoder and the cache on disk; what cannot be read gets a reason."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from caplens.core.captions import Media, media_name
from caplens.core.errors import InputError
from caplens.core.types import Vectors
from caplens.encoders.base import BatchRoom, Encoder, TokenVectors, ahead
from caplens.storage.cache import EmbeddingCache, key_of
from caplens.vision.fetch import is_url
from caplens.vision.images import decode_image, read_media
from caplens.vision.video import Sampling, decoder, frames

NO_MEDIA = "no {} was given"
FRAMES_AHEAD = 8
"""Frames of a video that wait at full size: 33 MB each in a film of 3840 × 2160."""


@dataclass(frozen=True)
class ImageEmbeddings:
    """One vector (or grid of vectors) per picture, NaN where there is none, and the reason by row."""

    vectors: Vectors
    failures: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FrameEmbeddings:
    """One matrix of frame vectors per video, None where there is none, and the reason by row."""

    frames: list[Vectors | None]
    failures: dict[int, str] = field(default_factory=dict)


@dataclass
class Embedder:
    """An encoder with its cache and the user's wishes."""

    encoder: Encoder
    cache: EmbeddingCache = field(default_factory=EmbeddingCache)
    strict: bool = False
    allow_urls: bool = False
    progress: Callable[[str, int, int], None] | None = None

    def images(self, media: Sequence[Media | None]) -> ImageEmbeddings:
        """Encode every picture once, decoding the next ones meanwhile."""
        identity = self.encoder.tower_identity + self.encoder.preprocessing
        found, failures = self._look_at_all(media, identity, "image features", self.encoder.image_features)
        vectors = np.full((len(media), self.encoder.dimension), np.nan, np.float32)
        if found:
            made = self.encoder.project_images(np.concatenate([row for _, row in found]))
            for (places, _), row in zip(found, made, strict=True):
                vectors[places] = row
        return ImageEmbeddings(vectors, failures)

    def grids(self, media: Sequence[Media | None], side: int) -> ImageEmbeddings:
        """What is where in every picture: (pictures, side, side, width)."""
        identity = self.encoder.grid_identity + self.encoder.preprocessing
        found, failures = self._look_at_all(
            media, identity, f"grid {side}", lambda batch: self.encoder.encode_grid(batch, side)
        )
        width = next((cells.shape[-1] for _, cells in found), 0)
        grids = np.full((len(media), side, side, width), np.nan, np.float32)
        for places, cells in found:
            grids[places] = cells.reshape(side, side, width)
        return ImageEmbeddings(grids, failures)

    def _look_at_all(
        self, media: Sequence[Media | None], identity: str, kind: str, encode: Callable[[Vectors], Vectors]
    ) -> tuple[list[tuple[list[int], Vectors]], dict[int, str]]:
        """Every distinct picture: the rows that show it and a matrix, as the cache keeps it; and what failed."""
        rows = rows_by_media(media)
        found: list[tuple[list[int], Vectors]] = []
        failures: dict[int, str] = {}
        self.missing(media, "image", failures)
        waiting: list[tuple[list[int], bytes, Vectors]] = []
        room = BatchRoom(self.encoder.image_batch)
        done = 0

        def flush() -> None:
            nonlocal done
            if not waiting:
                return
            made = encode(room.stack([pixels for _, _, pixels in waiting]))
            new = [row.reshape(-1, row.shape[-1]) for row in made]
            self.cache.put({key: matrix for (_, key, _), matrix in zip(waiting, new, strict=True)})
            found.extend((places, matrix) for (places, _, _), matrix in zip(waiting, new, strict=True))
            done += len(waiting)
            waiting.clear()
            self.report("pictures", done, len(rows))

        for places, outcome in ahead(lambda entry: self._look(entry, identity, kind), rows.values()):
            if isinstance(outcome, InputError):
                self.fail(outcome, places, failures)
                done += 1
            elif isinstance(outcome, tuple):
                waiting.append((places, *outcome))
                if len(waiting) == self.encoder.image_batch:
                    flush()
            else:
                found.append((places, outcome))
                done += 1
        flush()
        self.report("pictures", len(rows), len(rows))
        return sorted(found, key=lambda entry: entry[0][0]), failures

    def _look(
        self, entry: tuple[Media, list[int]], identity: str, kind: str
    ) -> tuple[list[int], InputError | tuple[bytes, Vectors] | Vectors]:
        """In a thread: what the cache knows of a picture, else its key and pixels, else what is wrong with it."""
        media, places = entry
        try:
            data = read_media(media, allow_urls=self.allow_urls)
            key = key_of(identity, kind, data)
            known = self.cache.get([key])
            if key in known:
                return places, known[key]
            return places, (key, self.encoder.pixels(decode_image(data, media_name(media))))
        except InputError as error:
            return places, error

    def videos(self, media: Sequence[Media | None], sampling: Sampling) -> FrameEmbeddings:
        """Encode the chosen frames of every video, streamed."""
        rows = rows_by_media(media)
        matrices: list[Vectors | None] = [None] * len(media)
        failures: dict[int, str] = {}
        self.missing(media, "video", failures)
        for done, (source, places) in enumerate(rows.values()):
            try:
                matrix = self._watch(source, sampling)
            except InputError as error:
                self.fail(error, places, failures)
                continue
            for row in places:
                matrices[row] = matrix
            self.report("videos", done + 1, len(rows))
        return FrameEmbeddings(matrices, failures)

    def _watch(self, media: Media, sampling: Sampling) -> Vectors:
        if is_url(media_name(media)):
            media = _InMemory(media_name(media), read_media(media, allow_urls=self.allow_urls))
        kind = f"frame features {sampling} {decoder()}"
        key = key_of(self.encoder.tower_identity + self.encoder.preprocessing, kind, _digest(media))
        known = self.cache.get([key])
        if key not in known:
            shown = frames(media, sampling, allow_urls=self.allow_urls)
            prepared = ahead(self.encoder.pixels, shown, depth=FRAMES_AHEAD)
            known[key] = np.stack(list(self.encoder.prepared_features(prepared)))
            self.cache.put(known)
        return self.encoder.project_images(known[key])

    def texts(self, texts: Sequence[str]) -> Vectors:
        """One vector per text."""
        keys = {text: key_of(self.encoder.tower_identity, "text features", text) for text in dict.fromkeys(texts)}
        known = self.cache.get(keys.values())
        missing = [text for text, key in keys.items() if key not in known]
        if missing:
            made = {
                keys[text]: row[None] for text, row in zip(missing, self.encoder.text_features(missing), strict=True)
            }
            self.cache.put(made)
            known.update(made)
        if not texts:
            return np.zeros((0, self.encoder.dimension), np.float32)
        place = {text: row for row, text in enumerate(keys)}
        vectors = self.encoder.project_texts(np.concatenate([known[key] for key in keys.values()]))
        return vectors[[place[text] for text in texts]]

    def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Token vectors of every text; in the cache the last row is the vector of the whole."""
        keys = {text: key_of(self.encoder.fingerprint, "tokens", text) for text in dict.fromkeys(texts)}
        known = self.cache.get(keys.values())
        missing = [text for text, key in keys.items() if key not in known]
        if missing:
            encoded = zip(missing, self.encoder.encode_tokens(missing), strict=True)
            made = {keys[text]: np.vstack([tokens.vectors, tokens.whole]) for text, tokens in encoded}
            self.cache.put(made)
            known.update(made)
        found = {}
        for text, key in keys.items():
            ids = tuple(self.encoder.tokenize(text)[0])
            found[text] = TokenVectors(ids, known[key][:-1], known[key][-1])
        return [found[text] for text in texts]

    def missing(self, media: Sequence[Media | None], kind: str, failures: dict[int, str]) -> None:
        for row, item in enumerate(media):
            if item is None:
                self.fail(InputError(NO_MEDIA.format(kind), where=f"row {row + 1}"), [row], failures)

    def fail(self, error: InputError, places: list[int], failures: dict[int, str]) -> None:
        if self.strict:
            raise error
        failures.update(dict.fromkeys(places, str(error)))

    def report(self, task: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(task, done, total)


def rows_by_media(media: Sequence[Media | None]) -> dict[Any, tuple[Media, list[int]]]:
    """Every picture once, with the rows that show it."""
    rows: dict[Any, tuple[Media, list[int]]] = {}
    for row, item in enumerate(media):
        if item is not None:
            key = os.fspath(item) if isinstance(item, str | os.PathLike) else id(item)
            rows.setdefault(key, (item, []))[1].append(row)
    return rows


def _digest(media: Media) -> bytes:
    """The hash of a video's bytes."""
    if isinstance(media, str | os.PathLike):
        if not os.path.isfile(media):
            return b""  # `frames` says what is wrong with it
        with open(media, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    with media.open() as stream:
        return hashlib.sha256(stream.read()).digest()


@dataclass(frozen=True)
class _InMemory:
    """A video that was fetched."""

    name: str
    data: bytes

    def open(self) -> BinaryIO:
        return io.BytesIO(self.data)
