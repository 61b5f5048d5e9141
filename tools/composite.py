"""What each of caplens's features is worth: tried one by one, and left out. Two tables of docs/research/composite.md.

    python tools/learned_pools.py DATA POOLS
    python tools/composite.py DATA POOLS [--seeds 3] [--only features ablation] [--no-page]

DATA holds the rating sets and flickr8k/images. Everything is trained on the pools alone. Features stay in the cache:
stopped and started again it goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from caplens.bench.base import Task, find_sets
from caplens.bench.data import DataFolders
from caplens.bench.score_store import trial_scores
from caplens.bench.statistics import AgreementStatistic, Scored, Trial
from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning
from caplens.core.types import Floats, unit
from caplens.core.workspace import Workspace
from caplens.encoders.embedded import heads_path, read_heads
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics import load_metric
from caplens.metrics._mlp import FeatureMLP
from caplens.metrics._well_formedness import WELL_FORMEDNESS, well_formedness, well_formedness_identity
from caplens.metrics.caplens_score import (
    ENCODER,
    FEATURES,
    MEANING,
    PICTURE,
    CaplensScore,
    foreseen,
    meaning,
    meaning_identity,
    picture_fit,
    picture_identity,
)
from caplens.metrics.cider import CiderR
from caplens.metrics.sent_sim import places, similarities, to_references
from caplens.metrics.spice import Spice
from caplens.readers import read_references
from caplens.storage.atomic import write_atomically
from caplens.storage.digests import content_digest
from caplens.storage.identity import Identity
from caplens.storage.weights import model_digest, shipped
from caplens.training.composite import CompositeConfig, CompositeData, fit, held_out, load_data
from caplens.training.features import cached_features

PAGES = Path(__file__).parents[1] / "docs" / "research"
SETS = (
    ("flickr8k-expert", "tau-c", "Expert τc"),
    ("flickr8k-cf", "tau-b", "CF τb"),
    ("composite", "tau-c", "Composite τc"),
    ("pascal-50s-consensus", "mean", "Pascal-50S"),
)
Columns = dict[str, Floats]


@dataclass(frozen=True)
class Rated:
    """A rating set with the features of its captions, trial by trial."""

    title: str
    task: Task
    figure: AgreementStatistic

    def value(self, scores: Sequence[Floats]) -> float:
        """The figure that these scores reach."""
        trials = [Trial(one, one[:, None], "") for one in scores]
        everything = np.ones((1, self.task.units), dtype=np.int32)
        return float(self.figure.resampled(Scored(CaplensScore(), trials), everything)[0]) * self.figure.scale

    def of(self, features: Callable[[CaptionSet], Floats]) -> list[Floats]:
        return [features(captions) for captions in self.task.trials]


def load_sets(data: Path, wanted: Sequence[tuple[str, str, str]] = SETS) -> list[Rated]:
    made = []
    for name, key, title in wanted:
        task = find_sets([name])[0].load(DataFolders([data]))
        made.append(Rated(title, task, next(figure for figure in task.figures if figure.key == key)))
    return made


# Features: those of caplens, and others that could stand beside them.


def wording(captions: CaptionSet) -> Columns:
    """Metrics of wording and of scene graphs, and their parts."""
    work = Workspace(captions)
    meteor = trial_scores(load_metric("meteor"), work)
    matched = meteor.statistics
    made = {
        "METEOR": meteor.scores,
        "METEOR precision": matched[:, 0] / np.maximum(matched[:, 2], 1e-9),
        "METEOR recall": matched[:, 1] / np.maximum(matched[:, 3], 1e-9),
        "CIDEr-R": trial_scores(CiderR(idf=shipped("caplens-idf")), work).scores,
    }
    names = {"WMD": "wmd", "ROUGE-L": "rouge-l", **{f"BLEU-{n}": f"bleu-{n}" for n in range(1, 5)}}
    return made | {name: trial_scores(load_metric(metric), work).scores for name, metric in names.items()}


def categories(captions: CaptionSet) -> Columns:
    """SPICE of objects, attributes and relations alone; 0 where neither side has any."""
    details = [dict(each) for each in Spice().result(Workspace(captions)).details or []]
    return {
        f"SPICE, {name.lower()}s": np.array([each["categories"].get(name) or 0.0 for each in details])
        for name in ("Object", "Attribute", "Relation")
    }


def pac_space(captions: CaptionSet) -> Columns:
    """Similarity to the references in the joint space of PAC-S."""
    place = places(captions)
    vectors = read_heads(heads_path("pac")).text(load_sentence_encoder(ENCODER).encode(list(place)))
    near, together = to_references(unit(vectors), place, captions)
    return {"nearest, PAC-S space": near, "together, PAC-S space": together}


def of_encoder(name: str) -> Callable[[CaptionSet], Columns]:
    """Similarity to the references by another sentence encoder."""

    def compute(captions: CaptionSet) -> Columns:
        near, together = similarities(Workspace(captions), name)
        return {f"nearest, {name}": near, f"together, {name}": together}

    return compute


@dataclass(frozen=True)
class Extractor:
    """Features of any captions, kept in the cache."""

    bank: Any
    encoders: tuple[str, ...]

    def own(self, captions: CaptionSet) -> Floats:
        """What caplens looks at, with the picture's plain cosine in the place of `PICTURE` (NaN without)."""

        def compute(some: CaptionSet) -> Floats:
            work = Workspace(some)
            # The bench keeps SPICE's scores, which are all that is needed here.
            work.get_or_compute(("result", Spice().identity()), lambda: trial_scores(Spice(), Workspace(some)))
            cosines = picture_fit(work) if some.images is not None else np.full(len(some), np.nan)
            return np.column_stack([meaning(work, self.bank), cosines, well_formedness(work)])

        parts = [meaning_identity(self.bank), picture_identity(), well_formedness_identity()]
        return cached_features(captions, Identity.of(parts), compute)

    def others(self, captions: CaptionSet, graphs: bool = True) -> Columns:
        parts: dict[str, Callable[[CaptionSet], Columns]] = {"wording": wording, "PAC-S space": pac_space}
        parts |= {"categories": categories} if graphs else {}
        parts |= {encoder: of_encoder(encoder) for encoder in self.encoders}
        made: Columns = {}
        for part, compute in parts.items():
            names = list(compute(CaptionSet.of(["a dog", "a cat"], [["a dog runs"]] * 2)))
            made |= dict(zip(names, self._kept(captions, part, compute).T, strict=True))
        return made

    def _kept(self, captions: CaptionSet, part: str, compute: Callable[[CaptionSet], Columns]) -> Floats:
        used = [load_metric(name).identity() for name in ("meteor", "wmd", "rouge-l", "bleu-4", "spice")]
        encoders = [model_digest(name) for name in (ENCODER, *self.encoders)]
        code = content_digest(__file__)
        identity = Identity.of([part, used, encoders, content_digest(heads_path("pac")), code])
        return cached_features(captions, identity, lambda some: np.column_stack(list(compute(some).values())))


