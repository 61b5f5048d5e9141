"""THumB 1.0: precision and recall of captions of COCO photos, rated by trained annotators."""

from __future__ import annotations

import numpy as np

from caplens.bench.base import RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json_lines
from caplens.bench.statistics import AgreementStatistic, RatingStatistic
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError

RATINGS = {"precision": "P", "recall": "R", "total": "human_score"}


@rating_set
class Thumb(RatingSet):
    name = "thumb"
    title = "THumB 1.0"
    what = "2,500 captions of 500 COCO photos, four systems and a person, precision and recall 1 to 5 and a total"
    protocol = (
        "four references; Pearson with precision, recall and total, without the human captions (2,000) and with them"
    )
    license = "MIT (ratings); captions and photos as COCO"
    home = "github.com/jungokasai/THumB: mscoco_THumB-1.0.jsonl, mscoco_references.json"
    paper = "Kasai et al., NAACL 2022"
    files = (("mscoco_THumB-1.0.jsonl",), ("mscoco_references.json",))

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, "mscoco_THumB-1.0.jsonl")
        rows = list(read_json_lines(path))
        require_rows(len(rows), self.title, path)
        references_path = self.require(data, "mscoco_references.json")
        references = {str(entry["seg_id"]): entry["refs"] for entry in read_json_lines(references_path)}
        for number, row in enumerate(rows, start=1):
            if str(row["seg_id"]) not in references:
                raise InputError(f"no references for photo {row['seg_id']}", where=f"{path}, row {number}")
        units, count = number_units(row["seg_id"] for row in rows)
        images = [row["image"] for row in rows]
        captions = CaptionSet(
            ids=[str(number) for number in range(len(rows))],
            candidates=[row["hyp"] for row in rows],
            references=[references[str(row["seg_id"])] for row in rows],
            images=data.pictures(images),
            source=path.name,
        )
        human = np.array([row["SYS"].lower() in ("human", "humans") for row in rows])
        figures: list[AgreementStatistic] = []
        for scope, inside in (("without human", np.flatnonzero(~human)), ("with human", np.arange(len(rows)))):
            for label, key in RATINGS.items():
                ratings = np.array([float(row[key]) for row in rows])[inside]
                figures.append(
                    RatingStatistic(
                        key=f"pearson {label}, {scope}",
                        kind="pearson",
                        headline=label == "total",
                        rows=inside,
                        ratings=ratings,
                        units=units[inside],
                        scale=1.0,
                    )
                )
        return Task([captions], count, figures, "references:4", sources=(path, references_path), pictures=(images,))
