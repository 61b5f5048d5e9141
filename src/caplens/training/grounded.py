"""What InfoMetIC learns from: pictures as regions, captions as tokens, polluted captions, regions mentioned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caplens.core.types import Vectors
from caplens.encoders.base import Encoder, ahead
from caplens.encoders.embedder import Embedder
from caplens.metrics.infometic.inference import WordPieces, picture_arrays, token_table, tokenize_words, word_mask
from caplens.metrics.infometic.region_features import ImageRegions
from caplens.storage.atomic import atomic_path
from caplens.text.object_labels import ObjectLabels
from caplens.text.words import Word, require_tagger, tag_words
from caplens.training.pairs import PICTURES_PER_FILE, Progress, caption_features
from caplens.vision.images import open_image
from caplens.vision.regions import Proposer, Regions, choose_regions

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
FREQUENT = 50
"""So many words of each tag are frequent enough to pollute captions with."""
SURE = 0.3
"""Confidence from which the detector's name for a region counts as a weak label."""


def region_features(
    encoder: Encoder, proposer: Proposer, images: Path, names: Sequence[str], folder: Path, progress: Progress
) -> list[ImageRegions]:
    """Return the regions of every picture, kept in `folder` in pieces: an interrupted run goes on where it was."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    looks: list[ImageRegions] = []
    for start in range(0, len(names), PICTURES_PER_FILE):
        part = list(names[start : start + PICTURES_PER_FILE])
        path = folder / f"{start:06d}.safetensors"
        about = {"names": part, "encoder": encoder.identity, "proposer": proposer.name}
        if path.is_file():
            with safe_open(path, "np") as file:
                metadata = file.metadata()
                if json.loads(metadata["about"]) == about:
                    tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                    looks += unpack_looks(tensors, json.loads(metadata["labels"]))
                    continue
        made = []
        for name, image in zip(part, ahead(lambda name: open_image(images / name), part, depth=8), strict=True):
            regions = choose_regions(proposer(image, Path(name).stem))
            made.append(ImageRegions(regions, encoder.encode_regions(image, regions.boxes)))
        packed, labels = pack_looks(made)
        with atomic_path(path) as temporary:
            save_file(packed, temporary, metadata={"about": json.dumps(about), "labels": json.dumps(labels)})
        looks += unpack_looks(packed, labels)
        progress("pictures", min(start + PICTURES_PER_FILE, len(names)), len(names))
    return looks


def pack_looks(looks: Sequence[ImageRegions]) -> tuple[dict[str, NDArray[np.generic]], list[list[str]]]:
    """As arrays end to end, in float16, and the labels."""
    arrays: dict[str, NDArray[np.generic]] = {
        "counts": np.array([len(look.regions) for look in looks]),
        "boxes": np.concatenate([look.regions.boxes for look in looks]).astype(np.float32),
        "confidences": np.concatenate([look.regions.confidences for look in looks]).astype(np.float32),
        "vectors": np.concatenate([look.vectors for look in looks]).astype(np.float16),
    }
    return arrays, [list(look.regions.labels) for look in looks]


def unpack_looks(arrays: Mapping[str, NDArray[np.generic]], labels: list[list[str]]) -> list[ImageRegions]:
    """The looks that were packed."""
    counts = arrays["counts"].astype(int)
    ends, vector_ends = np.cumsum(counts), np.cumsum(counts + 1)
    made = []
    for count, end, vector_end, names in zip(counts, ends, vector_ends, labels, strict=True):
        inside = slice(end - count, end)
        regions = Regions(
            arrays["boxes"][inside].astype(np.float64), arrays["confidences"][inside].astype(np.float64), tuple(names)
        )
        made.append(ImageRegions(regions, arrays["vectors"][vector_end - count - 1 : vector_end].astype(np.float32)))
    return made


@dataclass(frozen=True)
class Pictures:
    """Pictures as the network takes them."""

    names: list[str]
    vectors: Vectors
    boxes: Vectors
    regions: Bools
    looks: list[ImageRegions]

    @classmethod
    def of(cls, names: list[str], looks: list[ImageRegions], dimension: int) -> Pictures:
        arrays = [picture_arrays(look, dimension) for look in looks]
        vectors, boxes = np.stack([array.vectors for array in arrays]), np.stack([array.boxes for array in arrays])
        return cls(names, vectors, boxes, np.stack([array.regions for array in arrays]), looks)


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
        """(captions, tokens): pieces of words."""
        return np.stack([word_mask(text) for text in self.pieces])


class _Whole:
    """An encoder whose whole captions are kept like features."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.tokenize = encoder.tokenize
        self.caption_features = encoder.encode_ids_whole
        self.pixels = encoder.pixels
        self.image_features = encoder.encode_pixels


