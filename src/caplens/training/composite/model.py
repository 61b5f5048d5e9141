"""The composite's model: non-negative weights that tell captions of a picture from captions of similar pictures.

Meaning is fitted first, then the picture, then well-formedness, with which an honest caption beats its gamed versions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import rankdata

from caplens.core.types import Floats
from caplens.metrics._mlp import FeatureMLP, logistic
from caplens.metrics._well_formedness import WELL_FORMEDNESS
from caplens.metrics.caplens_score import FEATURES, MEANING, PICTURE, foreseen
from caplens.training.composite.config import CompositeConfig
from caplens.training.composite.data import CompositeData, Trial
from caplens.training.gamed import CORRUPTIONS

SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Of a weight of well-formedness, tried in search of the cheapest that is strict enough."""
COMBINATIONS_AT_ONCE = 512


def fit(data: CompositeData, config: CompositeConfig, leave_out: Sequence[str] = ()) -> FeatureMLP:
    """Return the fitted model; a feature that is left out says nothing (ablation)."""
    kept = np.array([name not in leave_out for name in FEATURES], dtype=np.float64)
    meaning_kept, form_kept = kept[: len(MEANING)], kept[len(MEANING) + 1 :]
    model = fit_meaning([(trial, columns * meaning_kept) for trial, columns in data.trials], config)
    expected, picture_weight = np.zeros(len(MEANING) + 1), 0.0
    if data.with_pictures and PICTURE not in leave_out:
        columns = np.concatenate([columns for _, columns, _ in data.with_pictures]) * meaning_kept
        cosines = np.concatenate([cosines for _, _, cosines in data.with_pictures])
        trials = [trial for trial, _, _ in data.with_pictures]
        expected, picture_weight = fit_picture(model, trials, columns, cosines)
    honest = HonestCaptions(
        model.logits(np.concatenate([columns for _, columns in data.trials]) * meaning_kept),
        data.trial_form * form_kept,
        np.concatenate([trial.right for trial, _ in data.trials]).astype(np.float64),
        np.concatenate([trial.weights() for trial, _ in data.trials]),
    )
    gamed_logits = model.logits(data.gamed_meaning * meaning_kept)
    form_weights = fit_well_formedness(gamed_logits, data.gamed_form * form_kept, honest, config)
    weights = np.concatenate([model.weights, [picture_weight], form_weights])
    rest = 1 + len(WELL_FORMEDNESS)
    return FeatureMLP(
        FEATURES,
        layers=((weights[:, None], np.array([model.bias])),),
        low=np.concatenate([model.mean - model.spread, -np.ones(rest)]),
        high=np.concatenate([model.mean + model.spread, np.ones(rest)]),
        usual=np.concatenate([model.mean, np.zeros(rest)]),
        about={**model.about, **data.facts, "seed": str(config.seed), "edition": config.edition},
        extra={"bank": data.bank, "foreseen": expected},
    )


@dataclass(frozen=True)
class MeaningModel:
    """A logistic model over standardized features of meaning."""

    mean: Floats
    spread: Floats
    weights: Floats
    bias: float
    about: dict[str, str]

    def logits(self, features: Floats) -> Floats:
        """Return the model's output before the logistic function."""
        logits: Floats = (features - self.mean) / self.spread @ self.weights + self.bias
        return logits


def fit_meaning(trials: Sequence[tuple[Trial, Floats]], config: CompositeConfig) -> MeaningModel:
    """Return weights that tell right from wrong captions; the figures in `about` are of held-out pictures."""
    mean, spread, inputs, right, weights, _ = _standardized(trials)
    fitted = fit_logistic(inputs, right, weights, config.decay)
    loss, orders = held_out(trials, config)
    about = {"held_out_loss": f"{loss:.4f}", "held_out_right_order": " ".join(f"{order:.4f}" for order in orders)}
    return MeaningModel(mean, spread, fitted[:-1], float(fitted[-1]), about)


def held_out(
    trials: Sequence[tuple[Trial, Floats]], config: CompositeConfig, pictures: int | None = None
) -> tuple[float, list[float]]:
    """Return cross entropy and, trial by trial, the share of pairs in the right order, on pictures not trained on.

    With `pictures`, only so many of all pictures are trained on where they are not held out: the learning curve.
    """
    _, _, inputs, right, weights, images = _standardized(trials)
    count = images.max() + 1
    random = np.random.default_rng(config.seed)
    fold = random.integers(config.folds, size=count)[images]
    used = (random.permutation(count) < (count if pictures is None else pictures))[images]
    logits = np.zeros(len(right))
    for number in range(config.folds):
        part, rest = used & (fold != number), fold == number
        fitted = fit_logistic(inputs[part], right[part], weights[part], config.decay)
        logits[rest] = inputs[rest] @ fitted[:-1] + fitted[-1]
    loss = float((weights * _cross_entropy(logits, right)).sum() / weights.sum())
    ends = np.cumsum([len(columns) for _, columns in trials])
    return loss, [
        right_order(logits[end - len(columns) : end], trial.right)
        for (trial, columns), end in zip(trials, ends, strict=True)
    ]


