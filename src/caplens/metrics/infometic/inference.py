"""InfoMetIC at work: pictures and captions in batches, scores and α for words and regions; no torch is needed."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError, MissingData
from caplens.core.optional import require
from caplens.core.types import Floats, Vectors, unit
from caplens.encoders.base import Encoder
from caplens.metrics.infometic.network import FusionNetwork
from caplens.metrics.infometic.region_features import ImageRegions
from caplens.storage import weights
from caplens.storage.tensors import check_finite, read_tensors
from caplens.vision.regions import CLUSTERS

if TYPE_CHECKING:
    from caplens.encoders.embedder import Embedder

WHAT = "InfoMetIC weights"
TEXT_LENGTH = 32
"""Tokens of a caption, start, end and padding included: the network has no masks, so it is always the same."""
IMAGE_LENGTH = 1 + CLUSTERS + 1
PADDING = 0
PAIRS = 64
"""Fused at once: larger batches fall out of the processor's cache."""


class WordPieces(NamedTuple):
    """A caption as token ids, with the word that each token is a piece of (-1 for start and end)."""

    ids: tuple[int, ...]
    words: tuple[int, ...]
    cut: bool


def tokenize_words(encoder: Encoder, words: Sequence[str], most: int = TEXT_LENGTH) -> WordPieces:
    """Token ids word by word, which gives those of the whole caption; what is too long loses its end."""
    start, *_, end = encoder.tokenize("")[0]
    read = words[: most - 2]
    pieces = [(piece, number) for number, word in enumerate(read) for piece in _pieces(encoder, word)]
    kept = pieces[: most - 2]
    cut = len(kept) < len(pieces) or len(read) < len(words)
    return WordPieces((start, *(piece for piece, _ in kept), end), (-1, *(number for _, number in kept), -1), cut)


@functools.lru_cache(maxsize=1 << 16)
def _pieces(encoder: Encoder, word: str) -> tuple[int, ...]:
    return tuple(encoder.tokenize(word)[0][1:-1])


class PictureArrays(NamedTuple):
    """The whole picture, its regions, zeros where there are fewer than twenty, the null region."""

    vectors: Vectors
    boxes: Vectors
    regions: NDArray[np.bool_]
    """What α is shared among: the regions that there are, and the null."""


def picture_arrays(image: ImageRegions, dimension: int) -> PictureArrays:
    """A picture as the network takes it."""
    count = min(len(image.regions), CLUSTERS)
    vectors = np.zeros((IMAGE_LENGTH, dimension), np.float32)
    vectors[: 1 + count] = image.vectors[: 1 + count]
    boxes = np.zeros((IMAGE_LENGTH, 4), np.float32)
    boxes[0] = (0, 0, 1, 1)
    boxes[1 : 1 + count] = image.regions.boxes[:count]
    regions = np.zeros(IMAGE_LENGTH, bool)
    regions[1 : 1 + count] = regions[-1] = True
    return PictureArrays(vectors, boxes, regions)


@dataclass(frozen=True)
class PairScores:
    """Of one pair; α of every region (the null last) and of every word."""

    precision: float
    recall: float
    cosine: float
    regions: Floats
    words: Floats

    @classmethod
    def mean(cls, parts: Sequence[PairScores]) -> PairScores:
        """A caption from its sentences: mean scores, for every region the largest α, and all words."""
        if len(parts) == 1:
            return parts[0]
        precision, recall, cosine = np.mean([(part.precision, part.recall, part.cosine) for part in parts], axis=0)
        regions = np.max([part.regions for part in parts], axis=0)
        words = np.concatenate([part.words for part in parts])
        return cls(float(precision), float(recall), float(cosine), regions, words)


class InfoMeticModel:
    """The network with what its file says about it."""

    def __init__(self, fusion: FusionNetwork, encoder: str, weights_hash: str, whole_image: bool = True) -> None:
        self.fusion = fusion
        self.encoder = encoder
        """Identity of the encoder it was trained over; empty if its file does not say."""
        self.weights_hash = weights_hash
        self.whole_image = whole_image
        """Whether the whole picture takes part in fusion; only an ablation does without."""

    def check(self, encoder: Encoder) -> None:
        """Refuse an encoder that these weights do not know."""
        known = not self.encoder or self.encoder == encoder.identity
        if not known or self.fusion.input_width != encoder.dimension:
            owner = self.encoder or f"an encoder of width {self.fusion.input_width}"
            raise MissingData(
                f"these InfoMetIC weights belong to {owner}, not to {encoder.identity}: give weights= for it, "
                "`caplens train infometic` makes them"
            )

    def score_pairs(
        self,
        embedder: Embedder,
        image_regions: Sequence[ImageRegions],
        pieces: Sequence[WordPieces],
        globals_: Vectors,
        pairs: Sequence[tuple[int, int]],
        counts: Sequence[int],
    ) -> list[PairScores]:
        """Pairs of (picture, caption); `globals_` are the captions' vectors, `counts` their numbers of words."""
        if not pairs:
            return []
        arrays = [picture_arrays(image, embedder.encoder.dimension) for image in image_regions]
        images = self._encode_pictures(arrays)
        texts = self._encode_captions(token_table(embedder, [text.ids for text in pieces]), pieces)
        whole_images = np.stack([array.vectors[0] for array in arrays])
        region_masks = np.stack([array.regions for array in arrays])
        word_masks = np.stack([word_mask(text) for text in pieces])
        image_queries, text_queries = self.fusion.project(whole_images), self.fusion.project(globals_)
        image_units, text_units = unit(whole_images), unit(globals_)
        scored: list[PairScores] = []
        for start in range(0, len(pairs), PAIRS):
            rows, columns = np.array(pairs[start : start + PAIRS]).T
            scores = self.fusion.score(
                images[rows],
                texts[columns],
                image_queries[rows],
                text_queries[columns],
                region_masks[rows],
                word_masks[columns],
            )
            cosines = np.einsum("ij,ij->i", image_units[rows], text_units[columns])
            parts = (scores.precision, scores.recall, cosines, scores.regions, scores.words)
            per_pair = zip(rows, columns, *(part.astype(np.float64) for part in parts), strict=True)
            for row, column, precision, recall, cosine, shares, words in per_pair:
                count = min(len(image_regions[row].regions), CLUSTERS)
                alphas = np.append(shares[:count], shares[-1])
                by_word = sum_by_word(words, pieces[column], counts[column])
                scored.append(PairScores(float(precision), float(recall), float(cosine), alphas, by_word))
        return scored

    def _encode_pictures(self, arrays: Sequence[PictureArrays]) -> Vectors:
        parts = []
        for start in range(0, len(arrays), PAIRS):
            some = arrays[start : start + PAIRS]
            vectors = self.fusion.project(np.stack([array.vectors for array in some]))
            if not self.whole_image:
                vectors[:, 0] = 0
            parts.append(self.fusion.encode_image(vectors, np.stack([array.boxes for array in some])))
        return np.concatenate(parts)

    def _encode_captions(self, table: TokenTable, pieces: Sequence[WordPieces]) -> Vectors:
        vectors = self.fusion.project(table.vectors)
        ids = np.stack([table.rows(text.ids) for text in pieces])
        return np.concatenate(
            [self.fusion.encode_text(vectors[ids[start : start + PAIRS]]) for start in range(0, len(ids), PAIRS)]
        )


