"""Retrieval, as NoCaps is used to test how a metric generalizes: the caption of a photo, and the photo of a caption."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from caplens.bench.base import RatingSet, Task, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.sets.composite import coco_references
from caplens.bench.statistics import AgreementStatistic, ItemStatistic, Scored
from caplens.core.captions import CaptionSet
from caplens.core.errors import MissingData
from caplens.core.types import Floats
from caplens.evaluation.resampling import Ints

POOL = 300
DEPTHS = (1, 5, 10)
PAIRS_PER_TRIAL = 100_000
"""Pairs that a metric is given at once: five million would not fit into memory."""


class Retrieval(RatingSet):
    """Every photo of a pool with every caption; recall at 1, 5 and 10, both ways."""

    most_photos: ClassVar[int | None] = POOL
    captions_each: ClassVar[int | None] = 1
    protocol = (
        f"{POOL} photos with their first caption each, every photo scored with every caption ({POOL * POOL:,} pairs); "
        "R@k: share of queries whose own partner is among the k best, a tie with a wrong partner counting against; "
        "only metrics that look at the picture and need no references"
    )

    def pool(self, data: DataFolders, path: Path, captions: Sequence[tuple[str, Sequence[str]]]) -> Task:
        """Every photo that is here, up to the size of the pool, with every caption of all of them."""
        there = ((data.picture(name), listed[: self.captions_each]) for name, listed in captions)
        photos = [(picture, listed) for picture, listed in there if picture is not None][: self.most_photos]
        if len(photos) < 2:
            raise MissingData(
                f"{self.title}: the photos named in {path} are not below the data folders. Get them: {self.home}"
            )
        pictures = [picture for picture, _ in photos]
        texts = [text for _, listed in photos for text in listed]
        owner = np.repeat(np.arange(len(photos), dtype=np.int32), [len(listed) for _, listed in photos])
        together = max(1, PAIRS_PER_TRIAL // len(texts))
        trials = [
            CaptionSet(
                ids=[f"{photo} {text}" for photo in range(start, end) for text in range(len(texts))],
                candidates=texts * (end - start),
                images=[picture for picture in pictures[start:end] for _ in texts],
                source=path.name,
            )
            for start in range(0, len(photos), together)
            for end in [min(start + together, len(photos))]
        ]
        figures: list[AgreementStatistic] = []
        for direction, units in (("image to text", np.arange(len(photos), dtype=np.int32)), ("text to image", owner)):
            for depth in DEPTHS:
                judge = partial(_hits, owner=owner, direction=direction, depth=depth)
                figures.append(
                    ItemStatistic(key=f"{direction}, R@{depth}", headline=depth == 1, units=units, judge=judge)
                )
        most = max(len(listed) for _, listed in photos)
        signature = f"pool:{len(photos)}|captions:{most}|ties:against"
        return Task(trials, len(photos), figures, signature, sources=(path,))


def _hits(scored: Scored, owner: Ints, direction: str, depth: int) -> Floats:
    """1 for every query whose partner ranks within the depth, behind every wrong answer that scores as high."""
    table = np.concatenate([scored.scores(trial) for trial in range(len(scored.trials))]).reshape(-1, len(owner))
    own = np.where(owner == np.arange(len(table))[:, None], table, -np.inf)
    best = own.max(axis=1, keepdims=True) if direction == "image to text" else own.max(axis=0, keepdims=True)
    ahead = ((table >= best) & (own == -np.inf)).sum(axis=1 if direction == "image to text" else 0)
    return np.where(np.isnan(best.ravel()), np.nan, (ahead < depth).astype(np.float64))


@rating_set
class NocapsRetrieval(Retrieval):
    name = "retrieval-nocaps"
    title = "NoCaps retrieval"
    what = "photos of NoCaps' validation set, with objects that COCO does not have, and their captions"
    license = "CC BY 4.0 (captions); photos of Open Images CC BY 2.0"
    home = "nocaps.org: nocaps_val_4500_captions.json and the photos"
    paper = "Agrawal et al., ICCV 2019; used so by Hu et al., ACL 2023 (InfoMetIC), Table 4"
    files = (("nocaps_val_4500_captions.json",),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        captions = coco_references(path)
        require_rows(len(captions), self.title, path)
        return self.pool(data, path, [(name, texts) for name, texts in captions.items()])


@rating_set
class Flickr8kRetrieval(Retrieval):
    name = "retrieval-flickr8k"
    title = "Flickr8k retrieval"
    what = "test photos of Flickr8k and their captions, the same task on photos at hand"
    license = "research use, photos under their Flickr licenses"
    home = (
        "Flickr8k of Hodosh et al.: Flickr8k_Dataset.zip and dataset_flickr8k.json (Karpathy) or flickr8k_captions.json"
    )
    paper = "Hodosh, Young and Hockenmaier, JAIR 2013"
    files = (("dataset_flickr8k.json", "flickr8k_captions.json"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        content = read_json(path)
        if "images" in content:
            captions = [
                (image["filename"], [sentence["raw"] for sentence in image["sentences"]])
                for image in content["images"]
                if image["split"] == "test"
            ]
        else:
            captions = [(name, entry["captions"]) for name, entry in content.items() if entry["split"] == "test"]
        require_rows(len(captions), self.title, path)
        return self.pool(data, path, captions)


@rating_set
class WholeFlickr8kRetrieval(Flickr8kRetrieval):
    name = "retrieval-flickr8k-whole"
    title = "Flickr8k retrieval, whole test split"
    what = "all 1,000 test photos of Flickr8k and all their captions, as papers on joint spaces report it"
    protocol = (
        "every photo scored with each of the 5,000 captions (5 million pairs: hours for a slow metric, so it runs only "
        "when named); R@k: share of captions whose photo, and of photos one of whose captions, is among "
        "the k best, a tie with a wrong partner counting against"
    )
    only_when_named = True
    most_photos = None
    captions_each = None
