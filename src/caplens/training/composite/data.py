"""Captions to train the composite on, with their features: right and wrong ones for a picture, honest and gamed ones.

A caption is right for the picture it was made for, and counted wrong for the pictures most like it; people's captions
are held against people's, machines' against machines'. No rating is used, nor who wrote a caption.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.types import Floats, narrow_unit
from caplens.core.workspace import Workspace
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics._well_formedness import well_formedness, well_formedness_identity
from caplens.metrics.caplens_score import ENCODER, meaning, meaning_identity, picture_fit, picture_identity
from caplens.storage.content import content_identity
from caplens.storage.identity import Identity
from caplens.training.composite.config import CompositeConfig
from caplens.training.features import cached_features
from caplens.training.gamed import CORRUPTIONS

Captions = Mapping[str, Sequence[str]]
NEAR = (1, 2, 4, 8, 16, 32, 64, 128)
"""Whose captions are wrong for a picture: those of the nearest, second nearest … one, by what people say of them."""
NEAR_MACHINES = (1, 4, 16, 64)
MACHINE_CAPTIONS = 3
FEWEST = 20
"""A collection of fewer pictures has no similar ones."""


@dataclass(frozen=True)
class Trial:
    """Captions by one kind of author for the pictures of one collection, right and wrong ones."""

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
        """Whether each caption was made for the picture it is held against."""
        return np.array([image == source for image, source in zip(self.images, self.sources, strict=True)])

    def weights(self) -> Floats:
        """Return weights by which right and wrong captions count the same, and so do the sources of the wrong ones.

        Else a caption would lose by being near to many pictures, whatever it says of this one.
        """
        uses = Counter(source for source, right in zip(self.sources, self.right, strict=True) if not right)
        weights = np.array([1.0 if right else 1 / uses[s] for s, right in zip(self.sources, self.right, strict=True)])
        for part in (self.right, ~self.right):
            weights[part] /= 2 * weights[part].sum()
        return weights


@dataclass(frozen=True)
class Collection:
    """Pictures of one source, each with five captions by people."""

    human: dict[str, list[str]]
    judged: list[str]
    nearest: NDArray[np.int64]
    """For each judged picture the positions of all others, nearest first."""


@dataclass(frozen=True)
class CompositeData:
    """Everything the model is fitted to: captions and their features."""

    trials: list[tuple[Trial, Floats]]
    """With the features of meaning."""
    with_pictures: list[tuple[Trial, Floats, Floats]]
    """Trials with pictures: features of meaning, and the cosine with the picture."""
    gamed_meaning: Floats
    gamed_form: Floats
    """Features of meaning and of well-formedness of honest captions, each followed by its gamed versions."""
    trial_form: Floats
    """Well-formedness of the trials' captions."""
    bank: NDArray[np.float16]
    """Sentence vectors of the background's captions."""

    @property
    def facts(self) -> dict[str, str]:
        """How much it is."""
        return {
            "images": str(len({image for trial, _ in self.trials for image in trial.images})),
            "captions": str(sum(len(trial.captions) for trial, _ in self.trials)),
            "pictures": str(sum(len(set(trial.images)) for trial, _, _ in self.with_pictures)),
            "data": Identity.of(list(vars(self).values())).digest[:16],
        }


def load_data(
    human: Sequence[Captions],
    machine: Captions,
    background: Captions,
    images: str | os.PathLike[str] | None,
    config: CompositeConfig,
    progress: Progress = silent,
) -> CompositeData:
    """Draw the captions and compute their features, or read them from the cache."""
    progress("nearest pictures", 0, len(human))
    collections = []
    for captions in human:
        collections.append(make_collection(captions, config, progress))
        progress("nearest pictures", len(collections), len(human))
    first_captions = [texts[0] for texts in background.values()]
    bank = load_sentence_encoder(ENCODER).encode(first_captions, progress).astype(np.float16)
    people = [people_trial(collection, config) for collection in collections]
    machines = [trial for each in collections if (trial := machine_trial(each, machine, config)) is not None]
    pictured = [part for trial in people if images is not None and (part := with_pictures(trial, Path(images), config))]
    gamed = [gamed_set(captions, config) for captions in (*human, background)]
    trials = [*people, *machines]
    total, done = 2 * len(gamed) + 2 * len(trials) + 2 * len(pictured), 0
    progress("features of captions", done, total)

    def features(captions: CaptionSet, identity: Identity, compute: Callable[[Workspace], Floats]) -> Floats:
        nonlocal done
        computed = cached_features(captions, identity, lambda some: compute(Workspace(some, progress)))
        done += 1
        progress("features of captions", done, total)
        return computed

    def of_meaning(captions: CaptionSet) -> Floats:
        return features(
            captions, meaning_identity(bank, config.edition), lambda work: meaning(work, bank, config.edition)
        )

    def of_form(captions: CaptionSet) -> Floats:
        return features(captions, well_formedness_identity(), well_formedness)

    def of_picture(captions: CaptionSet) -> Floats:
        return features(captions, picture_identity(config.edition), lambda work: picture_fit(work, config.edition))

    return CompositeData(
        trials=[(trial, of_meaning(trial.captions)) for trial in trials],
        with_pictures=[(trial, of_meaning(trial.captions), of_picture(trial.captions)) for trial in pictured],
        gamed_meaning=np.concatenate([of_meaning(captions) for captions in gamed]),
        gamed_form=np.concatenate([of_form(captions) for captions in gamed]),
        trial_form=np.concatenate([of_form(trial.captions) for trial in trials]),
        bank=bank,
    )