def _standardized(
    trials: Sequence[tuple[Trial, Floats]],
) -> tuple[Floats, Floats, Floats, Floats, Floats, NDArray[np.intp]]:
    """Mean and spread of the features; standardized features, labels, weights and picture of every caption."""
    features = np.concatenate([columns for _, columns in trials])
    right = np.concatenate([trial.right for trial, _ in trials]).astype(np.float64)
    weights = np.concatenate([trial.weights() for trial, _ in trials])
    images = np.unique(np.concatenate([trial.images for trial, _ in trials]), return_inverse=True)[1]
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread > 0, spread, 1)
    return mean, spread, (features - mean) / spread, right, weights, images


def fit_picture(
    model: MeaningModel, trials: Sequence[Trial], features: Floats, cosines: Floats
) -> tuple[Floats, float]:
    """Return what the references foresee of the picture's cosine, and the weight of what they do not."""
    known = ~np.isnan(cosines)
    right = np.concatenate([trial.right for trial in trials]).astype(np.float64)[known]
    weights = np.concatenate([trial.weights() for trial in trials])[known]
    columns = np.column_stack([features, np.ones(len(features))])[known]
    expected = np.linalg.lstsq(columns, cosines[known], rcond=None)[0].astype(np.float64)
    beyond = cosines[known] - foreseen(features[known], expected)
    spread = beyond.std()
    fitted = fit_logistic(np.column_stack([model.logits(features[known]), beyond / spread]), right, weights, 1e-4)
    # The model of meaning keeps its scale, so that scores with and without a picture can be compared.
    return expected, float(fitted[1] / fitted[0] / spread)


@dataclass(frozen=True)
class HonestCaptions:
    """Captions of the trials, which pay where well-formedness is too strict."""

    logits: Floats
    form: Floats
    right: Floats
    weights: Floats

    def cost(self, form_weights: Floats) -> Floats:
        """Return the cross entropy of telling right from wrong ones, for each column of weights."""
        marked = (self.form < 0).any(axis=1)
        logits = self.logits[marked, None] + self.form[marked] @ form_weights
        return np.asarray(self.weights[marked] @ _cross_entropy(logits, self.right[marked, None]))


def fit_well_formedness(logits: Floats, form: Floats, honest: HonestCaptions, config: CompositeConfig) -> Floats:
    """Return the weights of well-formedness with which an honest caption beats its gamed versions."""
    each = 1 + len(CORRUPTIONS)
    by_picture = logits.reshape(-1, each)
    form_by_picture = form.reshape(len(by_picture), each, -1)
    lead = (by_picture[:, :1] - by_picture[:, 1:]).reshape(-1)
    form_lead = (form_by_picture[:, :1] - form_by_picture[:, 1:]).reshape(len(lead), -1)
    spread = np.maximum(np.sqrt((form_lead**2).mean(axis=0)), 1e-9)
    fitted = fit_logistic(form_lead / spread, np.ones(len(lead)), np.ones(len(lead)), config.decay, lead)
    most = np.asarray(fitted[:-1] / spread)

    # Likelihood asks for certainty, which honest captions with rare words would pay for: of all that is strict enough
    # the one that costs them least.
    def won(weights: Floats) -> Floats:
        beaten = (lead[:, None] + form_lead @ weights > 0).reshape(len(by_picture), len(CORRUPTIONS), -1)
        return np.asarray(beaten.mean(axis=0))

    enough = won(most[:, None]) - config.given_up
    shares = np.array(list(itertools.product(*[SHARES if weight > 0 else (0.0,) for weight in most]))).T
    cheapest, lowest_cost = most, np.inf
    for start in range(0, shares.shape[1], COMBINATIONS_AT_ONCE):
        candidates = most[:, None] * shares[:, start : start + COMBINATIONS_AT_ONCE]
        candidates = candidates[:, (won(candidates) >= enough).all(axis=0)]
        costs = honest.cost(candidates)
        if len(costs) and costs.min() < lowest_cost:
            cheapest, lowest_cost = candidates[:, costs.argmin()], costs.min()
    return cheapest


def fit_logistic(inputs: Floats, labels: Floats, weights: Floats, decay: float, offset: Floats | None = None) -> Floats:
    """Return non-negative weights and, where there is no offset, a free bias, by maximum likelihood."""
    total = weights.sum()

    def objective(values: Floats) -> tuple[float, Floats]:
        logits = inputs @ values[:-1] + (values[-1] if offset is None else offset)
        slope = weights * (logistic(logits) - labels) / total
        loss = (weights * _cross_entropy(logits, labels)).sum() / total + decay * (values[:-1] ** 2).sum()
        return float(loss), np.append(inputs.T @ slope + 2 * decay * values[:-1], slope.sum() if offset is None else 0)

    start = np.append(np.full(inputs.shape[1], 0.1), 0.0)
    bounds = [(0.0, None)] * inputs.shape[1] + [(None, None)]
    fitted: Floats = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return fitted


def _cross_entropy(logits: Floats, labels: Floats) -> Floats:
    return np.asarray(np.logaddexp(0, logits) - labels * logits)


def right_order(scores: Floats, right: NDArray[np.bool_]) -> float:
    """Return the share of pairs of a right and a wrong caption in the right order (the area under the ROC curve).

    >>> right_order(np.array([0.9, 0.2, 0.5]), np.array([True, False, False]))
    1.0
    """
    count = int(right.sum())
    above = rankdata(scores)[right].sum() - count * (count + 1) / 2
    return float(above / (count * (len(right) - count)))
