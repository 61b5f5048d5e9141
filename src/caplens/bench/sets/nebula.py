"""Nebula: captions rated by a crowd, on more kinds of photos than Polaris; the test split of DENEB's training data."""

from __future__ import annotations

from caplens.bench.base import RatingSet, Task, rating_set
from caplens.bench.data import DataFolders
from caplens.bench.hub_files import read_split, split_names
from caplens.bench.sets.polaris import rated_task


@rating_set
class Nebula(RatingSet):
    name = "nebula"
    title = "Nebula"
    what = "3,298 captions of photos, each rated 0 to 1 by a crowd (test split)"
    protocol = "the test split; all references; Kendall τc and τb"
    license = "not stated with the data"
    home = "huggingface.co/datasets/Ka2ukiMatsuda/Nebula: data/test-*.parquet"
    paper = "Matsuda et al., ACCV 2024 (DENEB)"
    files = (split_names("Nebula", "test"),)

    def load(self, data: DataFolders) -> Task:
        self.require(data, *self.files[0])
        paths = data.find_shards(*self.files[0])
        return rated_task(
            self, paths, read_split(paths, caption="mt", image="image", rating="human_score", name="file_name")
        )
