"""Composite: how correct three captions of a photo are, one by a person and two by systems."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from caplens.bench.base import RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, open_text, read_json
from caplens.bench.sets.flickr8k_expert import by_image, captions_file, token_captions
from caplens.bench.statistics import RatingStatistic, rating_statistics
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError

CSV_FILES = {"flickr8k": "8k_correctness.csv", "flickr30k": "30k_correctness.csv", "coco": "coco_correctness.csv"}


@dataclass(frozen=True)
class Rated:
    """One rated caption."""

    dataset: str
    image: str
    caption: str
    rating: float
    references: list[str]


@rating_set
class Composite(RatingSet):
    name = "composite"
    title = "Composite"
    what = "11,985 captions of 3,995 photos of COCO, Flickr8k and Flickr30k, correctness rated 1 to 5 by crowd workers"
    protocol = (
        "the three sets pooled; the human candidate's own reference is removed for all three captions of the photo; "
        "Kendall τc and τb, Pearson and Spearman"
    )
    license = "research use; ratings by Aditya et al., photos and captions under the licenses of the three sets"
    home = (
        "AMT_eval of Aditya et al. (8k_correctness.csv, 30k_correctness.csv, coco_correctness.csv) with the three "
        "sets' own captions, or a composite.json as FLEUR uses it with references added"
    )
    paper = "Aditya et al., CVIU 2018"
    files = (("composite.json", "8k_correctness.csv"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, "composite.json", "8k_correctness.csv")
        if path.name.startswith("composite.json"):
            rows = list(_from_json(path))
        else:
            rows = _without_human_candidate([row for dataset in CSV_FILES for row in self._from_csv(data, dataset)])
        require_rows(len(rows), self.title, path)
        units, count = number_units((row.dataset, row.image) for row in rows)
        images = [row.image for row in rows]
        captions = CaptionSet(
            ids=[str(number) for number in range(len(rows))],
            candidates=[row.caption for row in rows],
            references=[row.references for row in rows],
            images=data.pictures(images),
            source=path.name,
        )
        ratings = np.array([row.rating for row in rows])
        figures = rating_statistics(("tau-c", "tau-b", "pearson", "spearman"), np.arange(len(rows)), ratings, units)
        for dataset in CSV_FILES:
            inside = np.flatnonzero([row.dataset == dataset for row in rows])
            if len(inside):
                figures.append(
                    RatingStatistic(
                        key=f"tau-c {dataset}", kind="tau-c", rows=inside, ratings=ratings[inside], units=units[inside]
                    )
                )
        signature = "references:without-human-candidate|pooled:3"
        return Task([captions], count, figures, signature, sources=(path,), pictures=(images,))

    def _from_csv(self, data: DataFolders, dataset: str) -> Iterator[Rated]:
        """The workers' answers as distributed; each line holds three captions of a photo and their ratings."""
        path = self.require(data, CSV_FILES[dataset])
        references = self._references(data, dataset)
        with open_text(path) as handle:
            for number, line in enumerate(csv.DictReader(handle, delimiter=";"), start=2):
                if not line.get("Input.image_url") or not line.get("Answer.Q1Answer"):
                    continue  # the files end with two lines of totals
                image = PurePosixPath(str(line["Input.image_url"])).name
                if image not in references:
                    raise InputError(f"no references for {image}", where=f"{path}, row {number}")
                for place in (1, 2, 3):
                    caption, rating = line[f"Input.text{place}"], line[f"Answer.Q{place}Answer"]
                    yield Rated(dataset, image, str(caption), float(str(rating)), references[image])

    def _references(self, data: DataFolders, dataset: str) -> dict[str, list[str]]:
        if dataset == "flickr8k":
            return by_image(captions_file(self, data))
        if dataset == "flickr30k":
            return by_image(token_captions(self.require(data, "results_20130124.token")))
        return coco_references(self.require(data, "captions_val2014.json"))


def coco_references(path: Path) -> dict[str, list[str]]:
    """File name to captions, from COCO's own annotation file."""
    annotations: dict[str, Any] = read_json(path)
    names = {image["id"]: image["file_name"] for image in annotations["images"]}
    references: dict[str, list[str]] = {}
    for annotation in annotations["annotations"]:
        references.setdefault(names[annotation["image_id"]], []).append(" ".join(annotation["caption"].split()))
    return references


def _from_json(path: Path) -> Iterator[Rated]:
    """Rows with dataset, image, caption, human, references; as one list, or as FLEUR has it one list per dataset.

    `human_candidate_ref` numbers the reference that is the human candidate itself; where it is not given, the
    references are taken as they are.
    """
    content = read_json(path)
    entries = (
        content
        if isinstance(content, list)
        else [{"dataset": dataset, **entry} for dataset, rows in content.items() for entry in rows]
    )
    for number, entry in enumerate(entries, start=1):
        if "references" not in entry:
            raise InputError(
                "no references", where=f"{path}, row {number}", remedy="add a 'references' list to each row"
            )
        image, references = PurePosixPath(entry["image"]).name, list(entry["references"])
        if "human_candidate_ref" in entry and len(references) > 1:
            del references[entry["human_candidate_ref"]]
        yield Rated(entry["dataset"], image, entry["caption"], float(entry["human"]), references)


def _without_human_candidate(rows: list[Rated]) -> list[Rated]:
    """A person's caption was one of the photo's references: it is dropped there for all captions of the photo."""
    own: dict[tuple[str, str], str] = {}
    for row in rows:
        written = {_plain(text): text for text in row.references}
        if _plain(row.caption) in written:
            own.setdefault((row.dataset, row.image), written[_plain(row.caption)])
    kept = []
    for row in rows:
        references = list(row.references)
        if len(references) > 1 and own.get((row.dataset, row.image)) in references:
            references.remove(own[row.dataset, row.image])
        kept.append(replace(row, references=references))
    return kept


def _plain(text: str) -> str:
    """Letters and digits only: the candidates were lower-cased and lost their final stop on the way."""
    return "".join(char for char in text.lower() if char.isalnum())
