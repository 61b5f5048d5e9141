"""Train the composite to tell captions of a picture from captions of similar pictures, and honest from gamed ones.

No rating is used, nor who wrote a caption.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.progress import Progress, silent
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics._mlp import FeatureMLP, logistic
from caplens.metrics._well_formedness import WELL_FORMEDNESS, well_formedness, well_formedness_identity
from caplens.metrics.caplens_score import (
    ENCODER,
    FEATURES,
    MEANING,
    PICTURE,
    foreseen,
    meaning,
    meaning_identity,
    picture_fit,
    picture_identity,
)
from caplens.storage.identity import Identity
from caplens.training.composite_trials import (
    FEWEST,
    Captions,
    CompositeConfig,
    Trial,
    gamed_set,
    machine_trial,
    make_group,
    people_trial,
    with_pictures,
)
from caplens.training.corruptions import CORRUPTIONS
from caplens.training.features import cached_features
from caplens.training.trainer import TrainingRun

FACTORS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Material:
    """Everything the model is fitted to: captions and their features."""

    trials: list[tuple[Trial, Floats]]
    seen: list[tuple[Trial, Floats, Floats]]
    """Trials with pictures: features of meaning, and the cosine with the picture."""
    gamed: Floats
    behaved: Floats
    """Features of meaning and well_formedness of honest captions, each followed by what was made of it."""
    honest: Floats
    """Manners of the trials' captions."""
    bank: NDArray[np.float16]

    @property
    def facts(self) -> dict[str, str]:
        return {
            "images": str(len({image for trial, _ in self.trials for image in trial.images})),
            "captions": str(sum(len(trial.captions) for trial, _ in self.trials)),
            "pictures": str(sum(len(set(trial.images)) for trial, _, _ in self.seen)),
            "data": Identity.of([self.trials, self.seen, self.gamed, self.behaved, self.honest, self.bank]).digest[:16],
        }


def gather(
    human: Sequence[Captions],
    machine: Captions,
    usual: Captions,
    images: str | os.PathLike[str] | None,
    config: CompositeConfig,
    progress: Progress = silent,
) -> Material:
    """Draw the captions and compute their features, or read them from the cache."""
    groups = [make_group(each, config) for each in human]
    bank = load_sentence_encoder(ENCODER).encode([texts[0] for texts in usual.values()]).astype(np.float16)

    def features(captions: CaptionSet, identity: Identity, compute: Callable[[Workspace], Floats]) -> Floats:
        return cached_features(captions, identity, lambda some: compute(Workspace(some, progress)))

    def of_meaning(captions: CaptionSet) -> Floats:
        return features(captions, meaning_identity(bank), lambda work: meaning(work, bank))

    def of_form(captions: CaptionSet) -> Floats:
        return features(captions, well_formedness_identity(), well_formedness)

    def of_picture(captions: CaptionSet) -> Floats:
        return features(captions, picture_identity(), picture_fit)

    people = [people_trial(group, config) for group in groups]
    machines = [made for group in groups if (made := machine_trial(group, machine, config)) is not None]
    seen = [made for trial in people if images is not None and (made := with_pictures(trial, Path(images), config))]
    gamed = [gamed_set(each, config) for each in (*human, usual)]
    return Material(
        trials=[(trial, of_meaning(trial.captions)) for trial in (*people, *machines)],
        seen=[(trial, of_meaning(trial.captions), of_picture(trial.captions)) for trial in seen],
        gamed=np.concatenate([of_meaning(captions) for captions in gamed]),
        behaved=np.concatenate([of_form(captions) for captions in gamed]),
        honest=np.concatenate([of_form(trial.captions) for trial in (*people, *machines)]),
        bank=bank,
    )


def fit(material: Material, config: CompositeConfig, leave_out: Sequence[str] = ()) -> FeatureMLP:
    """Meaning first, then the picture, then well_formedness; a feature that is left out says nothing (ablation)."""
    kept = np.array([name not in leave_out for name in FEATURES], dtype=np.float64)
    of_meaning, of_manners = kept[: len(MEANING)], kept[len(MEANING) + 1 :]
    model = fit_meaning([(trial, columns * of_meaning) for trial, columns in material.trials], config)
    expected, weight = np.zeros(len(MEANING) + 1), 0.0
    if material.seen and PICTURE not in leave_out:
        columns = np.concatenate([columns for _, columns, _ in material.seen]) * of_meaning
        cosines = np.concatenate([cosines for _, _, cosines in material.seen])
        expected, weight = fit_picture(model, [trial for trial, _, _ in material.seen], columns, cosines)
    honest = Honest(
        model.logits(np.concatenate([columns for _, columns in material.trials]) * of_meaning),
        material.honest * of_manners,
        np.concatenate([trial.right for trial, _ in material.trials]).astype(np.float64),
        np.concatenate([trial.weights() for trial, _ in material.trials]),
    )
    strict = fit_manners(model.logits(material.gamed * of_meaning), material.behaved * of_manners, honest, config)
    rest = 1 + len(WELL_FORMEDNESS)
    return FeatureMLP(
        FEATURES,
        layers=((np.concatenate([model.weights, [weight], strict])[:, None], np.array([model.bias])),),
        low=np.concatenate([model.mean - model.spread, -np.ones(rest)]),
        high=np.concatenate([model.mean + model.spread, np.ones(rest)]),
        usual=np.concatenate([model.mean, np.zeros(rest)]),
        about={**model.about, **material.facts, "seed": str(config.seed)},
        extra={"bank": material.bank, "foreseen": expected},
    )


