"""CapTokenEval: which words of a caption are wrong, and which regions of the photo it mentions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from caplens.bench.base import RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.statistics import AgreementStatistic, ItemStatistic, Scored
from caplens.core.captions import CaptionSet
from caplens.core.details import PARTLY, AnyDetails
from caplens.core.details import RIGHT as FULLY_RIGHT
from caplens.core.errors import InputError
from caplens.core.types import Floats

SAME_REGION = 0.5
"""Overlap (intersection over union) from which a region of the metric stands for an annotated one."""
RIGHT = FULLY_RIGHT | PARTLY
WRONG = frozenset({"wrong"})


@rating_set
class CapTokenEval(RatingSet):
    name = "captokeneval"
    title = "CapTokenEval"
    what = "700 captions of THumB with imperfect precision; annotators marked wrong words and mentioned regions"
    protocol = (
        "only metrics that explain; words: share of annotated semantic words whose verdict (right or wrong) agrees; "
        f"regions: share of annotated boxes whose best-overlapping region (IoU ≥ {SAME_REGION}) is called mentioned or "
        "not as the annotators did, a box without such a region counts as not mentioned"
    )
    license = "not stated by the authors"
    home = (
        "announced at github.com/HAWLYQ/InfoMetIC; the released layout is not public, so caplens reads "
        "captokeneval.json: a list of {image, caption, words: [{word, correct}], "
        "regions: [{box: [left, top, right, bottom], mentioned}]}, corners as shares of width and height"
    )
    paper = "Hu et al., ACL 2023 (InfoMetIC)"
    files = (("captokeneval.json",),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        rows = read_json(path)
        require_rows(len(rows), self.title, path)
        for number, row in enumerate(rows, start=1):
            for key in ("image", "caption", "words", "regions"):
                if key not in row:
                    raise InputError(f"no {key!r}", where=f"{path}, row {number}")
        images = [row["image"] for row in rows]
        units, count = number_units(images)
        captions = CaptionSet(
            ids=[str(number) for number in range(len(rows))],
            candidates=[row["caption"] for row in rows],
            images=data.pictures(images),
            source=path.name,
        )
        figures: list[AgreementStatistic] = []
        judges: tuple[tuple[str, Callable[[dict[str, Any], AnyDetails], list[float]]], ...] = (
            ("words", _words_right),
            ("regions", _regions_right),
        )
        for key, verdicts in judges:
            per_row = np.array([len(row[key]) for row in rows])
            figures.append(
                ItemStatistic(
                    key=f"{key[:-1]} accuracy",
                    headline=True,
                    units=np.repeat(units, per_row),
                    judge=_Judge(rows, key, verdicts),
                )
            )
        return Task([captions], count, figures, f"regions:iou-{SAME_REGION}", details=True, sources=(path,))


class _Judge:
    """Compares a metric's details with the annotation, row by row."""

    def __init__(
        self,
        rows: Sequence[dict[str, Any]],
        key: str,
        verdicts: Callable[[dict[str, Any], AnyDetails], list[float]],
    ) -> None:
        self.rows, self.key, self.verdicts = rows, key, verdicts

    def __call__(self, scored: Scored) -> Floats:
        details = scored.trials[0].details
        if details is None or not any(self.key in detail for detail in details):
            return np.full(sum(len(row[self.key]) for row in self.rows), np.nan)
        return np.array(
            [value for row, detail in zip(self.rows, details, strict=True) for value in self.verdicts(row, detail)]
        )


def _words_right(row: dict[str, Any], detail: AnyDetails) -> list[float]:
    """1 per annotated word whose verdict agrees, NaN for a word that the metric does not judge."""
    judged: dict[str, deque[bool]] = {}
    for word in detail.get("words", []):
        if word.get("status") in RIGHT | WRONG:
            judged.setdefault(word["text"].lower(), deque()).append(word["status"] in RIGHT)
    values = []
    for word in row["words"]:
        verdicts = judged.get(word["word"].lower())
        values.append(float(verdicts.popleft() == word["correct"]) if verdicts else float("nan"))
    return values


def _regions_right(row: dict[str, Any], detail: AnyDetails) -> list[float]:
    regions = detail.get("regions", [])
    values = []
    for annotated in row["regions"]:
        best = max(regions, key=lambda region: overlap(region["box"], annotated["box"]), default=None)
        near = best is not None and overlap(best["box"], annotated["box"]) >= SAME_REGION
        mentioned = best is not None and near and best.get("status") in RIGHT
        values.append(float(mentioned == annotated["mentioned"]))
    return values


def overlap(first: Sequence[float], second: Sequence[float]) -> float:
    """Intersection over union of two boxes (x1, y1, x2, y2).

    >>> overlap([0, 0, 2, 2], [1, 0, 3, 2])
    0.3333333333333333
    """
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return width * height / (sum(areas) - width * height)
