"""Pictures, videos and texts to vectors through an encoder and the cache on disk; what cannot be read gets a reason."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from caplens.core.captions import Media, media_name
from caplens.core.errors import CaplensError, InputError, as_caplens_error
from caplens.core.types import Vectors
from caplens.encoders.base import BatchRoom, Encoder, TokenVectors, ahead
from caplens.storage.cache import EmbeddingCache, key_of, key_of_digest
from caplens.vision.pictures import Picture, PictureReader, media_key
from caplens.vision.video import Sampling, Video, decoder, open_video

NO_MEDIA = "no {} was given"
PICTURES_AT_ONCE, MOST_BYTES_AT_ONCE = 64, 64 * 1024 * 1024
"""Pictures, or bytes of their files, that are read before the cache is asked for them."""
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
    """An encoder with its cache, the pictures of the run and the user's wishes."""

    encoder: Encoder
    cache: EmbeddingCache = field(default_factory=EmbeddingCache)
    strict: bool = False
    allow_urls: bool = False
    progress: Callable[[str, int, int], None] | None = None
    pictures: PictureReader = field(default_factory=PictureReader)

    def images(self, media: Sequence[Media | None]) -> ImageEmbeddings:
        """Encode every picture once, decoding the next ones meanwhile."""
        identity = self.encoder.tower_identity + self.encoder.preprocessing + self.encoder.place.mark
        features, failures = self._encode_pictures(media, identity, "image features", self.encoder.image_features)
        vectors = np.full((len(media), self.encoder.dimension), np.nan, np.float32)
        if features:
            projected = self.encoder.project_images(np.concatenate([matrix for _, matrix in features]))
            for (rows, _), vector in zip(features, projected, strict=True):
                vectors[rows] = vector
        return ImageEmbeddings(vectors, failures)

    def grids(self, media: Sequence[Media | None], side: int) -> ImageEmbeddings:
        """What is where in every picture: (pictures, side, side, width)."""
        identity = self.encoder.grid_identity + self.encoder.preprocessing + self.encoder.place.mark
        features, failures = self._encode_pictures(
            media, identity, f"grid {side}", lambda batch: self.encoder.encode_grid(batch, side)
        )
        width = next((cells.shape[-1] for _, cells in features), 0)
        grids = np.full((len(media), side, side, width), np.nan, np.float32)
        for rows, cells in features:
            grids[rows] = cells.reshape(side, side, width)
        return ImageEmbeddings(grids, failures)

    def _encode_pictures(
        self, media: Sequence[Media | None], identity: str, kind: str, encode: Callable[[Vectors], Vectors]
    ) -> tuple[list[tuple[list[int], Vectors]], dict[int, str]]:
        """Every distinct picture: the rows that show it and a matrix, as the cache keeps it; and what failed."""
        features: list[tuple[list[int], Vectors]] = []
        failures: dict[int, str] = {}
        waiting: list[tuple[list[int], bytes, Vectors]] = []
        room = BatchRoom(self.encoder.image_batch)

        def unknown() -> Iterator[tuple[list[int], bytes, Picture]]:
            """The pictures that the cache does not know, with their keys; what it knows is put down."""
            for portion in self.read_pictures(media, failures):
                keyed = [(rows, key_of_digest(identity, kind, picture.digest), picture) for rows, picture in portion]
                known = self.cache.get(key for _, key, _ in keyed)
                features.extend((rows, known[key]) for rows, key, _ in keyed if key in known)
                yield from (entry for entry in keyed if entry[1] not in known)

        def flush() -> None:
            matrices = [
                row.reshape(-1, row.shape[-1]) for row in encode(room.stack([pixels for *_, pixels in waiting]))
            ]
            self.cache.put({key: matrix for (_, key, _), matrix in zip(waiting, matrices, strict=True)})
            features.extend((rows, matrix) for (rows, *_), matrix in zip(waiting, matrices, strict=True))
            waiting.clear()
            self.report("pictures", len(features) + len(failures), total)

        total = len(rows_by_media(media))
        for rows, key, pixels in ahead(self._prepare, unknown()):
            if isinstance(pixels, InputError):
                self.fail(pixels, rows, failures)
                continue
            waiting.append((rows, key, pixels))
            if len(waiting) == self.encoder.image_batch:
                flush()
        if waiting:
            flush()
        self.report("pictures", total, total)
        return sorted(features, key=lambda entry: entry[0][0]), failures

    def _prepare(self, entry: tuple[list[int], bytes, Picture]) -> tuple[list[int], bytes, Vectors | InputError]:
        """In a thread: the pixels of a picture, or what is wrong with it; whatever that is, it costs this one only."""
        rows, key, picture = entry
        try:
            return rows, key, self.encoder.pixels(picture.image())
        except Exception as error:
            return rows, key, _failure(error, picture.media)

    def read_pictures(
        self, media: Sequence[Media | None], failures: dict[int, str]
    ) -> Iterator[list[tuple[list[int], Picture]]]:
        """Every distinct picture with the rows that show it, in portions whose keys the cache is asked for together.

        One by one, look-ups take several times as long. What cannot be read is put down in `failures`.
        """
        self.missing(media, "image", failures)
        portion: list[tuple[list[int], Picture]] = []
        held = 0
        for rows, picture in ahead(self._read, rows_by_media(media).values()):
            if isinstance(picture, InputError):
                self.fail(picture, rows, failures)
                continue
            portion.append((rows, picture))
            held += len(picture.data or b"")
            if len(portion) == PICTURES_AT_ONCE or held > MOST_BYTES_AT_ONCE:
                yield portion
                portion, held = [], 0
        if portion:
            yield portion

    def _read(self, entry: tuple[Media, list[int]]) -> tuple[list[int], Picture | InputError]:
        media, rows = entry
        try:
            return rows, self.pictures.read(media, allow_urls=self.allow_urls)
        except Exception as error:
            return rows, _failure(error, media)

    def videos(self, media: Sequence[Media | None], sampling: Sampling) -> FrameEmbeddings:
        """Encode the chosen frames of every video, streamed."""
        identity = self.encoder.tower_identity + self.encoder.preprocessing + self.encoder.place.mark
        kind = f"frame features {sampling} {decoder()}"
        matrices: list[Vectors | None] = [None] * len(media)
        failures: dict[int, str] = {}
        done, total = 0, len(rows_by_media(media))
        for portion in self._read_videos(media, failures):
            keys = [key_of(identity, kind, digest) for _, _, digest in portion]
            known = self.cache.get(keys)
            for (rows, video, _), key in zip(portion, keys, strict=True):
                try:
                    features = known[key] if key in known else self._encode_frames(video, sampling)
                except Exception as error:
                    self.fail(_failure(error, media[rows[0]]), rows, failures)
                    continue
                if key not in known:
                    self.cache.put({key: features})
                matrix = self.encoder.project_images(features)
                for row in rows:
                    matrices[row] = matrix
                done += 1
                self.report("videos", done, total)
        self.report("videos", total, total)
        return FrameEmbeddings(matrices, failures)

    def _read_videos(
        self, media: Sequence[Media | None], failures: dict[int, str]
    ) -> Iterator[list[tuple[list[int], Video, bytes]]]:
        """Every distinct video with its rows and its digest, in portions that do not take long to read."""
        self.missing(media, "video", failures)
        portion: list[tuple[list[int], Video, bytes]] = []
        size = 0
        for item, rows in rows_by_media(media).values():
            try:
                video = open_video(item, allow_urls=self.allow_urls)
                portion.append((rows, video, video.digest()))
            except Exception as error:
                self.fail(_failure(error, item), rows, failures)
                continue
            size += video.size
            if len(portion) == PICTURES_AT_ONCE or size > MOST_BYTES_AT_ONCE:
                yield portion
                portion, size = [], 0
        if portion:
            yield portion

    def _encode_frames(self, video: Video, sampling: Sampling) -> Vectors:
        prepared = ahead(self.encoder.pixels, video.frames(sampling), depth=FRAMES_AHEAD)
        return np.stack(list(self.encoder.prepared_features(prepared)))

    def texts(self, texts: Sequence[str]) -> Vectors:
        """One vector per text."""
        if not texts:
            return np.zeros((0, self.encoder.dimension), np.float32)
        identity = self.encoder.tower_identity + self.encoder.place.mark
        keys = {key_of(identity, "text features", text): text for text in dict.fromkeys(texts)}

        def encode(missing: list[bytes]) -> Iterator[dict[bytes, Vectors]]:
            features = self.encoder.text_features([keys[key] for key in missing])
            yield {key: row[None] for key, row in zip(missing, features, strict=True)}

        known = self.cache.get_or_make(keys, encode)
        row_of = {text: row for row, text in enumerate(keys.values())}
        vectors = self.encoder.project_texts(np.concatenate([known[key] for key in keys]))
        return vectors[[row_of[text] for text in texts]]

    def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Token vectors of every text; in the cache the last row is the vector of the whole."""
        keys = {key_of(self.encoder.fingerprint, "tokens", text): text for text in dict.fromkeys(texts)}

        def encode(missing: list[bytes]) -> Iterator[dict[bytes, Vectors]]:
            encoded = self.encoder.encode_tokens([keys[key] for key in missing])
            yield {key: np.vstack([tokens.vectors, tokens.whole]) for key, tokens in zip(missing, encoded, strict=True)}

        known = self.cache.get_or_make(keys, encode)
        by_text = {}
        for key, text in keys.items():
            ids = tuple(self.encoder.tokenize(text)[0])
            by_text[text] = TokenVectors(ids, known[key][:-1], known[key][-1])
        return [by_text[text] for text in texts]

    def missing(self, media: Sequence[Media | None], kind: str, failures: dict[int, str]) -> None:
        for row, item in enumerate(media):
            if item is None:
                self.fail(InputError(NO_MEDIA.format(kind), where=f"row {row + 1}"), [row], failures)

    def fail(self, error: InputError, rows: list[int], failures: dict[int, str]) -> None:
        if self.strict:
            raise error
        failures.update(dict.fromkeys(rows, str(error)))

    def report(self, task: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(task, done, total)


def _failure(error: Exception, media: Media | None) -> InputError:
    """What to say about one picture or video, whatever went wrong; what the metric itself lacks is raised."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, CaplensError):
        raise error
    return InputError(
        f"cannot be looked at: {as_caplens_error(error)}", where="" if media is None else media_name(media)
    )


def rows_by_media(media: Sequence[Media | None]) -> dict[Hashable, tuple[Media, list[int]]]:
    """Every picture once, with the rows that show it."""
    rows: dict[Hashable, tuple[Media, list[int]]] = {}
    for row, item in enumerate(media):
        if item is not None:
            rows.setdefault(media_key(item), (item, []))[1].append(row)
    return rows
