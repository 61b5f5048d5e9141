"""How far caplens's and NNEval's features get, whatever the learner: tables of two pages of docs/research.

    python tools/learned_pools.py DATA POOLS
    python -m tools.composite_limits DATA POOLS [--only bounds transfer spaces frontier ties nneval] [--no-page]

DATA holds the rating sets and flickr8k/images. Bounds are fitted on the ratings of each set itself (five folds of
pictures; needs scikit-learn), "transfer" on the ratings of THumB, "frontier" on those of two sets at once; none is
shipped. Features are kept in the cache: stopped and started again it goes on where it was.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tools.composite import CONFIG, PAGES, Extractor, Rated, load_by_seed, load_sets, network_logits, parser, show

from caplens.bench.score_store import trial_scores
from caplens.bench.statistics import MeanStatistic, PairStatistic, RatingStatistic
from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning
from caplens.core.types import Floats, unit
from caplens.core.workspace import Workspace
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics import load_metric
from caplens.metrics.base import Metric
from caplens.metrics.caplens_score import ENCODER, MEANING, in_joint_space, load_network
from caplens.metrics.cider import CiderD
from caplens.metrics.sent_sim import places, to_references
from caplens.readers import read_references
from caplens.storage.atomic import atomic_path
from caplens.storage.weights import shipped
from caplens.text.coco_idf import coco_val_idf
from caplens.training.composite import CompositeData, held_out

NNEVAL_SETS = (
    ("composite", "pearson", "Composite Pearson"),
    ("composite", "spearman", "Composite Spearman"),
    ("composite", "tau-b", "Composite τb"),
    ("pascal-50s-consensus", "mean", "Pascal-50S, consensus"),
    ("pascal-50s-pairs", "mean", "Pascal-50S, direct votes"),
)
FOLDS = 5
FLOORS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)


# Bounds: the best that a model fitted on the ratings themselves does on held-out pictures.


def bound(rated: Rated, inputs: Sequence[Floats]) -> float:
    """Ridge regression or boosted trees, whichever is better; logistic regression on pairs."""
    random = np.random.default_rng(0)
    fold = random.permutation(rated.task.units) % FOLDS
    if isinstance(rated.figure, RatingStatistic):
        return max(rated.value([made]) for made in _regressed(rated.figure, inputs[0], fold))
    assert isinstance(rated.figure, MeanStatistic)
    return rated.value(_preferred(rated.figure, inputs, fold))


def _regressed(figure: RatingStatistic, inputs: Floats, fold: Any) -> list[Floats]:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge

    scaled = (inputs - inputs.mean(axis=0)) / np.maximum(inputs.std(axis=0), 1e-9)
    trees = {"max_iter": 150, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 60, "random_state": 0}
    made = []
    for learner in (Ridge(10.0), HistGradientBoostingRegressor(**trees)):
        scores = np.zeros(len(inputs))
        for number in range(FOLDS):
            part = fold[figure.units] != number
            learner.fit(scaled[figure.rows[part]], figure.ratings[part])
            scores[figure.rows[~part]] = learner.predict(scaled[figure.rows[~part]])
        made.append(scores)
    return made


def _preferred(figure: MeanStatistic, inputs: Sequence[Floats], fold: Any) -> list[Floats]:
    from sklearn.linear_model import LogisticRegression

    pairs = [part for part in figure.parts if isinstance(part, PairStatistic)]
    better, worse, units = (np.concatenate([getattr(p, name) for p in pairs]) for name in ("better", "worse", "units"))
    spread = np.maximum(inputs[0].std(axis=0), 1e-9)
    made = [np.zeros(len(columns)) for columns in inputs]
    for number in range(FOLDS):
        part = fold[units] != number
        ahead = np.concatenate([(columns[better[part]] - columns[worse[part]]) / spread for columns in inputs])
        labels = np.repeat([1, 0], len(ahead))
        weights = LogisticRegression(fit_intercept=False).fit(np.concatenate([ahead, -ahead]), labels).coef_[0]
        for scores, columns in zip(made, inputs, strict=True):
            for side in (better[~part], worse[~part]):
                scores[side] = columns[side] / spread @ weights
    return made


def bounds_table(sets: Sequence[Rated], features: Callable[[Rated], Mapping[str, list[Floats]]]) -> str:
    rows: dict[str, list[str]] = {}
    for rated in sets:
        for name, inputs in features(rated).items():
            known = not any(np.isnan(columns).any() for columns in inputs)  # else pictures are missing
            rows.setdefault(name, []).append(f"{bound(rated, inputs):.1f}" if known else "–")
    lines = [f"| bound, fitted on the set's own ratings | {' | '.join(rated.title for rated in sets)} |"]
    lines += ["|---" * (1 + len(sets)) + "|", *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items())]
    return "\n".join(lines)


def nneval_inputs(rated: Rated) -> dict[str, list[Floats]]:
    """NNEval's eight features, from the scores that the bench keeps."""
    metrics: list[Metric] = [load_metric(name) for name in ("meteor", "wmd", "spice")]
    metrics += [load_metric(f"bleu-{n}") for n in range(1, 5)] + [CiderD(idf=coco_val_idf())]
    works = [Workspace(captions) for captions in rated.task.trials]
    made = [np.column_stack([trial_scores(metric, work).scores for metric in metrics]) for work in works]
    return {"NNEval's eight features": made}


