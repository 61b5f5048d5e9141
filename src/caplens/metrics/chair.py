"""CHAIR: does the caption name objects that are not in the picture?

A. Rohrbach, L. A. Hendricks, K. Burns, T. Darrell, K. Saenko. Object hallucination in image captioning. EMNLP 2018.
"""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import numpy as np

from caplens.core.details import AnyDetails, Details, Word
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._seen_objects import ObjectMetric
from caplens.metrics.base import Resources, Statistics, reference_counts, register
from caplens.readers.source import Source
from caplens.storage.digests import content_digest
from caplens.text.coco_objects import CocoObjects, Mention, coco_objects
from caplens.text.words import split_words


class Chair(ObjectMetric):
    """What both scores are made of: the COCO objects of a caption, and which of them nothing vouches for.

    Args:
        synonyms: a file with an object a line, its name first and then its synonyms, such as the authors' own
            `synonyms.txt`; by default caplens's table.
    """

    paper = "Rohrbach et al. 2018, EMNLP"
    higher_is_better = False

    def __init__(self, *, synonyms: str | os.PathLike[str] | None = None, **seen: Any) -> None:
        super().__init__(**seen)
        self.synonyms = None if synonyms is None else options.path("synonyms", synonyms, "file of synonyms")

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        table = "caplens" if self.synonyms is None else content_digest(self.synonyms)[:12]
        return (("synonyms", table), *super().signature_parts())

    def resources(self) -> Resources:
        words = coco_objects().digest if self.synonyms is None else content_digest(self.synonyms)
        return {"synonyms": words, **super().resources()}

    def statistics(self, work: Workspace) -> Statistics:
        """Count per caption the objects that are not there, all objects, and 1 where one of them is not there."""
        captions = work.captions
        references = captions.references or [[]] * len(captions)
        table = coco_objects() if self.synonyms is None else _read_synonyms(self.synonyms)
        named = functools.cache(lambda text: frozenset(name for *_, name in table.mentions(split_words(text))))
        seen = self.seen(work)
        rows, details = np.zeros((len(captions), 3)), list[AnyDetails]()
        for row, (candidate, texts) in enumerate(zip(captions.candidates, references, strict=True)):
            there = {table.name_of.get(name, name) for name in seen.names[row]}.union(*map(named, texts))
            judged = _judge(candidate, table, there)
            rows[row] = judged.hallucinated, judged.objects, judged.hallucinated > 0
            details.append(judged.details)
        rows[list(seen.failures)] = np.nan
        facts = {"references": reference_counts(references)}
        return Statistics(rows, details=details, failures=seen.failures, facts=facts)


@register
class ChairI(Chair):
    """The share of the objects that captions name which are not in the picture (CHAIR_i); lower is better."""

    name = "chair-i"
    summary = "share of named COCO objects that are not there; lower is better"

    def scores(self, rows: Floats) -> Floats:
        return _ratio(rows[:, 0], rows[:, 1])

    def corpus(self, sums: Floats, count: int) -> Floats:
        return _ratio(sums[..., 0], sums[..., 1])


@register
class ChairS(Chair):
    """The share of captions that name an object which is not in the picture (CHAIR_s); lower is better."""

    name = "chair-s"
    summary = "share of captions with a COCO object that is not there; lower is better"

    def scores(self, rows: Floats) -> Floats:
        return rows[:, 2]

    def corpus(self, sums: Floats, count: int) -> Floats:
        return sums[..., 2] / count


class _Judged(NamedTuple):
    hallucinated: int
    objects: int
    details: Details


def _judge(candidate: str, table: CocoObjects, there: set[str]) -> _Judged:
    words: list[Word] = [{"text": word} for word in split_words(candidate)]
    mentions: list[Mention] = table.mentions([word["text"] for word in words])
    hallucinated = 0
    for start, stop, name in mentions:
        hallucinated += name not in there
        for word in words[start:stop]:
            word["status"] = "right" if name in there else "wrong"
            word["note"] = name if name in there else f"{name}: nothing says that there is one"
    return _Judged(hallucinated, len(mentions), {"words": words})


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Where no object is named, none is wrong."""
    return np.asarray(np.divide(part, whole, out=np.zeros_like(part * 1.0), where=whole != 0), dtype=np.float64)


def _read_synonyms(path: str | os.PathLike[str]) -> CocoObjects:
    with Source(path) as source:
        return CocoObjects.parse(source.text(), source.name)
