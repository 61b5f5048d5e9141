"""Flickr8k-CF: crowd workers say yes or no to whether a caption describes a photo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from caplens.bench.base import RatingSet, Task, rating_set, require_rows
from caplens.bench.data import DataFolders, read_columns, read_json
from caplens.bench.sets.flickr8k_expert import Row, by_image, captions_file, find_caption, rating_task


@rating_set
class Flickr8kCF(RatingSet):
    name = "flickr8k-cf"
    title = "Flickr8k-CF"
    what = "47,830 photo-caption pairs, each with at least three yes-or-no judgments; the rating is the share of yes"
    protocol = (
        "all rows; a candidate that is one of its photo's references is removed from that list, and the shortened list "
        "is shared by all rows of the photo; Kendall τb and τc"
    )
    license = "research use, photos under their Flickr licenses"
    home = (
        "Flickr8k_text.zip of Hodosh et al. (CrowdFlowerAnnotations.txt, Flickr8k.token.txt), "
        "or crowdflower_flickr8k.json of CLIPScore's repository"
    )
    paper = "Hodosh, Young and Hockenmaier, JAIR 2013"
    files = (("crowdflower_flickr8k.json", "CrowdFlowerAnnotations.txt"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, "crowdflower_flickr8k.json", "CrowdFlowerAnnotations.txt")
        json_form = path.name.startswith("crowdflower_flickr8k.json")
        rows = list(_from_json(path) if json_form else _from_text(path, captions_file(self, data)))
        require_rows(len(rows), self.title, path)
        task = rating_task(data, path, _without_candidates(rows), "references:shared-without-candidates")
        figures = [replace(figure, headline=figure.key == "tau-b") for figure in reversed(task.figures)]
        return replace(task, figures=figures)


def _from_json(path: Path) -> Iterator[Row]:
    for entry in read_json(path).values():
        references = [" ".join(text.split()) for text in entry["ground_truth"]]
        for judgment in entry["human_judgement"]:
            caption = " ".join(judgment["caption"].split())
            yield judgment["image_path"], caption, references, float(judgment["rating"])


def _from_text(path: Path, captions: dict[str, str]) -> Iterator[Row]:
    references = by_image(captions)
    for image, caption_id, _, yes, no in read_columns(path, 5):
        rating = int(yes) / (int(yes) + int(no))
        yield image, find_caption(captions, caption_id, path), references[image], rating


def _without_candidates(rows: list[Row]) -> list[Row]:
    shortened: dict[str, list[str]] = {image: list(references) for image, _, references, _ in rows}
    for image, caption, _, _ in rows:
        if caption in shortened[image]:
            shortened[image].remove(caption)
    return [(image, caption, shortened[image], rating) for image, caption, _, rating in rows]