def growing_inputs(rated: Rated, extractor: Extractor) -> dict[str, list[Floats]]:
    """More and more features, trial by trial."""
    made: dict[str, list[Floats]] = {}
    for captions in rated.task.trials:
        own, others = extractor.own(captions), extractor.others(captions, graphs=False)
        heavy = [name for name in others if any(encoder in name for encoder in extractor.encoders)]
        steps = {
            "caplens's features of meaning": [own[:, : len(MEANING)]],
            "and wording, PAC-S space": [column for name, column in others.items() if name not in heavy],
            **({f"and {', '.join(extractor.encoders)}": [others[name] for name in heavy]} if heavy else {}),
            "and the picture": [own[:, len(MEANING)]],
            "and InfoMetIC+": [with_picture("infometic-plus", captions)],
            "and references and picture over embedded-strong": [
                *strong_similarities(captions),
                with_picture("clip-s", captions, encoder="embedded-strong"),
            ],
        }
        so_far: list[Floats] = []
        for name, columns in steps.items():
            so_far += columns
            made.setdefault(name, []).append(np.column_stack(so_far))
    return made


def with_picture(name: str, captions: CaptionSet, **options: str) -> Floats:
    """Scores of a metric that looks at pictures, where every caption has one; else NaN, as the picture's cosine."""
    images = captions.images
    if images is None or any(image is None for image in images):
        return np.full(len(captions), np.nan)
    return trial_scores(load_metric(name, **options), Workspace(captions)).scores


def strong_similarities(captions: CaptionSet) -> tuple[Floats, Floats]:
    """Nearest reference and references together, as a picture shows them to the strong edition."""
    place = places(captions)
    vectors = load_sentence_encoder(ENCODER).encode(list(place)).astype(np.float64)
    return to_references(in_joint_space(vectors, "embedded-strong"), place, captions)


# Is it the way the weights are learned, or the space? Weights from ratings of other captions; less of what captions
# of one picture differ in; what ties do to τb.


def transfer_table(sets: Sequence[Rated], data: Path, extractor: Extractor) -> str:
    """Non-negative weights by least squares on THumB's ratings, in the place of those learned without ratings."""
    from scipy.optimize import nnls

    lines = [f"| fitted on THumB's | {' | '.join(rated.title for rated in sets)} |", "|---" * (1 + len(sets)) + "|"]
    for key in ("precision", "recall", "total"):
        (thumb,) = load_sets(data, [("thumb", f"pearson {key}, without human", key)])
        assert isinstance(thumb.figure, RatingStatistic)
        (own,) = thumb.of(lambda captions: extractor.own(captions)[:, : len(MEANING)])
        spread = own.std(axis=0)
        inputs, wanted = ((own - own.mean(axis=0)) / spread)[thumb.figure.rows], thumb.figure.ratings
        # Two hundredths of ridge: the features are alike.
        ridge = np.sqrt(0.02 * len(inputs)) * np.eye(inputs.shape[1])
        weights, _ = nnls(
            np.vstack([inputs, ridge]), np.concatenate([wanted - wanted.mean(), np.zeros(inputs.shape[1])])
        )

        def score(captions: CaptionSet, weights: Floats = weights / spread) -> Floats:
            made: Floats = extractor.own(captions)[:, : len(MEANING)] @ weights
            return made

        lines.append(f"| {key} | {' | '.join(f'{rated.value(rated.of(score)):.1f}' for rated in sets)} |")
    return "\n".join(lines)