# What a feature adds on the pool, and what leaving one out costs.


def features_table(by_seed: Mapping[int, CompositeData], extractor: Extractor) -> str:
    """Held-out cross entropy with one more feature of meaning: nothing of the rated sets is in here."""
    losses: dict[str, list[float]] = {}
    for seed, made in by_seed.items():
        settings = replace(CONFIG, seed=seed)
        extra = [extractor.others(trial.captions) for trial, _ in made.trials]
        losses.setdefault("none", []).append(held_out(made.trials, settings)[0])
        for name in extra[0]:
            trials = [
                (trial, np.column_stack([columns, more[name]]))
                for (trial, columns), more in zip(made.trials, extra, strict=True)
            ]
            losses.setdefault(name, []).append(held_out(trials, settings)[0])
    base = np.array(losses["none"])
    seeds = ", ".join(map(str, by_seed))
    lines = [
        f"| feature added | held-out cross entropy, mean of seeds {seeds} | difference, seed by seed |",
        "|---|---|---|",
    ]
    for name, values in sorted(losses.items(), key=lambda item: (item[0] != "none", float(np.mean(item[1])))):
        differences = "" if name == "none" else ", ".join(f"{value:+.4f}" for value in values - base)
        lines.append(f"| {name} | {np.mean(values):.4f} | {differences} |")
    return "\n".join(lines)


