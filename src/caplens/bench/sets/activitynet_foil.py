"""ActivityNet-FOIL: a paragraph about a video against the same paragraph with one concept exchanged."""

from __future__ import annotations

from typing import Any

import numpy as np

from caplens.bench.agreement import preferred
from caplens.bench.base import RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.statistics import ItemStatistic, Scored
from caplens.core.captions import CaptionSet
from caplens.core.types import Floats

OVERLAP = 0.4


@rating_set
class ActivityNetFoil(RatingSet):
    name = "activitynet-foil"
    title = "ActivityNet-FOIL"
    what = "1,900 paragraphs about videos against foils in which one visual concept was exchanged"
    protocol = (
        "sentences are scored one by one against those sentences of the second annotator that overlap in time by more "
        "than 40 %, and against the whole video; a paragraph's score is the mean of its sentences; share of paragraphs "
        "whose right version scores higher, ties count half"
    )
    license = "research use"
    home = (
        "github.com/ShiYaya/emscore: final_right_video_sentences.json, final_foil_video_sentences.json, "
        "anet_entities_test_1.json, anet_entities_test_2.json; videos of ActivityNet"
    )
    paper = "Shi et al., CVPR 2022 (EMScore)"
    files = (
        ("final_right_video_sentences.json",),
        ("final_foil_video_sentences.json",),
        ("anet_entities_test_1.json",),
        ("anet_entities_test_2.json",),
    )

    def load(self, data: DataFolders) -> Task:
        paths = [self.require(data, *names) for names in self.files]
        right, wrong, timing, second = (read_json(path) for path in paths)
        right, wrong = right["results"], wrong["results"]
        ids, candidates, references, videos = list[str](), list[str](), list[list[str]](), list[Any]()
        paragraphs: list[tuple[list[int], list[int]]] = []
        names = [name for name in right if name in wrong and name in timing and name in second]
        for name in names:
            rows: tuple[list[int], list[int]] = ([], [])
            for side, sentences in enumerate((right[name], wrong[name])):
                for place, sentence in enumerate(sentences):
                    rows[side].append(len(candidates))
                    ids.append(f"{name} {('right', 'wrong')[side]} {place}")
                    candidates.append(sentence["sentence"])
                    references.append(_overlapping(timing[name]["timestamps"][place], second[name]))
                    videos.append(data.find(f"{name}.mp4", f"{name}.mkv", f"{name}.webm", f"{name}.avi"))
            paragraphs.append(rows)
        require_rows(len(paragraphs), self.title, paths[0])
        captions = CaptionSet(ids, candidates, references, None, videos if any(videos) else None, paths[0].name)
        units, count = number_units(names)

        def judge(scored: Scored) -> Floats:
            scores = scored.scores(0)
            means = np.array([[scores[side].mean() for side in sides] for sides in paragraphs])
            return preferred(means[:, 0], means[:, 1], "half")

        accuracy = ItemStatistic(key="accuracy", headline=True, units=units, judge=judge)
        return Task([captions], count, [accuracy], "ties:half|references:overlapping|video:whole", sources=tuple(paths))


def _overlapping(span: list[float], second: dict[str, Any]) -> list[str]:
    """The second annotator's sentences about the same stretch of the video; all of them where none overlaps."""
    seconds = set(range(int(span[0]), int(span[1]) + 1))
    chosen = [
        sentence
        for sentence, (start, end) in zip(second["sentences"], second["timestamps"], strict=True)
        if len(seconds & set(range(int(start), int(end) + 1))) / (int(end) + 1 - int(start)) > OVERLAP
    ]
    return chosen or list(second["sentences"])
