"""What InfoMetIC learns from: pictures as regions, captions as tokens, corrupted captions, and regions mentioned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caplens.core.progress import Progress, silent
from caplens.core.types import Vectors
from caplens.encoders.base import Encoder
from caplens.encoders.embedder import Embedder
from caplens.metrics.infometic.explained import NAMED
from caplens.metrics.infometic.inference import WordPieces, picture_arrays, token_table, tokenize_words, word_mask
from caplens.metrics.infometic.region_features import ImageRegions
from caplens.storage import weights
from caplens.text.object_labels import ObjectLabels
from caplens.text.wordnet import WORDNET
from caplens.text.words import Word, require_tagger, tag_words
from caplens.training.infometic.regions import region_features
from caplens.training.pairs import caption_features, read_pairs
from caplens.vision.regions import CLUSTERS, Proposer, Regions

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
FREQUENT = 50
"""So many words of each tag are frequent enough to replace others."""
CAPTIONS_AT_ONCE = 2048
"""Captions tagged between two reports of progress."""


@dataclass(frozen=True)
class Pictures:
    """Pictures as the network takes them."""

    names: list[str]
    vectors: Vectors
    boxes: Vectors
    regions: Bools
    image_regions: list[ImageRegions]

    @classmethod
    def of(cls, names: list[str], image_regions: list[ImageRegions], dimension: int) -> Pictures:
        """Return pictures padded to the same number of regions."""
        arrays = [picture_arrays(image, dimension) for image in image_regions]
        vectors, boxes = np.stack([array.vectors for array in arrays]), np.stack([array.boxes for array in arrays])
        return cls(names, vectors, boxes, np.stack([array.regions for array in arrays]), image_regions)


@dataclass(frozen=True)
class Captions:
    """Captions as token ids, with the picture each belongs to (a row of `Pictures`)."""

    texts: list[str]
    words: list[list[Word]]
    pieces: list[WordPieces]
    owner: Ints
    changed: Ints
    """The word that was replaced, -1 where none was."""
    vectors: Vectors

    @property
    def semantic_counts(self) -> Ints:
        """Semantic words per caption, by which hard textual negatives are told."""
        return np.array([sum(word.semantic for word in words) for words in self.words])

    def masks(self) -> Bools:
        """Return (captions, tokens): pieces of words."""
        return np.stack([word_mask(text) for text in self.pieces])


@dataclass(frozen=True)
class Split:
    """One split: pictures, captions, corrupted captions, and which regions each caption mentions."""

    pictures: Pictures
    captions: Captions
    corrupted: Captions
    mentioned: Bools
    named: Bools
    """(captions, 1 + regions + 1) both: by weak label; regions without a name are in neither."""


def load_splits(
    encoder: Encoder,
    proposer: Proposer,
    images: Path,
    captions: Path,
    more_captions: Sequence[Path],
    folder: Path,
    progress: Progress = silent,
    names: Sequence[str] = ("train", "val"),
    seed: int = 0,
    corrupted: int = 2,
) -> dict[str, Split]:
    """Return splits with everything that is learned from; features are kept in `folder`.

    `corrupted` captions of every training picture have a word replaced, and one of every other picture.
    """
    pairs = read_pairs(captions, more_captions)
    object_labels = ObjectLabels(weights.require(WORDNET))
    splits: dict[str, Split] = {}
    frequent: dict[str, list[str]] = {}
    for name in ("train", *(split for split in names if split != "train")):
        by_picture: Mapping[str, list[str]] = getattr(pairs, name)
        texts = [text for listed in by_picture.values() for text in listed]
        words = tag_captions(texts, progress)
        owner = [number for number, listed in enumerate(by_picture.values()) for _ in listed]
        if name == "train":  # what is frequent is learned from training captions
            frequent = frequent_words(words)
            if name not in names:
                continue
        regions = region_features(encoder, proposer, images, list(by_picture), folder / f"regions-{name}", progress)
        whole = encode_captions(encoder, texts, words, owner, folder / f"captions-{name}.safetensors", progress)
        words_by_picture: dict[int, list[list[Word]]] = {}
        for number, caption in zip(owner, words, strict=True):
            words_by_picture.setdefault(number, []).append(caption)
        each = corrupted if name == "train" else 1
        wrong, wrong_owner, changed = corrupt_captions(words_by_picture, frequent, each, seed)
        path = folder / f"corrupted-{name}-{seed}.safetensors"
        wrong_texts = [" ".join(word.text for word in caption) for caption in wrong]
        replaced = encode_captions(encoder, wrong_texts, wrong, wrong_owner, path, progress, changed)
        mentioned = np.zeros((len(texts), 1 + CLUSTERS + 1), bool)
        named = np.zeros_like(mentioned)
        for row, (caption, number) in enumerate(zip(words, owner, strict=True)):
            has_name, is_mentioned = mentioned_regions(caption, regions[number].regions, object_labels)
            named[row, 1 : 1 + len(has_name)] = has_name
            mentioned[row, 1 : 1 + len(is_mentioned)] = is_mentioned
        pictures = Pictures.of(list(by_picture), regions, encoder.dimension)
        splits[name] = Split(pictures, whole, replaced, mentioned, named)
    return splits


class _WholeCaptions:
    """An encoder whose vectors of whole captions are kept like features."""

    def __init__(self, encoder: Encoder) -> None:
        self.tower_identity, self.preprocessing = encoder.fingerprint, encoder.preprocessing
        self.tokenize = encoder.tokenize
        self.caption_features = encoder.encode_ids_whole
        self.pixels = encoder.pixels
        self.image_features = encoder.encode_pixels


def encode_captions(
    encoder: Encoder,
    texts: list[str],
    words: list[list[Word]],
    owner: Sequence[int],
    path: Path,
    progress: Progress = silent,
    changed: Sequence[int] | None = None,
) -> Captions:
    """Tokenize and encode captions; vectors are kept in `path`."""
    vectors = caption_features(_WholeCaptions(encoder), texts, path, progress)
    return Captions(
        texts,
        words,
        [tokenize_words(encoder, [word.text for word in caption]) for caption in words],
        np.array(owner, np.int64),
        np.full(len(texts), -1) if changed is None else np.array(changed, np.int64),
        np.stack([vectors[text] for text in texts]),
    )


def tag_captions(texts: Sequence[str], progress: Progress = silent) -> list[list[Word]]:
    """Return the words of captions with their tags, without which nothing can be replaced."""
    require_tagger()
    words: list[list[Word]] = []
    while len(words) < len(texts):
        progress("tags of words", len(words), len(texts))
        words += tag_words(texts[len(words) : len(words) + CAPTIONS_AT_ONCE])
    progress("tags of words", len(texts), len(texts))
    return words


def frequent_words(words: Sequence[Sequence[Word]], most: int = FREQUENT) -> dict[str, list[str]]:
    """Return the most frequent semantic words of every tag, in order."""
    counts: dict[str, Counter[str]] = {}
    for caption in words:
        for word in caption:
            if word.semantic:
                counts.setdefault(word.tag, Counter())[word.text.lower()] += 1
    return {
        tag: [word for word, _ in sorted(count.items(), key=lambda item: (-item[1], item[0]))[:most]]
        for tag, count in counts.items()
    }


def replace_word(
    words: Sequence[Word], frequent: Mapping[str, Sequence[str]], true: frozenset[str], random: np.random.Generator
) -> tuple[list[Word], int] | None:
    """Return a caption with one semantic word replaced by a frequent one of its tag, and that word's place (§3.2.2).

    Words in `true`, which captions of the same picture use, are not taken: they would not be wrong.
    """
    places = [place for place, word in enumerate(words) if word.semantic]
    for place in random.permutation(places).tolist():
        choice = [word for word in frequent.get(words[place].tag, ()) if word not in true]
        if choice:
            new = Word(choice[int(random.integers(len(choice)))], words[place].tag, True)
            return [*words[:place], new, *words[place + 1 :]], place
    return None


def corrupt_captions(
    captions: Mapping[int, Sequence[list[Word]]], frequent: Mapping[str, Sequence[str]], each: int, seed: int
) -> tuple[list[list[Word]], list[int], list[int]]:
    """Return `each` captions per picture with a replaced word: their words, pictures, and the places of that word."""
    random = np.random.default_rng(seed)
    texts: list[list[Word]] = []
    owner: list[int] = []
    changed: list[int] = []
    for picture, listed in captions.items():
        true = frozenset(word.text.lower() for words in listed for word in words)
        for index in random.permutation(len(listed))[:each].tolist():
            replaced = replace_word(listed[index], frequent, true, random)
            if replaced is not None:
                texts.append(replaced[0])
                owner.append(picture)
                changed.append(replaced[1])
    return texts, owner, changed


def mentioned_regions(words: Sequence[Word], regions: Regions, object_labels: ObjectLabels) -> tuple[Bools, Bools]:
    """Return weak labels: which regions have a name, and which of those names the caption's nouns can mean."""
    nouns = [word.text.lower() for word in words if word.tag.startswith("NN")]
    named = np.array(
        [
            bool(label) and confidence >= NAMED
            for label, confidence in zip(regions.labels, regions.confidences, strict=True)
        ],
        bool,
    )
    is_meant = {
        label: any(object_labels.means(noun, label) for noun in nouns) for label in set(regions.labels) if label
    }
    return named, named & np.array([is_meant.get(label, False) for label in regions.labels], bool)


def token_vectors(encoder: Encoder, captions: Sequence[Captions]) -> tuple[Vectors, list[Ints]]:
    """Return the vector of every token, and each caption's rows in that table, padded."""
    table = token_table(Embedder(encoder), [text.ids for group in captions for text in group.pieces])
    return table.vectors, [np.stack([table.rows(text.ids) for text in group.pieces]) for group in captions]
