"""Pictures as the regions in them: boxes from a proposer, a vector for each, computed once per picture and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from caplens.core.captions import Media
from caplens.core.errors import CaplensError, InputError
from caplens.core.types import Floats, Vectors, unit
from caplens.encoders.embedder import Embedder, rows_by_media
from caplens.storage.cache import key_of_digest
from caplens.text.coco_objects import coco_objects
from caplens.vision.images import first_line
from caplens.vision.pictures import Picture
from caplens.vision.regions import CLUSTERS, MOST_BOXES, SAME_BOX, FileProposer, Proposer, Regions, choose_regions


@dataclass(frozen=True)
class ImageRegions:
    """A picture: its regions, and the vectors of the whole (first) and of each region."""

    regions: Regions
    vectors: Vectors


@dataclass(frozen=True)
class RegionFeatures:
    """Every picture once; `rows` says which of them each caption is about, -1 where it could not be read."""

    images: list[ImageRegions]
    rows: list[int]
    failures: dict[int, str] = field(default_factory=dict)


class NameCheck:
    """Takes a detector's name off a region where the encoder sees something else there and in the whole picture.

    A small detector calls a treat a pizza. A name stays where it is among the likeliest of COCO's for the region or
    for the picture; scores do not depend on names. Names that the user gave are `trusted`.
    """

    LIKELIEST = 3

    def __init__(self, embedder: Embedder, *, trusted: bool = False) -> None:
        self._embedder, self._trusted = embedder, trusted
        self._checked: dict[int, Regions] = {}
        self._vectors: dict[str, Floats] = {}

    def __call__(self, number: int, image: ImageRegions) -> Regions:
        """The regions of picture `number`, with the names that were confirmed."""
        if number not in self._checked:
            self._checked[number] = self._check(image)
        return self._checked[number]

    def _check(self, image: ImageRegions) -> Regions:
        regions = image.regions
        if self._trusted or not any(regions.labels):
            return regions
        names = list(dict.fromkeys([*coco_objects().name_of.values(), *filter(None, regions.labels)]))
        self._encode([name for name in names if name not in self._vectors])
        cosines = unit(image.vectors) @ np.stack([self._vectors[name] for name in names]).T
        ranks = (-cosines).argsort(axis=1, kind="stable").argsort(axis=1)
        labels = [
            label if label and min(ranks[[0, 1 + row], names.index(label)]) < self.LIKELIEST else ""
            for row, label in enumerate(regions.labels)
        ]
        return replace(regions, labels=tuple(labels))

    def _encode(self, names: Sequence[str]) -> None:
        if names:
            vectors = unit(self._embedder.texts([f"a {name}" for name in names]))
            self._vectors.update(zip(names, vectors, strict=True))


def extract_region_features(embedder: Embedder, media: Sequence[Media | None], proposer: Proposer) -> RegionFeatures:
    """The regions of every picture; what the cache has is not worked out again."""
    images: list[ImageRegions] = []
    rows = [-1] * len(media)
    failures: dict[int, str] = {}
    done, total = 0, len(rows_by_media(media))
    identity = proposer.identity  # of a detector that is a folder, this is a digest of the folder
    for portion in embedder.read_pictures(media, failures):
        pictures = [picture for _, picture in portion]
        known = _known_regions(embedder, pictures, proposer, identity)
        keys = (
            _vectors_key(embedder, regions, picture)
            for regions, picture in zip(known, pictures, strict=True)
            if regions is not None
        )
        vectors = embedder.cache.get(keys)
        new: dict[bytes, Vectors] = {}
        try:
            for (shown_in, picture), regions in zip(portion, known, strict=True):
                done += 1
                try:
                    images.append(_image_regions(embedder, picture, proposer, identity, regions, vectors, new))
                except InputError as error:
                    embedder.fail(error, shown_in, failures)
                    continue
                for row in shown_in:
                    rows[row] = len(images) - 1
                embedder.report("pictures", done, total)
        finally:  # who interrupts a long run finds its work again
            embedder.cache.put(new)
    return RegionFeatures(images, rows, failures)


def _known_regions(
    embedder: Embedder, pictures: Sequence[Picture], proposer: Proposer, identity: str
) -> Sequence[Regions | None]:
    """The regions of some pictures as far as they are known, asked for together: one by one takes much longer."""
    if isinstance(proposer, FileProposer):  # it may change under its name, so the cache has nothing of it
        return [_from_file(proposer, picture) for picture in pictures]
    keys = [_boxes_key(identity, picture) for picture in pictures]
    tables = embedder.cache.get(keys)
    return [_unpack(tables[key]) if key in tables else None for key in keys]


def _from_file(proposer: FileProposer, picture: Picture) -> Regions | None:
    try:
        return _unpack(_pack(choose_regions(proposer.boxes_of(Path(picture.name).stem))))
    except InputError:  # said again when the picture's turn has come
        return None


def _image_regions(
    embedder: Embedder,
    picture: Picture,
    proposer: Proposer,
    identity: str,
    regions: Regions | None,
    vectors: dict[bytes, Vectors],
    new: dict[bytes, Vectors],
) -> ImageRegions:
    """A picture's regions and their vectors; what was not known is put into `new`, for the cache."""
    try:
        image = None
        if regions is None:
            image = picture.image()
            table = _pack(choose_regions(proposer(image, Path(picture.name).stem)))
            new[_boxes_key(identity, picture)] = table
            regions = _unpack(table)  # as exact as the next time
        key = _vectors_key(embedder, regions, picture)
        if key not in vectors:
            image = picture.image() if image is None else image
            vectors[key] = new[key] = embedder.encoder.encode_regions(image, regions.boxes)
    except CaplensError:
        raise
    except Exception as error:  # whatever it is, it costs this picture only
        raise InputError(f"its regions cannot be looked at ({first_line(error)})", where=picture.name) from None
    return ImageRegions(regions, vectors[key])


def _boxes_key(identity: str, picture: Picture) -> bytes:
    return key_of_digest(identity, f"boxes {MOST_BOXES} {CLUSTERS} {SAME_BOX}", picture.digest)


def _vectors_key(embedder: Embedder, regions: Regions, picture: Picture) -> bytes:
    encoder = embedder.encoder
    kind = f"regions {hashlib.sha256(regions.boxes.astype(np.float32).tobytes()).hexdigest()}"
    return key_of_digest(encoder.fingerprint, kind, picture.digest)


def _pack(regions: Regions) -> Vectors:
    """A row per region: box, confidence, and the letters of its label as numbers."""
    longest = max((len(label) for label in regions.labels), default=0)
    letters = [[ord(letter) for letter in label.ljust(longest, "\0")] for label in regions.labels]
    table = [regions.boxes, regions.confidences[:, None], np.array(letters, np.float64).reshape(len(regions), longest)]
    return np.concatenate(table, axis=1).astype(np.float32)


def _unpack(table: Vectors) -> Regions:
    labels = ["".join(chr(int(letter)) for letter in row if letter) for row in table[:, 5:]]
    wide = table.astype(np.float64)
    return Regions(wide[:, :4], wide[:, 4], tuple(labels))