def similarities_by_space(pools: Path) -> dict[str, Callable[[CaptionSet], Floats]]:
    """Nearest reference and references together, where what captions of one picture differ in counts less and less."""
    lent = list(read_references(pools / "flickr8k.json").values())[CONFIG.images :]
    encode = load_sentence_encoder(ENCODER).encode
    vectors = encode([text for texts in lent for text in texts[:5]]).astype(np.float64)
    made: dict[str, Callable[[CaptionSet], Floats]] = {}
    for title, space in (("all-MiniLM-L6-v2", lambda sentences: sentences), ("as a picture shows it", in_joint_space)):
        for power in (None, 0.0, 0.25, 0.5):
            change = forgetting(space(vectors).reshape(len(lent), 5, -1), power)

            def similar(captions: CaptionSet, space: Any = space, change: Any = change) -> Floats:
                place = places(captions)
                moved = change(space(encode(list(place)).astype(np.float64)))
                return np.column_stack(to_references(unit(moved), place, captions))

            how = "" if power is None else ", less its mean" + f", to the power −{power:g}" * (power > 0)
            made[title + how] = similar
    return made


def spaces_table(sets: Sequence[Rated], data: CompositeData, pools: Path) -> str:
    """Similarity alone, in each space."""
    trial, _ = data.trials[0]
    lines = [f"| space | held-out loss | {' | '.join(rated.title for rated in sets)} |", "|---" * (2 + len(sets)) + "|"]
    for title, similar in similarities_by_space(pools).items():
        loss, _ = held_out([(trial, similar(trial.captions))], CONFIG)
        values = [rated.value([made.sum(axis=1) for made in rated.of(similar)]) for rated in sets]
        lines.append(f"| {title} | {loss:.4f} | {' | '.join(f'{value:.1f}' for value in values)} |")
    return "\n".join(lines)


def frontier_table(sets: Sequence[Rated], extractor: Extractor, pools: Path, picture: Path | None) -> str:
    """One set of non-negative weights fitted on the ratings of Expert and Composite at once, from all the one to all
    the other: what no learner of such weights over these features can leave behind. Drawn, too."""
    from scipy.optimize import nnls

    forgotten = [similar for title, similar in similarities_by_space(pools).items() if title.endswith("−0.5")]

    def features(captions: CaptionSet) -> Floats:
        return np.column_stack(
            [extractor.own(captions)[:, : len(MEANING)], *(similar(captions) for similar in forgotten)]
        )

    inputs = {rated.title: rated.of(features) for rated in sets}
    fitted = [rated for rated in sets if rated.title in ("Expert τc", "Composite τc")]
    spread = np.concatenate([inputs[rated.title][0] for rated in fitted]).std(axis=0)

    def parts(rated: Rated, share: float) -> tuple[Floats, Floats]:
        assert isinstance(rated.figure, RatingStatistic)
        columns, wanted = inputs[rated.title][0][rated.figure.rows] / spread, rated.figure.ratings
        root = np.sqrt(share / len(wanted))
        return root * (columns - columns.mean(axis=0)), root * (wanted - wanted.mean()) / wanted.std()

    lines = [
        f"| weight of Composite | {' | '.join(rated.title for rated in sets)} |",
        "|---" * (1 + len(sets)) + "|",
    ]
    curve = []
    for share in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0):
        both = [parts(rated, part) for rated, part in zip(fitted, (1 - share, share), strict=True)]
        weights, _ = nnls(np.vstack([columns for columns, _ in both]), np.concatenate([wanted for _, wanted in both]))
        values = [rated.value([columns / spread @ weights for columns in inputs[rated.title]]) for rated in sets]
        curve.append(values)
        lines.append(f"| {share:g} | {' | '.join(f'{value:.1f}' for value in values)} |")
    if picture is not None:
        network = load_network(shipped("caplens"))
        own = {rated.title: rated.of(extractor.own) for rated in fitted}
        points = {
            "sent-sim": [rated.value([made[:, :2].sum(axis=1) for made in own[rated.title]]) for rated in fitted],
            "caplens": [rated.value(network_logits(network, own[rated.title], (), picture=False)) for rated in fitted],
        }
        titles = [rated.title for rated in sets]
        axes = [titles.index(rated.title) for rated in fitted]
        draw(picture, np.array(curve)[:, axes], points)
    return "\n".join(lines)