def make_collection(human: Captions, config: CompositeConfig, progress: Progress = silent) -> Collection:
    """Find out who is near to whom; the more pictures lend captions, the nearer are the wrong ones."""
    kept = {name: list(texts)[:5] for name, texts in human.items() if len(texts) >= 5}
    if len(kept) < FEWEST:
        raise InputError(f"{len(kept)} pictures with five captions are too few", remedy=f"give {FEWEST} at least")
    texts = [text for texts in kept.values() for text in texts]
    means = load_sentence_encoder(ENCODER).encode(texts, progress).reshape(len(kept), 5, -1).mean(axis=1)
    means = narrow_unit(means)
    judged = list(kept)[: config.images]
    similarity = means[: len(judged)] @ means.T
    similarity[np.arange(len(judged)), np.arange(len(judged))] = -2
    return Collection(kept, judged, np.argsort(-similarity, axis=1))


def people_trial(collection: Collection, config: CompositeConfig) -> Trial:
    """Hold each picture's fifth caption, and people's captions of similar pictures, against the other four."""
    random = np.random.default_rng((config.seed, 1))
    names, rows = list(collection.human), []
    for row, name in enumerate(collection.judged):
        references = list(collection.human[name])
        own = references.pop(int(random.integers(5)))
        rows.append((own, references, name, name))
        for rank in (*NEAR, int(random.integers(1, len(names)))):
            other = names[collection.nearest[row, min(rank, len(names) - 1) - 1]]
            rows.append((str(random.choice(collection.human[other])), references, name, other))
    return _trial(rows)


def machine_trial(collection: Collection, machine: Captions, config: CompositeConfig) -> Trial | None:
    """Hold captions that machines made for each picture and for similar ones against four of its five captions."""
    random = np.random.default_rng((config.seed, 2))
    names, rows = list(collection.human), []
    for row, name in enumerate(collection.judged):
        captions = list(dict.fromkeys(machine.get(name, ())))
        if not captions:
            continue
        references = list(collection.human[name])
        references.pop(int(random.integers(5)))
        chosen = random.permutation(len(captions))[:MACHINE_CAPTIONS]
        rows += [(captions[number], references, name, name) for number in chosen]
        for rank in NEAR_MACHINES:
            other = names[collection.nearest[row, min(rank, len(names) - 1) - 1]]
            if machine.get(other):
                rows.append((str(random.choice(list(machine[other]))), references, name, other))
    return _trial(rows) if rows else None


def _trial(rows: Sequence[tuple[str, list[str], str, str]]) -> Trial:
    candidates, references, images, sources = (list(column) for column in zip(*rows, strict=True))
    return Trial(CaptionSet.of(candidates, references), images, sources)


def gamed_set(human: Captions, config: CompositeConfig) -> CaptionSet:
    """Return an honest caption and one gamed in each way, picture by picture, from all over the collection."""
    random = np.random.default_rng((config.seed, 3))
    candidates, references = [], []
    every = max(1, len(human) // config.gamed)
    for honest, *others in (list(texts)[:5] for texts in list(human.values())[::every][: config.gamed]):
        candidates += [honest, *(corrupt(honest, others, random) for corrupt in CORRUPTIONS.values())]
        references += [others] * (1 + len(CORRUPTIONS))
    return CaptionSet.of(candidates, references)


def with_pictures(trial: Trial, folder: Path, config: CompositeConfig) -> Trial | None:
    """Return the part of a trial whose pictures are in the folder."""
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
