"""What an image-text encoder is: two towers that meet in one space.

A subclass says how one picture becomes pixels and one text becomes token ids, encodes a batch of either up to the final
projection, and projects; sorting, padding, batching and decoding ahead are done here once for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError, MissingData
from caplens.core.threads import threads_here
from caplens.core.types import Vectors, narrow_unit
from caplens.encoders.devices import CPU, Placement
from caplens.text.sentences import surely_fits

if TYPE_CHECKING:
    from PIL.Image import Image

S = TypeVar("S")
T = TypeVar("T")

# Texts of a batch are padded to its longest, so a batch is as many tokens, not as many texts.
TOKENS_PER_BATCH = 2048
IMAGES_PER_BATCH = 16


@dataclass(frozen=True)
class TokenVectors:
    """A text as its tokens: ids with start and end token, one vector each, and the vector of the whole."""

    ids: tuple[int, ...]
    vectors: Vectors
    whole: Vectors

    @classmethod
    def joined(cls, parts: Sequence[TokenVectors]) -> TokenVectors:
        """Several parts of a text as one: all their tokens, and the mean direction of the wholes."""
        if len(parts) == 1:
            return parts[0]
        ids = tuple(token for part in parts for token in part.ids)
        whole = narrow_unit(np.stack([part.whole for part in parts])).mean(axis=0)
        return cls(ids, np.concatenate([part.vectors for part in parts]), whole)


class Encoder(ABC):
    """An image tower and a text tower. Vectors come as the towers give them, not normalized, in float32."""

    name: str
    """What it is called in every signature."""
    weights_hash: str
    """The first 12 hex digits of the sha256 over its weights."""
    tokenizer_hash: str = ""
    """What names its tokenizer, where neither its name nor its weights do."""
    dimension: int
    context_length: int
    """The most tokens of a text, start and end included."""
    preprocessing: str
    """How pictures are brought to size, in words that go into the cache key."""
    prompt: str = ""
    """What stands before a caption when nothing else is asked for."""
    english_only: bool = True
    """Whether it understands English alone; captions in other languages then get a note."""
    place: Placement = CPU
    """Where it computes."""
    usual_batch: int = IMAGES_PER_BATCH
    """Pictures at a time on a CPU."""
    scale: float = 100.0
    """1/τ: what its contrastive training multiplied cosines with at the end; 100 for CLIP."""

    @property
    def identity(self) -> str:
        """Name and weights: two encoders with equal identity give equal vectors."""
        return f"{self.name}@{self.weights_hash}"

    @property
    def fingerprint(self) -> str:
        """Everything that its vectors depend on: what results are kept under."""
        return f"{self.identity} {self.preprocessing} {self.tokenizer_hash}{self.place.mark}"

    @property
    def image_batch(self) -> int:
        """Pictures that go through the image tower at a time."""
        return self.place.pictures_at_once(self.usual_batch)

    @property
    def tower_identity(self) -> str:
        """What features, before the projection, depend on: encoders that share it share them in the cache."""
        return self.identity

    @abstractmethod
    def pixels(self, image: Image) -> Vectors:
        """One picture, brought to size and scaled, as the image tower wants it."""

    @abstractmethod
    def image_features(self, batch: Vectors) -> Vectors:
        """What the final projection of the image tower is given, a row per picture of a batch."""

    @abstractmethod
    def project_images(self, features: Vectors) -> Vectors:
        """Features of pictures into the joint space."""

    def encode_pixels(self, batch: Vectors) -> Vectors:
        """One vector per picture of a batch."""
        return self.project_images(self.image_features(batch))

    @property
    def grid_identity(self) -> str:
        """What grids depend on: `identity`, or less where layers come after the patches."""
        return self.identity

    def encode_grid(self, batch: Vectors, side: int) -> Vectors:
        """What the image tower sees where: (pictures, side, side, width), patches averaged to so many cells."""
        raise MissingData(f"{self.name} gives no grid of a picture; use the embedded encoder or a CLIP ViT")

    @abstractmethod
    def tokenize(self, text: str) -> tuple[list[int], bool]:
        """Token ids with start and end token, and whether the text was cut to the context length."""

    @abstractmethod
    def encode_ids(self, batch: Sequence[Sequence[int]]) -> list[TokenVectors]:
        """Token vectors and whole vector of every text of a batch."""

    @abstractmethod
    def caption_features(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """What the final projection of the text tower is given, a row per text of a batch."""

    @abstractmethod
    def project_texts(self, features: Vectors) -> Vectors:
        """Features of texts into the joint space."""

    def encode_ids_whole(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """One vector per text of a batch."""
        return self.project_texts(self.caption_features(batch))

    def encode_images(self, images: Iterable[Image]) -> Vectors:
        """One vector per picture; pictures may come from a generator and are not kept."""
        rows = list(self.prepared_features(self.pixels(image) for image in images))
        return self.project_images(np.stack(rows)) if rows else np.zeros((0, self.dimension), np.float32)

    def encode_regions(self, image: Image, boxes: NDArray[np.floating]) -> Vectors:
        """The whole picture, then the part under each box (x1, y1, x2, y2 in 0..1), cut out and encoded as a picture.

        Towers that see where things are take all parts from one pass over the whole.
        """
        sides = np.array([*image.size, *image.size])
        low = np.minimum(np.round(boxes[:, :2] * sides[:2]), sides[:2] - 1)  # at least one pixel
        high = np.maximum(np.round(boxes[:, 2:] * sides[2:]), low + 1)
        corners = np.concatenate([low, high], axis=1).astype(int).tolist()
        return self.encode_images([image, *(image.crop((x1, y1, x2, y2)) for x1, y1, x2, y2 in corners)])

    def prepared_features(self, prepared: Iterable[Vectors]) -> Iterator[Vectors]:
        """The features of each array of pixels, in batches as the arrays arrive."""
        for batch in self._batches(prepared):
            yield from self.image_features(batch)

    def _batches(self, prepared: Iterable[Vectors]) -> Iterator[Vectors]:
        waiting, room = iter(prepared), BatchRoom(self.image_batch)
        while batch := list(islice(waiting, self.image_batch)):
            yield room.stack(batch)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One vector per text; equal texts are encoded once."""
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return self.project_texts(np.stack(self.text_features(texts)))

    def text_features(self, texts: Sequence[str]) -> list[Vectors]:
        """The features of every text; equal texts are encoded once."""
        return self._in_batches(texts, self.caption_features)

    def encode_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Token vectors of every text; equal texts are encoded once."""
        return self._in_batches(texts, self.encode_ids)

    def _in_batches(self, texts: Sequence[str], work: Callable[[list[tuple[int, ...]]], Iterable[T]]) -> list[T]:
        encoded: dict[tuple[int, ...], T] = {}
        keys = [tuple(self.tokenize(text)[0]) for text in texts]
        tokens = TOKENS_PER_BATCH * max(1, self.image_batch // IMAGES_PER_BATCH)
        for batch in length_batches(sorted(set(keys), key=lambda ids: (len(ids), ids)), tokens):
            encoded.update(zip(batch, work(batch), strict=True))
        return [encoded[key] for key in keys]

    def fits(self, text: str) -> bool:
        """Whether the context holds the whole text; what is longer loses its end here, and metrics read it in parts."""
        return surely_fits(text, self.context_length) or not self.tokenize(text)[1]


class BatchRoom:
    """Memory for a batch of pictures, used again by the next one: fresh memory can cost more than filling it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._room: Vectors | None = None

    def stack(self, pixels: Sequence[Vectors]) -> Vectors:
        """The pictures as one array, good until the next call."""
        if self._room is None:
            self._room = np.empty((self._size, *pixels[0].shape), np.float32)
        return np.stack(pixels, out=self._room[: len(pixels)])