def ablation_table(by_seed: Mapping[int, CompositeData], sets: Sequence[Rated], extractor: Extractor) -> str:
    """Every feature, and all of well-formedness together, left out of the training, over seeds."""
    ways: dict[str, tuple[str, ...]] = {
        "nothing": (),
        **{name: (name,) for name in FEATURES},
        "all four of well-formedness": WELL_FORMEDNESS,
    }
    features = [(rated, rated.of(extractor.own)) for rated in sets]
    shown = [(rated, own, False) for rated, own in features] + [(rated, own, True) for rated, own in features[:2]]
    titles = [rated.title + ", picture" * picture for rated, _, picture in shown]
    lines = [f"| left out | held-out loss | {' | '.join(titles)} |", "|---" * (2 + len(titles)) + "|"]
    for name, left_out in ways.items():
        found = []
        for seed, made in by_seed.items():
            network = fit(made, replace(CONFIG, seed=seed), left_out)
            values = [rated.value(network_logits(network, own, left_out, picture)) for rated, own, picture in shown]
            found.append([float(network.about["held_out_loss"]), *values])
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
        cells = [f"{mean[0]:.4f}", *(f"{m:.2f} ± {s:.2f}" for m, s in zip(mean[1:], spread[1:], strict=True))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def network_logits(
    network: FeatureMLP, features: Sequence[Floats], left_out: Sequence[str], picture: bool
) -> list[Floats]:
    made = []
    for columns in features:
        inputs = columns * [name not in left_out for name in FEATURES]
        beyond = columns[:, len(MEANING)] - foreseen(inputs, network.extra["foreseen"])
        inputs[:, len(MEANING)] = np.nan_to_num(beyond) if picture and PICTURE not in left_out else 0.0
        made.append(network.logits(inputs))
    return made


CONFIG = CompositeConfig(images=964)


def load_by_seed(data: Path, pools: Path, seeds: int) -> dict[int, CompositeData]:
    """What caplens is trained on, by the seed that draws it."""
    human, background = [read_references(pools / "flickr8k.json")], read_references(pools / "usual.json")
    images = data / "flickr8k" / "images"
    return {seed: load_data(human, {}, background, images, replace(CONFIG, seed=seed)) for seed in range(1, 1 + seeds)}


def parser(about: str | None, tables: Sequence[str]) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("data", type=Path)
    made.add_argument("pools", type=Path)
    made.add_argument("--encoders", nargs="*", default=[], help="further sentence encoders to try")
    made.add_argument("--only", nargs="+", default=list(tables), choices=tables)
    made.add_argument("--no-page", action="store_true", help="print only")
    return made


def show(name: str, table: str, page: Path | None) -> None:
    """Print a table, and write it into its place on the page."""
    print(f"{table}\n", flush=True)
    if page is not None:
        start, end = f"<!-- {name}: written by tools/{Path(sys.argv[0]).name} -->", f"<!-- end of {name} -->"
        text = page.read_text("utf-8")
        write_atomically(page, f"{text.split(start)[0]}{start}\n\n{table}\n\n{end}{text.split(end)[1]}")


def main() -> None:
    arguments = parser(__doc__, ("features", "ablation"))
    arguments.add_argument("--seeds", type=int, default=3)
    given = arguments.parse_args()
    warnings.simplefilter("ignore", CaplensWarning)
    by_seed = load_by_seed(given.data, given.pools, given.seeds)
    extractor = Extractor(by_seed[1].bank, tuple(given.encoders))
    tables = {
        "features": lambda: features_table(by_seed, extractor),
        "ablation": lambda: ablation_table(by_seed, load_sets(given.data), extractor),
    }
    for name in given.only:
        show(name, tables[name](), None if given.no_page else PAGES / "composite.md")


if __name__ == "__main__":
    main()