def make_captions(
    encoder: Encoder,
    texts: list[str],
    words: list[list[Word]],
    owner: Sequence[int],
    changed: Sequence[int] | None,
    path: Path,
    progress: Progress,
) -> Captions:
    """Spell and encode captions; vectors are kept in `path`."""
    found = caption_features(_Whole(encoder), texts, path, progress)
    return Captions(
        texts,
        words,
        [tokenize_words(encoder, [word.text for word in listed]) for listed in words],
        np.array(owner, np.int64),
        np.full(len(texts), -1) if changed is None else np.array(changed, np.int64),
        np.stack([found[text] for text in texts]),
    )


def frequent_words(words: Sequence[Sequence[Word]], most: int = FREQUENT) -> dict[str, list[str]]:
    """The most frequent semantic words of every tag, in order."""
    counts: dict[str, Counter[str]] = {}
    for listed in words:
        for word in listed:
            if word.semantic:
                counts.setdefault(word.tag, Counter())[word.text.lower()] += 1
    return {tag: [word for word, _ in sorted(found.items(), key=lambda item: (-item[1], item[0]))[:most]]
            for tag, found in counts.items()}  # fmt: skip


def pollute(
    words: Sequence[Word], frequent: Mapping[str, Sequence[str]], true: frozenset[str], random: np.random.Generator
) -> tuple[list[Word], int] | None:
    """A caption with one semantic word replaced by a frequent one of its tag, and the place of that word (§3.2.2).

    Words in `true`, which captions of the same picture use, are not taken: they would not be wrong.
    """
    places = [place for place, word in enumerate(words) if word.semantic]
    for place in random.permutation(places).tolist():
        choice = [word for word in frequent.get(words[place].tag, ()) if word not in true]
        if choice:
            new = Word(choice[int(random.integers(len(choice)))], words[place].tag, True)
            return [*words[:place], new, *words[place + 1 :]], place
    return None


def pollute_all(
    captions: Mapping[int, Sequence[list[Word]]], frequent: Mapping[str, Sequence[str]], each: int, seed: int
) -> tuple[list[list[Word]], list[int], list[int]]:
    """`each` polluted captions per picture: words, picture, and the replaced word of each."""
    random = np.random.default_rng(seed)
    texts: list[list[Word]] = []
    owner: list[int] = []
    changed: list[int] = []
    for picture, listed in captions.items():
        true = frozenset(word.text.lower() for words in listed for word in words)
        for place in random.permutation(len(listed))[:each].tolist():
            made = pollute(listed[place], frequent, true, random)
            if made is not None:
                texts.append(made[0])
                owner.append(picture)
                changed.append(made[1])
    return texts, owner, changed


def mentioned(words: Sequence[Word], regions: Regions, things: ObjectLabels, sure: float = SURE) -> tuple[Bools, Bools]:
    """Weak labels: which regions have a name, and which of those names the caption's nouns can mean."""
    nouns = [word.text.lower() for word in words if word.tag.startswith("NN")]
    named = np.array(
        [
            bool(label) and confidence >= sure
            for label, confidence in zip(regions.labels, regions.confidences, strict=True)
        ],
        bool,
    )
    said = {label: any(things.means(noun, label) for noun in nouns) for label in set(regions.labels) if label}
    return named, named & np.array([said.get(label, False) for label in regions.labels], bool)


def lone_tokens(encoder: Encoder, *captions: Captions) -> tuple[Vectors, list[Ints]]:
    """The vector of every token, and each caption's rows in that table, padded."""
    table = token_table(Embedder(encoder), [text.ids for group in captions for text in group.pieces])
    return table.vectors, [np.stack([table.rows(text.ids) for text in group.pieces]) for group in captions]


def tagged(texts: Sequence[str]) -> list[list[Word]]:
    """Words of captions for training, which needs the tags."""
    require_tagger()
    return tag_words(texts)
