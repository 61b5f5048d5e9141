"""Polaris: captions by ten systems and by people, rated by a crowd; the test split of what Polos was trained on."""

from __future__ import annotations

import ast
import csv
from pathlib import Path

import numpy as np

from caplens.bench.base import RatingSet, Task, rating_set, require_rows
from caplens.bench.data import DataFolders, open_text
from caplens.bench.hub_files import RatedCaptions, read_split, split_names
from caplens.bench.statistics import rating_statistics
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError

COLUMNS = ("mt", "refs", "score", "imgid")


@rating_set
class Polaris(RatingSet):
    name = "polaris"
    title = "Polaris"
    what = "26,122 captions of photos by ten systems and by people, each rated 0 to 1 by a crowd (test split)"
    protocol = "the test split; all references; Kendall τc and τb"
    license = "BSD 3-Clause Clear (ratings); photos as COCO and nocaps"
    home = "huggingface.co/datasets/yuwd/Polaris: data/test-*.parquet, or polaris_test.csv of Polos's repository"
    paper = "Wada et al., CVPR 2024 (Polos)"
    files = ((*split_names("Polaris", "test"), "polaris_test.csv"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        if path.suffix == ".parquet":
            paths = data.find_shards(*self.files[0])
            rated = read_split(paths, caption="cand", image="img", rating="human_score", name=None)
        else:
            paths, rated = [path], _from_csv(path, data)
        return rated_task(self, paths, rated)


def rated_task(rating_set: RatingSet, paths: list[Path], rated: RatedCaptions) -> Task:
    """Captions with one rating each, judged by both τ."""
    require_rows(len(rated.captions), rating_set.title, paths[0])
    units, count = rated.units
    figures = rating_statistics(("tau-c", "tau-b"), np.arange(len(rated.captions)), rated.ratings, units)
    signature = "split:test|references:all"
    return Task([rated.captions], count, figures, signature, sources=tuple(paths), pictures=(rated.pictures,))


def _from_csv(path: Path, data: DataFolders) -> RatedCaptions:
    """The authors' csv: caption, references as a Python list, rating, name of the photo."""
    candidates, references, ratings, names = [], [], [], []
    with open_text(path) as handle:
        for number, row in enumerate(csv.DictReader(handle), start=2):
            where = f"{path}, line {number}"
            if any(row.get(name) is None for name in COLUMNS):
                raise InputError(f"columns {', '.join(COLUMNS)} are needed", where=where)
            try:
                texts = ast.literal_eval(row["refs"])
                rating = float(row["score"])
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                raise InputError("refs is no list of texts, or score no number", where=where) from None
            candidates.append(row["mt"])
            references.append([str(text) for text in texts])
            ratings.append(rating)
            names.append(row["imgid"] if "." in row["imgid"] else f"{row['imgid']}.jpg")
    captions = CaptionSet(
        ids=[str(number) for number in range(len(candidates))],
        candidates=candidates,
        references=references,
        images=data.pictures(names),
        source=path.name,
    )
    return RatedCaptions(captions, names, np.array(ratings))
