"""Abstract-50S: which of two captions of a clip-art scene is closer to 48 references."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from caplens.bench.base import DRAWS, SEED, RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.sets.pascal_50s import (
    REFERENCES,
    VOTES,
    Pair,
    break_ties,
    draw_references,
    pair_captions,
    pair_pictures,
    pair_rows,
)
from caplens.bench.statistics import PairStatistic


@rating_set
class Abstract50S(RatingSet):
    name = "abstract-50s"
    title = "Abstract-50S"
    what = "400 pairs of captions of clip-art scenes, with 48 votes on which caption is closer to a reference"
    protocol = (
        "label: majority of the 48 votes; five references drawn five times and averaged, seed in the signature; ties "
        "between two scores count half, tied votes are broken by a seeded coin"
    )
    license = "research use"
    home = "the CIDEr page of Vedantam et al.: consensus_abstract.mat (also in the CIDEr-R authors' repository)"
    paper = "Vedantam, Zitnick and Parikh, CVPR 2015"
    files = (("abstract50s.json", "consensus_abstract.mat"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        pairs = read_abstract(path)
        require_rows(len(pairs), self.title, path)
        units, count = number_units(pair.image for pair in pairs)
        better, worse = pair_rows(break_ties([int(np.sign(sum(pair.votes or []))) for pair in pairs]))
        trials = [pair_captions(pairs, data, path, draw_references(pairs, draw)) for draw in range(DRAWS)]
        accuracy = PairStatistic(
            key="accuracy", headline=True, better=better, worse=worse, units=units, trials=tuple(range(DRAWS))
        )
        signature = f"references:{REFERENCES}|draws:{DRAWS}|seed:{SEED}|ties:half"
        return Task(trials, count, [accuracy], signature, sources=(path,), pictures=pair_pictures(pairs) * DRAWS)


def read_abstract(path: Path) -> list[Pair]:
    """The pairs with one vote per reference."""
    return list(_from_mat(path) if path.suffix == ".mat" else _from_json(path))


def _from_json(path: Path) -> Iterator[Pair]:
    for entry in read_json(path):
        captions = (entry["caption_b"], entry["caption_c"])
        yield Pair(entry["image"], captions, "", entry["references"], entry["votes"], None, None)


def _from_mat(path: Path) -> Iterator[Pair]:
    """48 consecutive triplets (reference, first, second, +1 or -1) make a pair."""
    from scipy.io import loadmat

    triplets = loadmat(path)["triplets"][0]
    for start in range(0, len(triplets), VOTES):
        references, votes, captions = [], [], ("", "")
        for triplet in triplets[start : start + VOTES]:
            reference, first, second, winner = (cell[0][0] for cell in triplet)
            references.append(str(reference[0]).strip())
            captions = (str(first[0]).strip(), str(second[0]).strip())
            votes.append(int(winner))
        yield Pair(f"scene {start // VOTES}", captions, "", references, votes, None, None)
