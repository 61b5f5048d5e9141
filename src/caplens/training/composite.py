"""Train the composite to tell captions of a picture from captions of similar pictures, and honest from gamed ones.

No rating is used, nor who wrote a caption: people's captions are held against people's, machines' against machines'.
A caption is right for the picture it was made for, and counted wrong for the pictures most like it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caplens.captions import CaptionSet
from caplens.encoders.sentence import load_sentence_encoder
from caplens.errors import InputError
from caplens.metrics.base import Floats, Progress, Workspace, silent
from caplens.metrics.composite import ENCODER, FEATURES, MANNERS, MEANING, foreseen, manners, meaning, picture_fit
from caplens.metrics.network import Network, logistic
from caplens.training.corruptions import CORRUPTIONS
from caplens.training.features import cached_features
from caplens.training.run import TrainingRun

Captions = Mapping[str, Sequence[str]]
NEAR = (1, 2, 4, 8, 16, 32, 64, 128)
"""Whose captions are wrong for a picture: those of the nearest, second nearest … one, by what people say of them."""
NEAR_MACHINES = (1, 4, 16, 64)
MACHINES = 3
FACTORS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
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
    given_up: float = 0.02
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


def train_composite(
    human: Sequence[Captions],
    machine: Captions,
    usual: Captions,
    images: str | os.PathLike[str] | None,
    folder: str | os.PathLike[str],
    config: CompositeConfig | None = None,
    progress: Progress = silent,
) -> Network:
    """Fit the model on collections of captions; writes `caplens.safetensors` into the folder.

    The first caption of every picture in `usual`, none of which is in the collections, makes the bank. `images` is a
    folder with pictures under the names that the captions have; without any, the picture counts nothing.
    """
    config = config or CompositeConfig()
    groups = [make_group(each, config) for each in human]
    bank = load_sentence_encoder(ENCODER).encode([texts[0] for texts in usual.values()]).astype(np.float16)

    def features(captions: CaptionSet, name: str, compute: Callable[[Workspace], Floats]) -> Floats:
        identity = f"composite 5 {name} {hash_of(bank)}"
        return cached_features(captions, identity, lambda some: compute(Workspace(some, progress)))

    def of_meaning(captions: CaptionSet) -> Floats:
        return features(captions, "meaning", lambda work: meaning(work, bank))

    people = [people_trial(group, config) for group in groups]
    machines = [made for group in groups if (made := machine_trial(group, machine, config)) is not None]
    model = fit_meaning([(trial, of_meaning(trial.captions)) for trial in (*people, *machines)], config)
    seen = [made for trial in people if images is not None and (made := _with_pictures(trial, Path(images), config))]
    expected, weight = np.zeros(len(MEANING) + 1), 0.0
    if seen:
        cosines = np.concatenate([features(trial.captions, "picture", picture_fit) for trial in seen])
        columns = np.concatenate([of_meaning(trial.captions) for trial in seen])
        expected, weight = fit_picture(model, seen, columns, cosines)
    gamed = [gamed_set(each, config) for each in (*human, usual)]
    columns = np.concatenate([of_meaning(captions) for captions in gamed])
    behaved = np.concatenate([features(captions, "manners 4", manners) for captions in gamed])
    strict = fit_manners(model.logits(columns), behaved, config)

    about = {
        **model.about,
        "images": str(sum(len(group.judged) for group in groups)),
        "captions": str(sum(len(trial.captions) for trial in (*people, *machines))),
        "pictures": str(sum(len(set(trial.images)) for trial in seen)),
        "seed": str(config.seed),
    }
    run = TrainingRun(folder, {**asdict(config), **about})
    rest = 1 + len(MANNERS)
    network = Network(
        FEATURES,
        layers=((np.concatenate([model.weights, [weight], strict])[:, None], np.array([model.bias])),),
        low=np.concatenate([model.mean - model.spread, -np.ones(rest)]),
        high=np.concatenate([model.mean + model.spread, np.ones(rest)]),
        usual=np.concatenate([model.mean, np.zeros(rest)]),
        about=about,
        extra={"bank": bank, "foreseen": expected},
    )
    network.save(run.folder / "caplens.safetensors")
    return network


def hash_of(bank: NDArray[np.float16]) -> str:
    """Names a bank, for the cache of features."""
    import hashlib

    return hashlib.sha256(bank.tobytes()).hexdigest()[:12]


def _with_pictures(trial: Trial, folder: Path, config: CompositeConfig) -> Trial | None:
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


@dataclass(frozen=True)
class Model:
    """A logistic model over standardised features of meaning."""

    mean: Floats
    spread: Floats
    weights: Floats
    bias: float
    about: dict[str, str]

    def logits(self, features: Floats) -> Floats:
        made: Floats = (features - self.mean) / self.spread @ self.weights + self.bias
        return made


def fit_meaning(trials: Sequence[tuple[Trial, Floats]], config: CompositeConfig) -> Model:
    """Positive weights that tell right from wrong captions; the figures in `about` are of held-out pictures."""
    features = np.concatenate([columns for _, columns in trials])
    right = np.concatenate([trial.right for trial, _ in trials]).astype(np.float64)
    weights = np.concatenate([trial.weights() for trial, _ in trials])
    images = np.unique(np.concatenate([trial.images for trial, _ in trials]), return_inverse=True)[1]
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread > 0, spread, 1)
    inputs = (features - mean) / spread
    fold = np.random.default_rng(config.seed).integers(config.folds, size=images.max() + 1)[images]
    held_out = np.zeros(len(right))
    for number in range(config.folds):
        part = fold != number
        found = fit_logistic(inputs[part], right[part], weights[part], config.decay)
        held_out[~part] = inputs[~part] @ found[:-1] + found[-1]
    found = fit_logistic(inputs, right, weights, config.decay)
    loss = (weights * _cross_entropy(held_out, right)).sum() / weights.sum()
    ends = np.cumsum([len(columns) for _, columns in trials])
    orders = [
        right_order(held_out[end - len(columns) : end], trial.right)
        for (trial, columns), end in zip(trials, ends, strict=True)
    ]
    about = {"held_out_loss": f"{loss:.4f}", "held_out_right_order": " ".join(f"{order:.4f}" for order in orders)}
    return Model(mean, spread, found[:-1], float(found[-1]), about)


def fit_picture(model: Model, trials: Sequence[Trial], features: Floats, cosines: Floats) -> tuple[Floats, float]:
    """What the references foresee of the picture's cosine, and the weight of what they do not."""
    known = ~np.isnan(cosines)
    right = np.concatenate([trial.right for trial in trials]).astype(np.float64)[known]
    weights = np.concatenate([trial.weights() for trial in trials])[known]
    columns = np.column_stack([features, np.ones(len(features))])[known]
    expected = np.linalg.lstsq(columns, cosines[known], rcond=None)[0].astype(np.float64)
    beyond = cosines[known] - foreseen(features[known], expected)
    spread = beyond.std()
    found = fit_logistic(np.column_stack([model.logits(features[known]), beyond / spread]), right, weights, 1e-4)
    # The model of meaning keeps its scale, so that scores with and without a picture can be compared.
    return expected, float(found[1] / found[0] / spread)


