"""What metrics of hallucination share: what is in a picture, from outlines that people drew or from a detector."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from pathlib import PurePath

from caplens.core.captions import CaptionSet, media_name
from caplens.core.errors import InputError, MissingData
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics.base import Metric, Resources
from caplens.readers.instances import read_instances
from caplens.storage import weights
from caplens.storage.digests import content_digest

DETECTOR = "efficientdet-lite0"
SURE = 0.3
"""Confidence from which a detection counts; a thing that is missed makes a right word look wrong."""


@dataclass(frozen=True)
class SeenObjects:
    """The names of what is in the picture of every caption; why a picture could not be looked at."""

    names: list[frozenset[str]]
    failures: dict[int, str] = field(default_factory=dict)


class ObjectMetric(Metric):
    """A metric that asks whether what a caption names is in the picture.

    Args:
        annotations: COCO's instance annotations (`instances_val2014.json`), whose objects count as well.
        detector: whether what the object detector finds in the picture counts as well.
    """

    needs = frozenset()
    optional_inputs = frozenset({"references", "image"})
    english_only = True

    def __init__(self, *, annotations: str | os.PathLike[str] | None = None, detector: bool = False) -> None:
        self.annotations = None if annotations is None else options.path("annotations", annotations, "file")
        self.detector = options.flag("detector", detector)

    @classmethod
    def takes(cls, captions: CaptionSet) -> bool:
        return captions.references is not None

    def check(self, captions: CaptionSet) -> None:
        if captions.references is None and self.annotations is None and not self.detector:
            raise MissingData(
                f"{self.name} must know what is in the picture: give references, annotations=FILE (COCO's instances), "
                "or detector=true with pictures"
            )

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        parts = []
        if self.annotations is not None:
            parts.append(("annotations", content_digest(self.annotations)[:12]))
        if self.detector:
            parts.append(("detector", f"{DETECTOR}-{SURE:g}"))
        return tuple(parts)

    def resources(self) -> Resources:
        outlines = {} if self.annotations is None else {"annotations": content_digest(self.annotations)}
        return {**outlines, **({"detector": weights.model_digest(DETECTOR)} if self.detector else {})}

    def seen(self, work: Workspace) -> SeenObjects:
        """Return what is in the picture of every caption, whatever its references say."""
        return _seen_objects(work, self.annotations, self.detector)


def _seen_objects(work: Workspace, annotations: str | os.PathLike[str] | None, detector: bool) -> SeenObjects:
    """Return what annotations and the detector say; nothing without either."""
    captions = work.captions
    seen = SeenObjects([frozenset()] * len(captions))
    if annotations is not None:
        things = _instances(os.fspath(annotations), content_digest(annotations))
        for row in range(len(captions)):
            seen.names[row] = _annotated(captions, row, things, annotations)
    if detector:
        found = work.get_or_compute(("detected objects", weights.model_digest(DETECTOR)), lambda: _detected(work))
        seen.failures.update(found.failures)
        for row, names in enumerate(found.names):
            seen.names[row] |= names
    return seen


@functools.lru_cache(maxsize=1)
def _instances(path: str, _: str) -> dict[str, frozenset[str]]:
    """A file of annotations, which may be large, read again when its content has changed."""
    return read_instances(path)


def _annotated(
    captions: CaptionSet, row: int, things: dict[str, frozenset[str]], path: str | os.PathLike[str]
) -> frozenset[str]:
    keys = [captions.groups[row] if captions.groups is not None else captions.ids[row]]
    media = captions.images[row] if captions.images is not None else None
    if media is not None:
        keys.append(PurePath(media_name(media)).stem)
    for key in keys:
        if key in things:
            return things[key]
        if PurePath(key).stem in things:
            return things[PurePath(key).stem]
    raise InputError(
        f"no picture of the annotations {os.fspath(path)} is called {' or '.join(map(repr, keys))}",
        where=captions.where(row),
        remedy="name captions by COCO's image ids",
    )


def _detected(work: Workspace) -> SeenObjects:
    from caplens.vision.pictures import pictures_of
    from caplens.vision.regions import DetectorProposer

    images = work.captions.images
    if images is None:
        raise MissingData("the detector looks at pictures and none were given: pass images= or --images DIR")
    seen = SeenObjects([])
    reader, proposer = pictures_of(work), DetectorProposer()
    known: dict[bytes, frozenset[str]] = {}
    for row, media in enumerate(images):
        names: frozenset[str] = frozenset()
        try:
            if media is None:
                raise InputError("has no picture", where=work.captions.where(row))
            picture = reader.read(media)
            if picture.digest not in known:
                regions = proposer(picture.image(), PurePath(picture.name).stem)
                sure = zip(regions.labels, regions.confidences, strict=True)
                known[picture.digest] = frozenset(label for label, score in sure if label and score >= SURE)
            names = known[picture.digest]
        except InputError as error:
            if work.strict:
                raise
            seen.failures[row] = str(error)
        seen.names.append(names)
        work.progress("finding objects", row + 1, len(images))
    return seen
