"""Captions to train the composite on: right and wrong ones for a picture, and honest and gamed ones.

A caption is right for the picture it was made for, and counted wrong for the pictures most like it; people's captions
are held against people's, machines' against machines'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.core.types import Floats
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics.caplens_score import ENCODER
from caplens.storage.content import content_identity
from caplens.storage.identity import Identity
from caplens.training.corruptions import CORRUPTIONS

Captions = Mapping[str, Sequence[str]]
NEAR = (1, 2, 4, 8, 16, 32, 64, 128)
"""Whose captions are wrong for a picture: those of the nearest, second nearest … one, by what people say of them."""
NEAR_MACHINES = (1, 4, 16, 64)
MACHINES = 3
FEWEST = 20
"""A group of fewer pictures has no similar ones."""


@dataclass(frozen=True)
class CompositeConfig:
    """Everything that changes the outcome."""

    images: int = 1000
    """So many pictures of a collection, its first, have captions judged for them; the others only lend theirs."""
    pictures: int = 300
    """So many of these are looked at, where there are pictures."""
    gamed: int = 300
    """So many of each collection, the bank's too, have their captions gamed."""
    given_up: float = 0.01
    """The share of pictures whose gamed captions, kind by kind, may win again so that honest captions pay less."""
    decay: float = 1e-3
    folds: int = 5
    seed: int = 1


@dataclass(frozen=True)
class Trial:
    """Captions by one kind of author for the pictures of one group, right and wrong ones."""

    captions: CaptionSet
    images: list[str]
    sources: list[str]
    """The picture each caption was made for."""

    @property
    def identity(self) -> Identity:
        """Every caption, what it is held against, and whether it is right."""
        return Identity.of([content_identity(self.captions), self.images, self.sources])

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.array([image == source for image, source in zip(self.images, self.sources, strict=True)])

    def weights(self) -> Floats:
        """Right and wrong captions weigh the same in sum; among the wrong ones every picture's, however often used.

        Else a caption would lose by being near to many pictures, whatever it says of this one.
        """
        often = Counter(source for source, right in zip(self.sources, self.right, strict=True) if not right)
        made = np.array([1.0 if right else 1 / often[s] for s, right in zip(self.sources, self.right, strict=True)])
        for part in (self.right, ~self.right):
            made[part] /= 2 * made[part].sum()
        return made


@dataclass(frozen=True)
class Group:
    """Pictures of one collection, each with five captions by people."""

    human: dict[str, list[str]]
    judged: list[str]
    nearest: NDArray[np.int64]
    """For each judged picture the places of all others, nearest first."""


def make_group(human: Captions, config: CompositeConfig) -> Group:
    """A collection with who is near to whom; the more pictures lend captions, the nearer are the wrong ones."""
    kept = {name: list(texts)[:5] for name, texts in human.items() if len(texts) >= 5}
    if len(kept) < FEWEST:
        raise InputError(f"{len(kept)} pictures with five captions are too few", remedy=f"give {FEWEST} at least")
    vectors = load_sentence_encoder(ENCODER).encode([text for texts in kept.values() for text in texts])
    middle = vectors.reshape(len(kept), 5, -1).mean(axis=1)
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    judged = list(kept)[: config.images]
    close = middle[: len(judged)] @ middle.T
    close[np.arange(len(judged)), np.arange(len(judged))] = -2
    return Group(kept, judged, np.argsort(-close, axis=1))


def people_trial(group: Group, config: CompositeConfig) -> Trial:
    """Each picture's fifth caption against the other four, and people's captions of similar pictures against them."""
    random = np.random.default_rng((config.seed, 1))
    names, rows = list(group.human), []
    for place, name in enumerate(group.judged):
        written = list(group.human[name])
        own = written.pop(int(random.integers(5)))
        rows.append((own, written, name, name))
        for rank in (*NEAR, int(random.integers(1, len(names)))):
            other = names[group.nearest[place, min(rank, len(names) - 1) - 1]]
            rows.append((str(random.choice(group.human[other])), written, name, other))
    return _trial(rows)


def machine_trial(group: Group, machine: Captions, config: CompositeConfig) -> Trial | None:
    """Captions that machines made for each picture and for similar ones, against four of its five captions."""
    random = np.random.default_rng((config.seed, 2))
    names, rows = list(group.human), []
    for place, name in enumerate(group.judged):
        made = list(dict.fromkeys(machine.get(name, ())))
        if not made:
            continue
        written = list(group.human[name])
        written.pop(int(random.integers(5)))
        rows += [(made[number], written, name, name) for number in random.permutation(len(made))[:MACHINES]]
        for rank in NEAR_MACHINES:
            other = names[group.nearest[place, min(rank, len(names) - 1) - 1]]
            if machine.get(other):
                rows.append((str(random.choice(list(machine[other]))), written, name, other))
    return _trial(rows) if rows else None


def _trial(rows: Sequence[tuple[str, list[str], str, str]]) -> Trial:
    candidates, references, images, sources = (list(column) for column in zip(*rows, strict=True))
    return Trial(CaptionSet.of(candidates, references), images, sources)


def gamed_set(human: Captions, config: CompositeConfig) -> CaptionSet:
    """An honest caption and one gamed in each way, picture by picture, from all over the collection."""
    random = np.random.default_rng((config.seed, 3))
    candidates, references = [], []
    every = max(1, len(human) // config.gamed)
    for honest, *others in (list(texts)[:5] for texts in list(human.values())[::every][: config.gamed]):
        candidates += [honest, *(corrupt(honest, others, random) for corrupt in CORRUPTIONS.values())]
        references += [others] * (1 + len(CORRUPTIONS))
    return CaptionSet.of(candidates, references)


def with_pictures(trial: Trial, folder: Path, config: CompositeConfig) -> Trial | None:
    """The part of a trial whose pictures are in the folder."""
    names = [name for name in dict.fromkeys(trial.images) if (folder / name).is_file()][: config.pictures]
    rows = [row for row, name in enumerate(trial.images) if name in set(names)]
    if not rows:
        return None
    captions = CaptionSet.of(
        [trial.captions.candidates[row] for row in rows],
        [(trial.captions.references or [])[row] for row in rows],
        images=[folder / trial.images[row] for row in rows],
    )
    return Trial(captions, [trial.images[row] for row in rows], [trial.sources[row] for row in rows])