def train_composite(
    human: Sequence[Captions],
    machine: Captions,
    usual: Captions,
    images: str | os.PathLike[str] | None,
    folder: str | os.PathLike[str],
    config: CompositeConfig | None = None,
    progress: Progress = silent,
) -> FeatureMLP:
    """Fit the model on collections of captions; writes `caplens.safetensors` and the learning curve into the folder.

    The first caption of every picture in `usual`, none of which is in the collections, makes the bank. `images` is a
    folder with pictures under the names that the captions have; without any, the picture counts nothing. Interrupted
    and started again, it goes on with the features that the cache holds.
    """
    config = config or CompositeConfig()
    material = gather(human, machine, usual, images, config, progress)
    run = TrainingRun(folder, {**asdict(config), **material.facts})
    run.resume()  # the curve starts anew
    for count in curve_sizes(int(material.facts["images"])):
        loss, orders = held_out(material.trials, config, count)
        run.log(pictures=count, held_out_loss=loss, held_out_right_order=float(np.mean(orders)))
    network = fit(material, config)
    network.save(run.folder / "caplens.safetensors")
    run.finish(x="pictures")
    return network


def curve_sizes(images: int) -> list[int]:
    """How many pictures the learning curve trains on: all, half, a quarter … of them.

    >>> curve_sizes(964)
    [30, 60, 120, 241, 482, 964]
    """
    return [images // 2**step for step in reversed(range(images.bit_length())) if images // 2**step >= FEWEST]


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
    mean, spread, inputs, right, weights, _ = _standardised(trials)
    found = fit_logistic(inputs, right, weights, config.decay)
    loss, orders = held_out(trials, config)
    about = {"held_out_loss": f"{loss:.4f}", "held_out_right_order": " ".join(f"{order:.4f}" for order in orders)}
    return Model(mean, spread, found[:-1], float(found[-1]), about)


def held_out(
    trials: Sequence[tuple[Trial, Floats]], config: CompositeConfig, pictures: int | None = None
) -> tuple[float, list[float]]:
    """Cross entropy and, trial by trial, share of pairs in the right order, on pictures that were not trained on.

    With `pictures`, only so many of all pictures are trained on where they are not held out: the learning curve.
    """
    _, _, inputs, right, weights, images = _standardised(trials)
    count = images.max() + 1
    random = np.random.default_rng(config.seed)
    fold = random.integers(config.folds, size=count)[images]
    used = (random.permutation(count) < (count if pictures is None else pictures))[images]
    logits = np.zeros(len(right))
    for number in range(config.folds):
        part, rest = used & (fold != number), fold == number
        found = fit_logistic(inputs[part], right[part], weights[part], config.decay)
        logits[rest] = inputs[rest] @ found[:-1] + found[-1]
    loss = float((weights * _cross_entropy(logits, right)).sum() / weights.sum())
    ends = np.cumsum([len(columns) for _, columns in trials])
    return loss, [
        right_order(logits[end - len(columns) : end], trial.right)
        for (trial, columns), end in zip(trials, ends, strict=True)
    ]


def _standardised(
    trials: Sequence[tuple[Trial, Floats]],
) -> tuple[Floats, Floats, Floats, Floats, Floats, NDArray[np.intp]]:
    """Mean and spread of the features; standardised features, labels, weights and picture of every caption."""
    features = np.concatenate([columns for _, columns in trials])
    right = np.concatenate([trial.right for trial, _ in trials]).astype(np.float64)
    weights = np.concatenate([trial.weights() for trial, _ in trials])
    images = np.unique(np.concatenate([trial.images for trial, _ in trials]), return_inverse=True)[1]
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread > 0, spread, 1)
    return mean, spread, (features - mean) / spread, right, weights, images


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


@dataclass(frozen=True)
class Honest:
    """Captions of the trials, which pay where well_formedness are too strict."""

    logits: Floats
    behaved: Floats
    right: Floats
    weights: Floats

    def cost(self, strict: Floats) -> Floats:
        """Cross entropy of telling right from wrong ones, for each column of well_formedness' weights."""
        rude = (self.behaved < 0).any(axis=1)
        logits = self.logits[rude, None] + self.behaved[rude] @ strict
        return np.asarray(self.weights[rude] @ _cross_entropy(logits, self.right[rude, None]))


def fit_manners(logits: Floats, behaved: Floats, honest: Honest, config: CompositeConfig) -> Floats:
    """Weights of the well_formedness with which an honest caption beats what was made of it."""
    each = 1 + len(CORRUPTIONS)
    lead = logits.reshape(-1, each)
    values = behaved.reshape(len(lead), each, -1)
    ahead = (lead[:, :1] - lead[:, 1:]).reshape(-1)
    better = (values[:, :1] - values[:, 1:]).reshape(len(ahead), -1)
    spread = np.maximum(np.sqrt((better**2).mean(axis=0)), 1e-9)
    found = fit_logistic(better / spread, np.ones(len(ahead)), np.ones(len(ahead)), config.decay, ahead)
    most = np.asarray(found[:-1] / spread)

    # Likelihood asks for certainty, which honest captions with rare words would pay for: of all that is strict enough
    # the one that costs them least.
    def won(strict: Floats) -> Floats:
        beaten = (ahead[:, None] + better @ strict > 0).reshape(len(lead), len(CORRUPTIONS), -1)
        return np.asarray(beaten.mean(axis=0))

    enough = won(most[:, None]) - config.given_up
    factors = np.array(list(itertools.product(*[FACTORS if weight > 0 else (0.0,) for weight in most]))).T
    least, cheapest = most, np.inf
    for start in range(0, factors.shape[1], 512):
        some = most[:, None] * factors[:, start : start + 512]
        some = some[:, (won(some) >= enough).all(axis=0)]
        costs = honest.cost(some)
        if len(costs) and costs.min() < cheapest:
            least, cheapest = some[:, costs.argmin()], costs.min()
    return least


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
