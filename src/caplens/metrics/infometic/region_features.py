"""Pictures as the regions in them: boxes from a proposer, a vector for each, computed once per picture and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from caplens.core.captions import Media, media_name
from caplens.core.errors import InputError
from caplens.core.types import Vectors
from caplens.encoders.embedder import Embedder, rows_by_media
from caplens.storage.cache import key_of
from caplens.vision.images import decode_image, read_media
from caplens.vision.regions import CLUSTERS, MOST_BOXES, SAME_BOX, FileProposer, Proposer, Regions, choose_regions

PICTURES_AT_ONCE = 64


@dataclass(frozen=True)
class ImageRegions:
    """A picture: its regions, and the vectors of the whole (first) and of each region."""

    regions: Regions
    vectors: Vectors


@dataclass(frozen=True)
class RegionFeatures:
    """Every picture once; `rows` says which of them each caption is about, -1 where it could not be read."""

    looks: list[ImageRegions]
    rows: list[int]
    failures: dict[int, str] = field(default_factory=dict)


def extract_region_features(embedder: Embedder, media: Sequence[Media | None], proposer: Proposer) -> RegionFeatures:
    """The regions of every picture; what the cache has is not regions for again."""
    looks: list[ImageRegions] = []
    rows = [-1] * len(media)
    failures: dict[int, str] = {}
    embedder.missing(media, "image", failures)
    distinct = rows_by_media(media)
    entries = list(distinct.values())
    for start in range(0, len(entries), PICTURES_AT_ONCE):
        part = _read(embedder, entries[start : start + PICTURES_AT_ONCE], failures)
        known = _known(embedder, [data for data, *_ in part], proposer)
        for done, (data, name, places) in enumerate(part, start=start + 1):
            try:
                looks.append(_look(embedder, data, name, proposer, known))
            except InputError as error:
                embedder.fail(error, places, failures)
                continue
            for place in places:
                rows[place] = len(looks) - 1
            embedder.report("pictures", done, len(entries))
    return RegionFeatures(looks, rows, failures)


def _read(
    embedder: Embedder, entries: Sequence[tuple[Media, list[int]]], failures: dict[int, str]
) -> list[tuple[bytes, str, list[int]]]:
    """Content, name and rows of the pictures that can be read; the others are put down as failures."""
    made = []
    for media, places in entries:
        try:
            made.append((read_media(media, allow_urls=embedder.allow_urls), media_name(media), places))
        except InputError as error:
            embedder.fail(error, places, failures)
    return made


def _known(embedder: Embedder, pictures: Sequence[bytes], proposer: Proposer) -> dict[bytes, Vectors]:
    """What the cache has of some pictures: asked for together, which is several times quicker than one by one."""
    if isinstance(proposer, FileProposer):  # a file of boxes may change under its name, and is quick to read
        return {}
    keys = {_boxes_key(proposer, data): data for data in pictures}
    boxes = embedder.cache.get(keys)
    vectors = [_vectors_key(embedder, _unpack(table), keys[key]) for key, table in boxes.items()]
    return boxes | embedder.cache.get(vectors)


def _look(embedder: Embedder, data: bytes, name: str, proposer: Proposer, known: dict[bytes, Vectors]) -> ImageRegions:
    boxes_key = _boxes_key(proposer, data)
    image = None
    if boxes_key in known:
        regions = _unpack(known[boxes_key])
    else:
        image = decode_image(data, name)
        table = _pack(choose_regions(proposer(image, Path(name).stem)))
        if not isinstance(proposer, FileProposer):
            embedder.cache.put({boxes_key: table})
        regions = _unpack(table)  # as exact as the next time
    key = _vectors_key(embedder, regions, data)
    found = {key: known[key]} if key in known else embedder.cache.get([key])
    if key not in found:
        found = {key: embedder.encoder.encode_regions(image or decode_image(data, name), regions.boxes)}
        embedder.cache.put(found)
    return ImageRegions(regions, found[key])


def _boxes_key(proposer: Proposer, data: bytes) -> bytes:
    return key_of(proposer.identity, f"boxes {MOST_BOXES} {CLUSTERS} {SAME_BOX}", data)


def _vectors_key(embedder: Embedder, regions: Regions, data: bytes) -> bytes:
    encoder = embedder.encoder
    kind = f"regions {hashlib.sha256(regions.boxes.astype(np.float32).tobytes()).hexdigest()}"
    return key_of(encoder.fingerprint, kind, data)


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
