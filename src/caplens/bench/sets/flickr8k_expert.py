"""Flickr8k-Expert: three experts rate whether a caption describes a photo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from caplens.bench.base import RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_columns, read_json
from caplens.bench.statistics import rating_statistics
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError

Row = tuple[str, str, list[str], float]
"""Image, caption, references, rating."""


@rating_set
class Flickr8kExpert(RatingSet):
    name = "flickr8k-expert"
    title = "Flickr8k-Expert"
    what = "5,664 photo-caption pairs, each rated 1 to 4 by three experts; captions were written for other photos"
    protocol = (
        "pairs whose caption is verbatim one of the photo's references are dropped; the three experts stay three rows "
        "(16,992); all five references; CIDEr's idf over the row-wise reference lists; Kendall τc and τb"
    )
    license = "research use, photos under their Flickr licenses"
    home = (
        "Flickr8k_text.zip of Hodosh et al. (ExpertAnnotations.txt, Flickr8k.token.txt), "
        "or flickr8k.json of CLIPScore's repository"
    )
    paper = "Hodosh, Young and Hockenmaier, JAIR 2013"
    files = (("flickr8k.json", "ExpertAnnotations.txt"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, "flickr8k.json", "ExpertAnnotations.txt")
        rows = list(
            _from_json(path) if path.name.startswith("flickr8k.json") else _from_text(path, captions_file(self, data))
        )
        require_rows(len(rows), self.title, path)
        return rating_task(data, path, rows, "rows:one-per-expert|references:5|dropped:verbatim")


def _from_json(path: Path) -> Iterator[Row]:
    """CLIPScore's file: the pairs are already filtered and the experts already rows."""
    for entry in read_json(path).values():
        references = [" ".join(text.split()) for text in entry["ground_truth"]]
        for judgment in entry["human_judgement"]:
            if not np.isnan(judgment["rating"]):
                caption = " ".join(judgment["caption"].split())
                yield judgment["image_path"], caption, references, float(judgment["rating"])


def _from_text(path: Path, captions: dict[str, str]) -> Iterator[Row]:
    """The original files: ratings by caption number, captions in Flickr8k.token.txt."""
    references = by_image(captions)
    for image, caption_id, *ratings in read_columns(path, 5):
        caption = find_caption(captions, caption_id, path)
        if caption not in references[image]:
            for rating in ratings:
                yield image, caption, references[image], float(rating)


def rating_task(data: DataFolders, path: Path, rows: list[Row], signature: str) -> Task:
    """Rows with one rating each, judged by both τ."""
    images, candidates, references, ratings = (list(column) for column in zip(*rows, strict=True))
    units, count = number_units(Path(image).stem for image in images)
    captions = CaptionSet(
        ids=[str(row) for row in range(len(rows))],
        candidates=candidates,
        references=references,
        images=data.pictures(images),
        source=path.name,
    )
    figures = rating_statistics(("tau-c", "tau-b"), np.arange(len(rows)), np.array(ratings, dtype=np.float64), units)
    return Task([captions], count, figures, signature, sources=(path,), pictures=(images,))


def captions_file(rating_set: RatingSet, data: DataFolders) -> dict[str, str]:
    """Flickr8k.token.txt: caption number ("photo.jpg#2") to text."""
    return token_captions(rating_set.require(data, "Flickr8k.token.txt"))


def token_captions(path: Path) -> dict[str, str]:
    """A caption file of Flickr8k or Flickr30k: "photo.jpg#2", a tab, the text."""
    return {caption_id: " ".join(text.split()) for caption_id, text in read_columns(path, 2)}


def by_image(captions: dict[str, str]) -> dict[str, list[str]]:
    """The captions of each photo, in order of their numbers."""
    by_photo: dict[str, list[str]] = {}
    for caption_id, text in captions.items():
        by_photo.setdefault(caption_id.split("#")[0], []).append(text)
    return by_photo


def find_caption(captions: dict[str, str], caption_id: str, path: Path) -> str:
    """The text behind a caption number of a ratings file."""
    if caption_id not in captions:
        raise InputError(f"caption {caption_id} is not in Flickr8k.token.txt", where=str(path))
    return captions[caption_id]
