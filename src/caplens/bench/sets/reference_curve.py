"""CIDEr-R's figure 3: accuracy on Pascal-50S and Abstract-50S as the number of references grows from 1 to 48."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from caplens.bench.base import SEED, RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders
from caplens.bench.sets.abstract_50s import Abstract50S, read_abstract
from caplens.bench.sets.pascal_50s import HOME, VOTES, Pair, pair_captions, pair_rows, read_pairs
from caplens.bench.statistics import AgreementStatistic, PairStatistic

SHOWN_TESTS = (1, 5, 48)
"""Where on the curve metrics are tested against each other."""


class ReferenceCurve(RatingSet):
    """What both curves share; references are added one by one in a seeded order."""

    license = "research use"
    paper = "dos Santos, Colombini and Avila, W-NUT 2021 (CIDEr-R)"

    def curve(self, data: DataFolders, path: Path, pairs: Sequence[Pair]) -> Task:
        require_rows(len(pairs), self.title, path)
        units, count = number_units(pair.image for pair in pairs)
        generator = np.random.default_rng([SEED, VOTES])
        ordered = [_in_random_order(pair, generator) for pair in pairs]
        voted = all(pair.votes is not None for pair in pairs)
        categories = ["", *sorted({pair.category for pair in pairs if pair.category})]
        trials, figures = [], list[AgreementStatistic]()
        for number in range(1, VOTES + 1):
            trials.append(pair_captions(pairs, data, path, [references[:number] for references, _ in ordered]))
            labels = np.array(
                [
                    np.sign(sum(votes[:number])) if voted else pair.consensus or 0
                    for pair, (_, votes) in zip(pairs, ordered, strict=True)
                ]
            )
            better, worse = pair_rows(labels.tolist())
            for category in categories:
                decided = np.flatnonzero(
                    [bool(label) and category in ("", pair.category) for label, pair in zip(labels, pairs, strict=True)]
                )
                figures.append(
                    PairStatistic(
                        key=f"{category or 'all'}, {number} reference{'s' if number > 1 else ''}",
                        at=number,
                        headline=not category and number in SHOWN_TESTS,
                        better=better[decided],
                        worse=worse[decided],
                        units=units[decided],
                        ties="wrong",
                        trials=(number - 1,),
                    )
                )
        labels_from = "votes-of-the-references-used" if voted else "48-votes"
        notes = (
            ()
            if voted
            else (
                "this file has no vote per reference, so every point uses the majority of all 48 votes: only the right "
                "end of the curve can be compared with the authors'",
            )
        )
        return Task(trials, count, figures, f"labels:{labels_from}|ties:wrong|seed:{SEED}", notes, sources=(path,))


@rating_set
class PascalCurve(ReferenceCurve):
    name = "curve-pascal-50s"
    title = "Pascal-50S by number of references"
    what = "accuracy on the 4,000 pairs of Pascal-50S with 1 to 48 references"
    protocol = (
        "references are added one at a time in a seeded random order; the label is the majority of the votes that "
        "belong to the references in use, tied votes are left out; a tie between two scores counts as wrong"
    )
    home = HOME
    files = (("pascal50s.json", "pair_pascal.mat"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        return self.curve(data, path, read_pairs(path, data))


@rating_set
class AbstractCurve(ReferenceCurve):
    name = "curve-abstract-50s"
    title = "Abstract-50S by number of references"
    what = "accuracy on the 400 pairs of Abstract-50S with 1 to 48 references"
    protocol = PascalCurve.protocol
    home = Abstract50S.home
    files = Abstract50S.files

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        return self.curve(data, path, read_abstract(path))


def _in_random_order(pair: Pair, generator: np.random.Generator) -> tuple[list[str], list[int]]:
    """References and their votes shuffled together; a repeated reference with the same vote counts once."""
    votes = pair.votes or [0] * len(pair.references)
    distinct = list(dict.fromkeys(zip(pair.references, votes, strict=True)))
    order = generator.permutation(len(distinct))[:VOTES]
    return [distinct[place][0] for place in order], [distinct[place][1] for place in order]
