"""MSVD-Eval: captions of videos, rated by two people on four criteria."""

from __future__ import annotations

import numpy as np

from caplens.bench.base import RatingSet, Task, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.statistics import AgreementStatistic, RatingStatistic
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError

CRITERIA = ("accuracy", "completeness", "conciseness", "relevance", "mean")


@rating_set
class MsvdEval(RatingSet):
    name = "msvd-eval"
    title = "MSVD-Eval"
    what = "captions of 197 videos of MSVD, rated 1 to 5 by two people: accuracy, completeness, conciseness, relevance"
    protocol = (
        "the two raters stay two rows (394); all references; Kendall τc, τb and Spearman with the mean of the four "
        "criteria, and τb with each criterion"
    )
    license = "not stated by the authors; videos and references as MSVD (research use)"
    home = "github.com/ztangaj/gveval: MSVD-Eval.json; videos in YouTubeClips.tar of MSVD"
    paper = "Tong et al., AAAI 2025 (G-VEval)"
    files = (("MSVD-Eval.json",),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        entries = list(read_json(path).items())
        require_rows(len(entries), self.title, path)
        rows: list[int] = []
        ratings: list[list[float]] = []
        for row, (name, entry) in enumerate(entries):
            for judged in entry["human_score"]:
                if len(judged) != len(CRITERIA):
                    raise InputError(f"{len(judged)} ratings, not {len(CRITERIA)}", where=f"{path}, {name}")
                rows.append(row)
                ratings.append([float(rating) for rating in judged])
        videos = [entry["vname"] for _, entry in entries]
        files = [data.find(name) for name in videos]
        captions = CaptionSet(
            ids=[name for name, _ in entries],
            candidates=[entry["candidate"] for _, entry in entries],
            references=[entry["ref"] for _, entry in entries],
            videos=list(files) if any(files) else None,
            source=path.name,
        )
        judged_rows, columns = np.array(rows), np.array(ratings).T
        kinds = [("tau-c", "mean"), ("tau-b", "mean"), ("spearman", "mean"), *(("tau-b", one) for one in CRITERIA[:-1])]
        figures: list[AgreementStatistic] = [
            RatingStatistic(
                key=kind if criterion == "mean" else f"{kind} {criterion}",
                kind=kind,  # type: ignore[arg-type]
                headline=kind == "tau-c",
                rows=judged_rows,
                ratings=columns[CRITERIA.index(criterion)],
                units=judged_rows.astype(np.int32),
            )
            for kind, criterion in kinds
        ]
        signature = "rows:one-per-rater|references:all"
        return Task([captions], len(entries), figures, signature, sources=(path,), pictures=(videos,))
