"""Retrieval, as NoCaps is used to test how a metric generalises: the caption of a photo, and the photo of a caption."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from caplens.bench.base import RatingSet, Task, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.figures import Figure, ItemFigure, Scored
from caplens.bench.sets.composite import coco_references
from caplens.captions import CaptionSet
from caplens.errors import MissingData
from caplens.metrics.base import Floats

POOL = 300
DEPTHS = (1, 5, 10)


class Retrieval(RatingSet):
    """Every photo of a pool with every caption; recall at 1, 5 and 10, both ways."""

    protocol = (
        f"{POOL} photos with their first caption each, every photo scored with every caption ({POOL * POOL:,} pairs); "
        "R@k: share of queries whose own partner is among the k best, a tie with a wrong partner counting against; "
        "only metrics that look at the picture and need no references"
    )

    def pool(self, data: DataFolders, path: Path, captions: Sequence[tuple[str, str]]) -> Task:
        found = [(picture, caption) for name, caption in captions if (picture := data.picture(name)) is not None]
        found = found[:POOL]
        if len(found) < 2:
            raise MissingData(
                f"{self.title}: the photos named in {path} are not below the data folders. Get them: {self.home}"
            )
        pictures, texts = zip(*found, strict=True)
        size = len(found)
        every_pair = CaptionSet(
            ids=[f"{photo} {text}" for photo in range(size) for text in range(size)],
            candidates=[text for _ in pictures for text in texts],
            images=[picture for picture in pictures for _ in texts],
            source=path.name,
        )
        figures: list[Figure] = []
        for direction in ("image to text", "text to image"):
            for depth in DEPTHS:
                judge = partial(_hits, size=size, direction=direction, depth=depth)
                figures.append(
                    ItemFigure(
                        key=f"{direction}, R@{depth}",
                        headline=depth == 1,
                        units=np.arange(size, dtype=np.int32),
                        judge=judge,
                    )
                )
        return Task([every_pair], size, figures, f"pool:{size}|captions:1|ties:against", sources=(path,))


def _hits(scored: Scored, size: int, direction: str, depth: int) -> Floats:
    table = scored.scores(0).reshape(size, size)
    if direction == "text to image":
        table = table.T
    own = np.diag(table)
    # A query's partner ranks behind every wrong answer that scores at least as high.
    rank = (table >= own[:, None]).sum(axis=1)
    return np.where(np.isnan(own), np.nan, (rank <= depth).astype(np.float64))


@rating_set
class NocapsRetrieval(Retrieval):
    name = "retrieval-nocaps"
    title = "NoCaps retrieval"
    what = "photos of NoCaps' validation set, with objects that COCO does not have, and their captions"
    licence = "CC BY 4.0 (captions); photos of Open Images CC BY 2.0"
    home = "nocaps.org: nocaps_val_4500_captions.json and the photos"
    paper = "Agrawal et al., ICCV 2019; used so by Hu et al., ACL 2023 (InfoMetIC), Table 4"
    files = (("nocaps_val_4500_captions.json",),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        captions = coco_references(path)
        require_rows(len(captions), self.title, path)
        return self.pool(data, path, [(name, texts[0]) for name, texts in captions.items()])


@rating_set
class Flickr8kRetrieval(Retrieval):
    name = "retrieval-flickr8k"
    title = "Flickr8k retrieval"
    what = "test photos of Flickr8k and their captions, the same task on photos at hand"
    licence = "research use, photos under their Flickr licences"
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
                (image["filename"], image["sentences"][0]["raw"])
                for image in content["images"]
                if image["split"] == "test"
            ]
        else:
            captions = [(name, entry["captions"][0]) for name, entry in content.items() if entry["split"] == "test"]
        require_rows(len(captions), self.title, path)
        return self.pool(data, path, captions)
