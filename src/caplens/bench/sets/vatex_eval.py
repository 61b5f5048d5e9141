"""VATEX-EVAL: six captions of mixed quality for each of 3,000 videos, rated by three people."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from caplens.bench.base import RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders
from caplens.bench.statistics import AgreementStatistic, MeanStatistic, RatingStatistic
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError

REFERENCE_COUNTS = (1, 9)


@rating_set
class VatexEval(RatingSet):
    name = "vatex-eval"
    title = "VATEX-EVAL"
    what = "18,000 video-caption pairs (3,000 videos, six captions each), consistency rated 1 to 5 by three people"
    protocol = (
        "Kendall τb and Spearman with each annotator, then the mean of the three; the first reference and the first "
        "nine (metrics without references give the same figure twice)"
    )
    license = "research use; videos as VATEX (CC BY 4.0 captions)"
    home = (
        "github.com/ShiYaya/emscore: candidates_list.pkl, gts_list.pkl, human_scores.pkl, video_ids.pkl; "
        "videos of VATEX"
    )
    paper = "Shi et al., CVPR 2022 (EMScore)"
    files = (("candidates_list.pkl",), ("gts_list.pkl",), ("human_scores.pkl",), ("video_ids.pkl",))

    def load(self, data: DataFolders) -> Task:
        paths = [self.require(data, *names) for names in self.files]
        candidates, references, scores, videos = (_read_arrays(path) for path in paths)
        candidates = [str(text) for text in np.asarray(candidates).ravel()]
        require_rows(len(candidates), self.title, paths[0])
        videos = [str(name) for name in np.asarray(videos).ravel()]
        ratings = np.asarray(scores, dtype=np.float64).reshape(3, -1)
        if not len(candidates) == len(references) == len(videos) == ratings.shape[1]:
            raise InputError("the four files hold different numbers of rows", where=str(paths[0].parent))
        units, count = number_units(videos)
        files = [data.find(f"{name}.mp4", f"{name}.mkv", f"{name}.webm", f"{name}.avi") for name in videos]
        trials, figures = [], list[AgreementStatistic]()
        for trial, number in enumerate(REFERENCE_COUNTS):
            trials.append(
                CaptionSet(
                    ids=[str(row) for row in range(len(candidates))],
                    candidates=candidates,
                    references=[[str(text) for text in list(texts)[:number]] for texts in references],
                    videos=list(files) if any(files) else None,
                    source=paths[0].name,
                )
            )
            for kind in ("tau-b", "spearman"):
                annotators = tuple(
                    RatingStatistic(
                        key=f"annotator {number + 1}",
                        kind=kind,
                        trial=trial,
                        rows=np.arange(len(candidates)),
                        ratings=column,
                        units=units,
                    )
                    for number, column in enumerate(ratings)
                )
                key = f"{kind}, {number} reference{'s' if number > 1 else ''}"
                figures.append(MeanStatistic(key=key, parts=annotators, headline=kind == "tau-b"))
        signature = "references:1,9|annotators:mean-of-3"
        return Task(trials, count, figures, signature, sources=tuple(paths), pictures=(videos,) * len(trials))


class _ArraysOnly(pickle.Unpickler):
    """Unpickles numpy arrays and plain containers, and nothing that could run code."""

    ALLOWED = frozenset(
        {
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy.core.multiarray", "scalar"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "scalar"),
            ("numpy.core.numeric", "_frombuffer"),
            ("numpy._core.numeric", "_frombuffer"),
            ("_codecs", "encode"),
        }
    )

    def __init__(self, handle: BinaryIO, path: Path) -> None:
        super().__init__(handle)
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise InputError(f"the pickle asks for {module}.{name}; only arrays are read", where=str(self.path))
        return super().find_class(module, name)


def _read_arrays(path: Path) -> Any:
    with path.open("rb") as handle:
        try:
            return _ArraysOnly(handle, path).load()
        except (pickle.UnpicklingError, EOFError) as error:
            raise InputError(f"not a pickle: {error}", where=str(path)) from None
