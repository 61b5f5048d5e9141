"""Pascal-50S: which of two captions fits better. Two families of labels are in print; they are two sets here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from caplens.bench.base import DRAWS, SEED, RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.statistics import AgreementStatistic, MeanStatistic, PairStatistic
from caplens.core.captions import CaptionSet
from caplens.core.errors import MissingData

CATEGORIES = ("HC", "HI", "HM", "MM")
REFERENCES = 5
VOTES = 48
HOME = (
    "the CIDEr page of Vedantam et al.: pair_pascal.mat and consensus_pascal.mat (pyCIDErConsensus), photos of the "
    "UIUC Pascal sentence set; or pascal_50s.json of FLEUR's repository"
)


@dataclass(frozen=True)
class Pair:
    """Two captions of one photo."""

    image: str
    captions: tuple[str, str]
    category: str
    references: list[str]
    votes: list[int] | None
    """Per reference, +1 for the first caption and -1 for the second; None where only the majority is known."""
    consensus: int | None
    """Majority of the 48 consensus votes: +1, -1, 0 for a tie."""
    direct: int | None
    """Majority of the direct pair votes."""


def read_pairs(path: Path, data: DataFolders) -> list[Pair]:
    """The pairs, from any of the forms they are handed around in."""
    if path.suffix == ".mat":
        return list(_from_mat(path, data))
    content = read_json(path)
    return list(_from_json(content) if "pairs" in content else _from_fleur(content))


def _from_json(content: dict[str, Any]) -> Iterator[Pair]:
    """One list of pairs with both kinds of votes, and all references by photo."""
    for pair in content["pairs"]:
        yield Pair(
            image=pair["image"],
            captions=(pair["caption_a"], pair["caption_b"]),
            category=pair["category"],
            references=content["references"][pair["image"]],
            votes=None,
            consensus=1 - 2 * pair["consensus_label"],
            direct=int(np.sign(sum(pair["pair_votes"]))),
        )


def _from_fleur(content: dict[str, Any]) -> Iterator[Pair]:
    """FLEUR's file: per category image, captions, label (which of the two) and five references."""
    for category, pairs in content.items():
        for pair in pairs:
            first, second = pair["captions"]
            references = list(pair.get("references", pair.get("refs", [])))
            label = 1 - 2 * int(pair["label"])
            yield Pair(pair["image"], (first, second), category, references, None, label, None)


def _from_mat(path: Path, data: DataFolders) -> Iterator[Pair]:
    """The original: pair_pascal.mat names the pairs, consensus_pascal.mat holds 48 voted triplets for each."""
    from scipy.io import loadmat

    consensus = data.find("consensus_pascal.mat")
    pairs = loadmat(path)
    triplets = loadmat(consensus)["triplets"][0] if consensus else None
    for number, (entry, category) in enumerate(zip(pairs["new_input"][0], pairs["category"][0], strict=True)):
        image, first, second = (str(cell[0]).strip() for cell in entry)
        references, votes = [], []
        if triplets is not None:
            for triplet in triplets[number * VOTES : (number + 1) * VOTES]:
                reference, left, _, winner = (cell[0][0] for cell in triplet)
                references.append(str(reference[0]).strip())
                votes.append(int(winner) if str(left[0]).strip() == first else -int(winner))
        yield Pair(
            image=image,
            captions=(first, second),
            category=CATEGORIES[int(category) - 1],
            references=references,
            votes=votes if triplets is not None else None,
            consensus=int(np.sign(sum(votes))) if triplets is not None else None,
            direct=None,
        )


