"""#PraCegoVer triplets: long Portuguese captions of the same post against one of another post."""

from __future__ import annotations

from functools import partial

import numpy as np

from caplens.bench.agreement import preferred
from caplens.bench.base import RatingSet, Task, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.statistics import AgreementStatistic, ItemStatistic, Scored
from caplens.core.captions import CaptionSet
from caplens.core.types import Floats

CHUNK = 500
"""The authors score 500 triplets at a time, so that idf is taken over 500 references."""
PUBLISHED_TRIPLETS = 14_843


@rating_set
class PraCegoVer(RatingSet):
    name = "pracegover"
    title = "#PraCegoVer triplets"
    what = (
        "a Portuguese reference, another caption of the same post (HCI) or only its beginning (HII), and a caption of "
        "another post; no human vote, the right answer follows from the posts"
    )
    protocol = (
        "one reference; scored 500 triplets at a time as the authors do (CIDEr's idf is taken inside these 500); share "
        "of triplets whose right caption scores higher, ties count as wrong"
    )
    license = "captions of public posts, research use (#PraCegoVer)"
    home = "github.com/gabrielsantosrv/coco-caption: pracegover_triplets.json"
    paper = "dos Santos, Colombini and Avila, W-NUT 2021 (CIDEr-R)"
    files = (("pracegover_triplets_complete.json", "pracegover_triplets.json"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        trials, figures = list[CaptionSet](), list[AgreementStatistic]()
        content = read_json(path)
        count = max(len(triplets) for triplets in content.values())
        require_rows(count, self.title, path)
        for kind, triplets in content.items():
            rows = list(triplets.values())
            own: list[int] = []
            for start in range(0, len(rows), CHUNK):
                own.append(len(trials))
                trials.append(_captions(f"{path.name} {kind}", start, rows[start : start + CHUNK]))
            figures.append(
                ItemStatistic(
                    key=kind,
                    headline=True,
                    units=np.arange(len(rows), dtype=np.int32),
                    judge=partial(_judge, trials=tuple(own)),
                )
            )
        notes = (
            ()
            if count == PUBLISHED_TRIPLETS
            else (
                f"{count:,} triplets are in this file; the authors' figures are over {PUBLISHED_TRIPLETS:,}, whose "
                "file was not released with them",
            )
        )
        return Task(trials, count, figures, f"ties:wrong|idf:{CHUNK}|triplets:{count}", notes, sources=(path,))


def _captions(source: str, start: int, triplets: list[list[str]]) -> CaptionSet:
    return CaptionSet(
        ids=[f"{start + place}{side}" for place in range(len(triplets)) for side in ("right", "wrong")],
        candidates=[text for _, right, wrong, _ in triplets for text in (right, wrong)],
        references=[[reference] for reference, *_ in triplets for _ in (0, 1)],
        source=source,
    )


def _judge(scored: Scored, trials: tuple[int, ...]) -> Floats:
    scores = np.concatenate([scored.scores(trial) for trial in trials])
    return preferred(scores[0::2], scores[1::2], "wrong")
