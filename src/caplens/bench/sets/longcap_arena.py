"""LongCap-Arena: long captions by multimodal models, rated for what they describe, whether it is right, and fluency."""

from __future__ import annotations

import numpy as np

from caplens.bench.base import RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders
from caplens.bench.hub_files import read_split, split_names
from caplens.bench.statistics import AgreementStatistic, RatingStatistic

PERSPECTIVES = {"desc": "descriptiveness", "rel": "relevance", "flu": "fluency"}


@rating_set
class LongCapArena(RatingSet):
    name = "longcap-arena"
    title = "LongCap-Arena"
    what = "long captions of photos by multimodal models, rated 0 to 1 for descriptiveness, relevance and fluency"
    protocol = (
        "the test split of each perspective (not dci_test); the one long reference; Kendall τc with each perspective"
    )
    license = "BSD 3-Clause Clear (ratings); photos as SA-1B"
    home = "huggingface.co/datasets/Ka2ukiMatsuda/LongCap-Arena: data/test.desc-*, test.rel-*, test.flu-*.parquet"
    paper = "Matsuda et al., EMNLP 2025 (VELA)"
    files = tuple(split_names("LongCap-Arena", f"test.{short}") for short in PERSPECTIVES)

    def load(self, data: DataFolders) -> Task:
        for names in self.files:
            self.require(data, *names)
        shards = [data.find_shards(*names) for names in self.files]
        rated = [read_split(paths, caption="cand", image="image", rating="score", name="file_name") for paths in shards]
        # One photo is one unit, whichever perspective it is rated from.
        numbers, count = number_units(name for split in rated for name in split.pictures)
        figures: list[AgreementStatistic] = []
        start = 0
        for trial, (perspective, split) in enumerate(zip(PERSPECTIVES.values(), rated, strict=True)):
            require_rows(len(split.captions), self.title, shards[trial][0])
            end = start + len(split.captions)
            figures.append(
                RatingStatistic(
                    key=f"tau-c {perspective}",
                    kind="tau-c",
                    headline=True,
                    trial=trial,
                    rows=np.arange(len(split.captions)),
                    ratings=split.ratings,
                    units=numbers[start:end],
                )
            )
            start = end
        sources = tuple(path for paths in shards for path in paths)
        return Task(
            [split.captions for split in rated],
            count,
            figures,
            "split:test|references:all",
            sources=sources,
            pictures=tuple(split.pictures for split in rated),
        )