@dataclass(frozen=True)
class TokenTable:
    """The vector of every token that occurs, each encoded alone: context would blur which word is wrong (§3.1.1)."""

    row_of: dict[int, int]
    vectors: Vectors

    def rows(self, ids: Sequence[int], length: int = TEXT_LENGTH) -> NDArray[np.int64]:
        """Rows of a caption's tokens, padded."""
        padded = [*ids, *[PADDING] * (length - len(ids))]
        return np.array([self.row_of[token] for token in padded])


def token_table(embedder: Embedder, ids: Sequence[Sequence[int]]) -> TokenTable:
    """Encode every token as start, token, end; known ones come from the cache."""
    from caplens.storage.cache import key_of

    encoder = embedder.encoder
    start, *_, end = encoder.tokenize("")[0]
    tokens = sorted({PADDING, *(token for text in ids for token in text)})
    keys = {key_of(encoder.fingerprint, "lone token", str(token)): token for token in tokens}

    def encode(missing: list[bytes]) -> Iterator[dict[bytes, Vectors]]:
        for first in range(0, len(missing), 512):
            batch = missing[first : first + 512]
            vectors = encoder.encode_ids_whole([(start, keys[key], end) for key in batch])
            yield {key: vector[None] for key, vector in zip(batch, vectors, strict=True)}

    known = embedder.cache.get_or_make(keys, encode)
    return TokenTable({token: row for row, token in enumerate(tokens)}, np.concatenate([known[key] for key in keys]))


def word_mask(text: WordPieces, length: int = TEXT_LENGTH) -> NDArray[np.bool_]:
    """Which positions are pieces of words."""
    mask = np.zeros(length, bool)
    mask[: len(text.words)] = np.array(text.words) >= 0
    return mask


def sum_by_word(alphas: Floats, text: WordPieces, count: int) -> Floats:
    """α of each word: the sum over its pieces; 0 for words that were cut off."""
    inside = slice(1, len(text.words) - 1)  # start and end are pieces of no word
    return np.bincount(text.words[inside], alphas[inside], minlength=count).astype(np.float64)


def load_model(source: str, allow_pickle: bool = False) -> InfoMeticModel:
    """Weights by name (`infometic`, shipped) or path: of `caplens train infometic`, or the authors' checkpoint."""
    path = weights.shipped(source) if "/" not in source and not Path(source).exists() else Path(source)
    return _load(path, weights.model_digest(path), allow_pickle)


@functools.lru_cache(maxsize=4)
def _load(path: Path, digest: str, allow_pickle: bool) -> InfoMeticModel:
    if not path.is_file():
        raise MissingData(f"there are no InfoMetIC weights at {path}: `caplens train infometic` makes some")
    tensors, about = _read(path, allow_pickle)
    try:
        fusion = FusionNetwork(tensors)
    except ValueError as error:
        raise InputError(f"not {WHAT} ({error})", where=str(path)) from None
    whole_image = bool(about.get("whole_image", True))
    return InfoMeticModel(fusion, str(about.get("encoder", "")), digest[:12], whole_image)


def _read(path: Path, allow_pickle: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    try:
        tensors, about = read_tensors(path, WHAT)
        return tensors, json.loads(about.get("caplens", "{}"))
    except InputError as error:
        refused = InputError(
            error.problem,
            where=str(path),
            remedy="a pickled checkpoint of the authors is read with allow_pickle=True (--allow-pickle)",
        )
    if not allow_pickle:
        raise refused
    torch = require("torch", purpose="reading a pickled checkpoint")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # it is no pickled file either, and torch has many words for that
        raise refused from None
    tensors = {name: tensor.float().numpy() for name, tensor in state.get("state_dict", state).items()}
    check_finite(tensors, WHAT, str(path))
    return tensors, {}