def draw(path: Path, curve: Floats, points: Mapping[str, Sequence[float]]) -> None:
    """Expert across, Composite upwards: the curve, what is shipped, and the goals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(curve[:, 0], curve[:, 1], "o-", color="#888", label="fitted on both sets' ratings")
    for (name, (across, up)), colour in zip(points.items(), ("#b36b00", "#0b5cad"), strict=True):
        axes.plot(across, up, "o", color=colour, label=f"{name}, text only")
    axes.axvline(57.9, color="#333", linestyle=":", label="goal on Expert (that on Composite is 62)")
    axes.set_xlabel("Flickr8k-Expert, τc")
    axes.set_ylabel("Composite, τc")
    axes.legend(loc="lower left", frameon=False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})


def forgetting(pictures: Floats, power: float | None) -> Callable[[Floats], Floats]:
    """Vectors less the mean, times the covariance of captions around their picture (pictures, 5, width) to −power/2."""
    if power is None:
        return lambda vectors: vectors
    around = (pictures - pictures.mean(axis=1, keepdims=True)).reshape(-1, pictures.shape[2])
    spread, axes = np.linalg.eigh(around.T @ around / len(around))
    # Three hundredths of the mean spread: directions that hardly occur are not blown up.
    scaled = axes * (spread + 0.03 * spread.mean()) ** (-power / 2)
    middle = pictures.mean(axis=(0, 1))
    return lambda vectors: (vectors - middle) @ scaled


def ties_table(sets: Sequence[Rated], extractor: Extractor) -> str:
    """caplens as it is, text only, with every score below a floor raised to it."""
    network = load_network(shipped("caplens"))
    titles = [f"{rated.title} (ties)" for rated in sets]
    lines = [f"| every score below | {' | '.join(titles)} |", "|---" * (1 + len(sets)) + "|"]
    scored = [network_logits(network, rated.of(extractor.own), (), picture=False) for rated in sets]
    for floor in FLOORS:
        least = np.log(floor / (1 - floor)) if floor else -np.inf
        cells = []
        for rated, logits in zip(sets, scored, strict=True):
            tied = np.mean(np.concatenate(logits) < least)
            cells.append(f"{rated.value([np.maximum(one, least) for one in logits]):.1f} ({tied:.0%})")
        lines.append(f"| {floor or 'none'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    given = parser(__doc__, ("bounds", "transfer", "spaces", "frontier", "ties", "nneval")).parse_args()
    warnings.simplefilter("ignore", CaplensWarning)
    data = load_by_seed(given.data, given.pools, seeds=1)[1]
    extractor = Extractor(data.bank, tuple(given.encoders))
    sets = load_sets(given.data)
    picture = None if given.no_page else PAGES / "composite-frontier.svg"
    tables: dict[str, tuple[str, Callable[[], str]]] = {
        "bounds": ("composite", lambda: bounds_table(sets, lambda rated: growing_inputs(rated, extractor))),
        "transfer": ("composite", lambda: transfer_table(sets, given.data, extractor)),
        "spaces": ("composite", lambda: spaces_table(sets, data, given.pools)),
        "frontier": ("composite", lambda: frontier_table(sets, extractor, given.pools, picture)),
        "ties": ("composite", lambda: ties_table(sets, extractor)),
        "nneval": ("nneval", lambda: bounds_table(load_sets(given.data, NNEVAL_SETS), nneval_inputs)),
    }
    for name in given.only:
        page, make = tables[name]
        show(name, make(), None if given.no_page else PAGES / f"{page}.md")


if __name__ == "__main__":
    main()