def fit_manners(logits: Floats, behaved: Floats, config: CompositeConfig) -> Floats:
    """Weights of the manners with which an honest caption beats what was made of it."""
    each = 1 + len(CORRUPTIONS)
    lead = logits.reshape(-1, each)
    values = behaved.reshape(len(lead), each, -1)
    ahead = (lead[:, :1] - lead[:, 1:]).reshape(-1)
    better = (values[:, :1] - values[:, 1:]).reshape(len(ahead), -1)
    spread = np.maximum(np.sqrt((better**2).mean(axis=0)), 1e-9)
    found = fit_logistic(better / spread, np.ones(len(ahead)), np.ones(len(ahead)), config.decay, ahead)
    weights = np.asarray(found[:-1] / spread)

    # Likelihood asks for certainty, which honest captions with rare words would pay for: no more than is needed.
    def won(some: Floats) -> Floats:
        return np.asarray((ahead + better @ some > 0).reshape(len(lead), -1).mean(axis=0))

    enough = won(weights) - config.given_up
    for place in range(len(weights)):
        for factor in FACTORS:
            less = np.where(np.arange(len(weights)) == place, factor * weights, weights)
            if (won(less) >= enough).all():
                weights = less
                break
    return weights


def fit_logistic(inputs: Floats, labels: Floats, weights: Floats, decay: float, offset: Floats | None = None) -> Floats:
    """Non-negative weights and, where there is no offset, a free bias, by maximum likelihood."""
    from scipy.optimize import minimize

    total = weights.sum()

    def objective(values: Floats) -> tuple[float, Floats]:
        logits = inputs @ values[:-1] + (values[-1] if offset is None else offset)
        slope = weights * (logistic(logits) - labels) / total
        loss = (weights * _cross_entropy(logits, labels)).sum() / total + decay * (values[:-1] ** 2).sum()
        return float(loss), np.append(inputs.T @ slope + 2 * decay * values[:-1], slope.sum() if offset is None else 0)

    start = np.append(np.full(inputs.shape[1], 0.1), 0.0)
    bounds = [(0.0, None)] * inputs.shape[1] + [(None, None)]
    found: Floats = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found


def _cross_entropy(logits: Floats, labels: Floats) -> Floats:
    return np.asarray(np.logaddexp(0, logits) - labels * logits)


def right_order(scores: Floats, right: NDArray[np.bool_]) -> float:
    """The share of pairs of a right and a wrong caption that are in the right order (the area under the ROC curve).

    >>> right_order(np.array([0.9, 0.2, 0.5]), np.array([True, False, False]))
    1.0
    """
    from scipy.stats import rankdata

    count = int(right.sum())
    above = rankdata(scores)[right].sum() - count * (count + 1) / 2
    return float(above / (count * (len(right) - count)))