def length_batches(
    sequences: Sequence[tuple[int, ...]], tokens: int = TOKENS_PER_BATCH
) -> Iterator[list[tuple[int, ...]]]:
    """Cut sequences that are sorted by length into batches of about so many tokens after padding.

    >>> [len(batch) for batch in length_batches([(1,)] * 3 + [(1,) * 2048] * 2)]
    [3, 1, 1]
    """
    batch: list[tuple[int, ...]] = []
    for ids in sequences:
        if batch and (len(batch) + 1) * len(ids) > tokens:
            yield batch
            batch = []
        batch.append(ids)
    if batch:
        yield batch


def ahead(work: Callable[[S], T], items: Iterable[S], *, depth: int = 32) -> Iterator[T]:
    """`map` whose next results are made in threads while the caller is busy with the present one."""
    with ThreadPoolExecutor(max(2, threads_here())) as pool:
        waiting: deque[Future[T]] = deque()
        source = iter(items)
        try:
            for item in islice(source, depth):
                waiting.append(pool.submit(work, item))
            while waiting:
                result = waiting.popleft().result()
                for item in islice(source, 1):
                    waiting.append(pool.submit(work, item))
                yield result
        finally:
            for future in waiting:
                future.cancel()


def pool_grid(patches: Vectors, side: int) -> Vectors:
    """Average (pictures, patches, width), patches row by row of a square, to side by side cells.

    Where the sides do not divide, neighboring cells share a patch.

    >>> pool_grid(np.arange(9, dtype=np.float32).reshape(1, 9, 1), 2)[0, :, :, 0].tolist()
    [[2.0, 3.0], [5.0, 6.0]]
    """
    rows = round(patches.shape[1] ** 0.5)
    if not 1 <= side <= rows:
        raise InputError(f"a picture has {rows} by {rows} patches, which give no grid of {side} by {side}")
    square = patches.reshape(len(patches), rows, rows, -1)
    spans = [slice(cell * rows // side, -(-(cell + 1) * rows // side)) for cell in range(side)]
    bands = np.stack([square[:, span].mean(axis=1) for span in spans], axis=1)
    return np.stack([bands[:, :, span].mean(axis=2) for span in spans], axis=2)