class Pascal50S(RatingSet):
    """What both families share."""

    license = "research use, photos under their Flickr licenses"
    home = HOME
    paper = "Vedantam, Zitnick and Parikh, CVPR 2015"
    files: ClassVar[tuple[tuple[str, ...], ...]] = (("pascal50s.json", "pascal_50s.json", "pair_pascal.mat"),)
    field: ClassVar[str]

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        pairs = read_pairs(path, data)
        require_rows(len(pairs), self.title, path)
        if any(getattr(pair, self.field) is None for pair in pairs):
            raise MissingData(f"{self.title}: {path.name} does not hold these labels; it has the other family only")
        units, count = number_units(pair.image for pair in pairs)
        trials = [pair_captions(pairs, data, path, draw_references(pairs, draw)) for draw in range(DRAWS)]
        labels = break_ties([int(getattr(pair, self.field)) for pair in pairs])
        better, worse = pair_rows(labels)
        parts: list[AgreementStatistic] = []
        for category in CATEGORIES:
            inside = np.flatnonzero([pair.category == category for pair in pairs])
            if len(inside):
                parts.append(
                    PairStatistic(
                        key=category,
                        better=better[inside],
                        worse=worse[inside],
                        units=units[inside],
                        trials=tuple(range(DRAWS)),
                    )
                )
        mean = MeanStatistic(key="mean", parts=tuple(parts), headline=True)
        signature = f"labels:{self.field}|references:{REFERENCES}|draws:{DRAWS}|seed:{SEED}|ties:half"
        return Task(trials, count, [mean, *parts], signature, sources=(path,), pictures=pair_pictures(pairs) * DRAWS)


@rating_set
class Pascal50SConsensus(Pascal50S):
    name = "pascal-50s-consensus"
    title = "Pascal-50S, consensus labels"
    what = "4,000 pairs of captions; the label is the majority of 48 votes on which caption is closer to a reference"
    protocol = (
        "label family A (CLIPScore, PAC-S, Polos, FLEUR); five references drawn five times and averaged, seed in the "
        "signature; ties between two scores count half, tied votes are broken by a seeded coin"
    )
    field = "consensus"


@rating_set
class Pascal50SDirect(Pascal50S):
    name = "pascal-50s-pairs"
    title = "Pascal-50S, direct pair votes"
    what = (
        "the same 4,000 pairs; the label is the majority of about eleven votes on which caption fits the photo better"
    )
    protocol = (
        "label family B (UMIC, InfoMetIC); five references drawn five times and averaged, seed in the signature; ties "
        "between two scores count half, tied votes are broken by a seeded coin"
    )
    files = (("pascal50s.json",),)
    field = "direct"


def draw_references(pairs: Sequence[Pair], draw: int) -> list[list[str]]:
    """Five references per pair, the same for both captions; another set for each draw."""
    generator = np.random.default_rng([SEED, draw])
    drawn = []
    for pair in pairs:
        chosen = generator.permutation(len(pair.references))[:REFERENCES]
        drawn.append([pair.references[place] for place in sorted(chosen)])
    return drawn


def pair_captions(pairs: Sequence[Pair], data: DataFolders, path: Path, references: list[list[str]]) -> CaptionSet:
    """Two rows per pair, first caption first."""
    return CaptionSet(
        ids=[f"{number}{side}" for number in range(len(pairs)) for side in "ab"],
        candidates=[caption for pair in pairs for caption in pair.captions],
        references=[texts for texts in references for _ in "ab"],
        images=data.pictures([pair.image for pair in pairs for _ in "ab"]),
        source=path.name,
    )


def pair_pictures(pairs: Sequence[Pair]) -> tuple[list[str]]:
    """Return the picture of every row of `pair_captions`, for one trial."""
    return ([pair.image for pair in pairs for _ in "ab"],)


def pair_rows(labels: Sequence[int]) -> tuple[np.ndarray[Any, np.dtype[np.intp]], np.ndarray[Any, np.dtype[np.intp]]]:
    """Rows of the preferred and of the other caption, for labels +1 (first) and -1 (second)."""
    first = 2 * np.arange(len(labels))
    flipped = (np.asarray(labels) < 0).astype(np.intp)
    return first + flipped, first + 1 - flipped


def break_ties(labels: Sequence[int]) -> list[int]:
    """A seeded coin for tied votes, as the published figures use an unseeded one."""
    coin = np.random.default_rng([SEED, 99])
    return [label or int(coin.choice([-1, 1])) for label in labels]
