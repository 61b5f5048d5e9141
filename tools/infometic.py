"""What InfoMetIC reaches on the test photos of Flickr8k and on Pascal-50S: the tables of docs/research/infometic.md.

    python tools/infometic.py --data DATA --features FEATURES --run "HTN and FS=runs/both/infometic.safetensors" ...
        [--encoder embedded-strong]

DATA holds flickr8k/ and pascal50s/; FEATURES is the folder of `caplens train infometic --features`, where regions of
the test photos are kept too. The first run is the one that is compared with clip-s and info-clip. The tables replace
what stands between the marks in the page given with --page.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from caplens.bench.agreement import (
    Estimate,
    correlate,
    correlate_swapped,
    draw_swaps,
    draw_weights,
    preferred,
    share,
    share_swapped,
)
from caplens.bench.base import find_sets
from caplens.bench.data import DataFolders
from caplens.bench.statistics import PairStatistic, RatingStatistic
from caplens.core.captions import CaptionSet, media_name
from caplens.core.types import Floats, unit
from caplens.encoders.base import Encoder
from caplens.encoders.embedder import Embedder
from caplens.encoders.load import load_encoder
from caplens.evaluation.resampling import p_value
from caplens.metrics.info_clip import score_bare_pair
from caplens.metrics.infometic.explained import LEAST_ALPHA
from caplens.metrics.infometic.inference import PairScores, load_model, token_table, tokenize_words
from caplens.metrics.infometic.region_features import ImageRegions
from caplens.storage.atomic import write_atomically
from caplens.text.words import tag_words
from caplens.training.infometic.data import Split, load_splits
from caplens.training.infometic.regions import region_features
from caplens.vision.regions import make_proposer

SAMPLES, SEED = 300, 0
START, END = "<!-- tools/infometic.py over {} writes from here -->", "<!-- to here over {} -->"
Judge = Callable[[Sequence[ImageRegions], Sequence[str], Sequence[tuple[int, int]]], list[PairScores]]


def judge_with(embedder: Embedder, weights: str | None) -> Judge:
    """Judgments of (picture, caption) pairs by trained weights, or by InfoCLIP."""
    encoder = embedder.encoder

    def score_pairs(
        images: Sequence[ImageRegions], texts: Sequence[str], pairs: Sequence[tuple[int, int]]
    ) -> list[PairScores]:
        words = tag_words(texts)
        pieces = [tokenize_words(encoder, [word.text for word in found]) for found in words]
        vectors, counts = embedder.texts(texts), [len(found) for found in words]
        if weights is not None:
            return load_model(weights).score_pairs(embedder, images, pieces, vectors, pairs, counts)
        table, whole = token_table(embedder, [text.ids for text in pieces]), unit(vectors)
        lone, pictures = unit(table.vectors), [unit(image.vectors) for image in images]
        return [
            score_bare_pair(
                pictures[row],
                whole[column],
                lone[[table.row_of[token] for token in pieces[column].ids]],
                pieces[column],
                counts[column],
                encoder.scale,
            )
            for row, column in pairs
        ]

    return score_pairs


@dataclass(frozen=True)
class Rated:
    """A rated set whose pictures were looked at."""

    captions: CaptionSet
    images: list[ImageRegions]
    rows: list[int]

    def scores(self, judge: Judge, scale: float) -> dict[str, Floats]:
        """Scores of every row by name."""
        place: dict[str, int] = {}
        columns = [place.setdefault(text, len(place)) for text in self.captions.candidates]
        distinct: dict[tuple[int, int], int] = {}
        which = [distinct.setdefault(pair, len(distinct)) for pair in zip(self.rows, columns, strict=True)]
        made = judge(self.images, list(place), list(distinct))
        table = np.array([(one.precision, one.recall, one.cosine) for one in made])[which]
        both = table[:, 0] + table[:, 1]
        plus = both + scale * table[:, 2]
        return {"p": table[:, 0], "r": table[:, 1], "both": both, "plus": plus, "cos": table[:, 2]}


def rated(captions: CaptionSet, image_regions: Mapping[str, ImageRegions]) -> Rated:
    names = [Path(media_name(image)).name for image in captions.images or [] if image is not None]
    order = {name: row for row, name in enumerate(dict.fromkeys(names))}
    return Rated(captions, [image_regions[name] for name in order], [order[name] for name in names])


@dataclass(frozen=True)
class Item:
    """One figure: its value with an interval, and what is needed to compare it."""

    estimate: Estimate
    against: Callable[[Item], float]
    values: Floats

    def __str__(self) -> str:
        return f"{self.estimate.value:.1f} [{self.estimate.low:.1f}, {self.estimate.high:.1f}]"


def rating_item(figure: RatingStatistic, scores: Floats) -> Item:
    kind, units = figure.kind, figure.units
    count = int(units.max()) + 1
    everything = np.ones((1, count), np.int32)
    values = scores[figure.rows]

    def of(weights: np.ndarray) -> Floats:
        return 100 * correlate(kind, values, figure.ratings, units, weights)

    def against(other: Item) -> float:
        masks = draw_swaps(count, SAMPLES, SEED)
        moved = 100 * correlate_swapped(kind, values, other.values, figure.ratings, units, masks)
        return p_value(moved, float(of(everything)[0]) - other.estimate.value)

    return Item(Estimate.of(float(of(everything)[0]), of(draw_weights(count, SAMPLES, SEED))), against, values)


def share_item(values: Floats, units: np.ndarray) -> Item:
    count = int(units.max()) + 1
    value = 100 * float(np.nanmean(values))

    def against(other: Item) -> float:
        moved = 100 * share_swapped(values, other.values, units, draw_swaps(count, SAMPLES, SEED))
        return p_value(moved, value - other.estimate.value)

    drawn = 100 * share(values, units, draw_weights(count, SAMPLES, SEED))
    return Item(Estimate.of(value, drawn), against, values)


def word_items(split: Split, judge: Judge) -> dict[str, Item]:
    """Corrupted captions of the test photos: is the replaced word found, and are words judged rightly at β?"""
    captions = split.corrupted
    texts = [" ".join(word.text for word in words) for words in captions.words]
    pairs = [(int(owner), row) for row, owner in enumerate(captions.owner)]
    found, judged, owners = [], [], []
    for row, made in enumerate(judge(split.pictures.image_regions, texts, pairs)):
        words, changed = captions.words[row], int(captions.changed[row])
        others = [made.words[place] for place, word in enumerate(words) if word.semantic and place != changed]
        found.append(float(bool(others) and made.words[changed] < min(others)))
        verdicts = [alpha >= LEAST_ALPHA for alpha in others] + [made.words[changed] < LEAST_ALPHA]
        judged += [float(right) for right in verdicts]
        owners += [pairs[row][0]] * len(verdicts)
    units = captions.owner.astype(np.int32)
    return {
        "replaced word has the least α, %": share_item(np.array(found), units),
        "semantic words judged rightly, %": share_item(np.array(judged), np.array(owners, np.int32)),
    }


def region_item(split: Split, judge: Judge) -> Item:
    """Named regions of the test photos: mentioned or not as the weak label says, first caption of every photo."""
    captions = split.captions
    rows = [int(np.flatnonzero(captions.owner == picture)[0]) for picture in range(len(split.pictures.names))]
    pairs = [(picture, place) for place, picture in enumerate(range(len(rows)))]
    values, owners = [], []
    for picture, made in enumerate(judge(split.pictures.image_regions, [captions.texts[row] for row in rows], pairs)):
        row = rows[picture]
        for place, alpha in enumerate(made.regions[:-1]):
            if split.named[row, 1 + place]:
                values.append(float((alpha >= LEAST_ALPHA) == split.mentioned[row, 1 + place]))
                owners.append(picture)
    return share_item(np.array(values), np.array(owners, np.int32))


def pascal_items(task_figures: Sequence[object], scores: Floats) -> dict[str, Item]:
    made = {}
    for figure in task_figures:
        if isinstance(figure, PairStatistic):
            values = preferred(scores[figure.better], scores[figure.worse], "half")
            made[f"Pascal-50S {figure.key}, %"] = share_item(values, figure.units)
    return made


def table(columns: Sequence[str], rows: Mapping[str, Mapping[str, str]], first: str) -> str:
    lines = [f"| {first} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, cells in rows.items():
        lines.append(f"| {name} | " + " | ".join(cells.get(column, "") for column in columns) + " |")
    return "\n".join(lines)


def rating_figure(figures: Sequence[object], key: str) -> RatingStatistic:
    return next(figure for figure in figures if isinstance(figure, RatingStatistic) and figure.key == key)


def tests(ours: Mapping[str, Item], theirs: Mapping[str, Item]) -> dict[str, str]:
    """p values, two-sided."""
    return {key: f"{item.against(theirs[key]):.3f}" for key, item in ours.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--run", action="append", required=True, help="NAME=WEIGHTS; the first is the main one")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--encoder", default="embedded", help="embedded or embedded-strong")
    given = parser.parse_args()
    encoder: Encoder = load_encoder(given.encoder, keep=given.features)
    embedder = Embedder(encoder)
    flickr = given.data / "flickr8k"
    split = load_splits(
        encoder,
        make_proposer("detector"),
        flickr / "images",
        flickr / "flickr8k_captions.json",
        [given.data / "flickr30k" / "flickr30k_captions.json.gz"],
        given.features,
        names=("test",),
    )["test"]
    by_name = dict(zip(split.pictures.names, split.pictures.image_regions, strict=True))
    data = DataFolders([given.data])
    expert, crowd, pascal = (
        one.load(data) for one in find_sets(["flickr8k-expert", "flickr8k-cf", "pascal-50s-pairs"])
    )
    images = given.data / "pascal50s" / "images"
    names = sorted({Path(media_name(image)).name for image in pascal.trials[0].images or [] if image is not None})
    folder = given.features / "regions-pascal"
    seen = region_features(encoder, make_proposer("detector"), images, names, folder)
    sets = {
        "expert": rated(expert.trials[0], by_name),
        "crowd": rated(crowd.trials[0], by_name),
        "pascal": rated(pascal.trials[0], dict(zip(names, seen, strict=True))),
    }
    ratings = {
        "Expert τc": ("expert", rating_figure(expert.figures, "tau-c")),
        "CF τb": ("crowd", rating_figure(crowd.figures, "tau-b")),
    }

    runs = dict(entry.split("=", 1) for entry in given.run)
    judges = {"info-clip": judge_with(embedder, None)}
    judges |= {name: judge_with(embedder, weights) for name, weights in runs.items()}
    scored = {
        name: {which: one.scores(judge, encoder.scale) for which, one in sets.items()} for name, judge in judges.items()
    }
    fine = {
        name: {**word_items(split, judge), "named regions judged rightly, %": region_item(split, judge)}
        for name, judge in judges.items()
    }

    def agreement(name: str, key: str) -> dict[str, Item]:
        every = scored[name]
        made = {title: rating_item(figure, every[which][key]) for title, (which, figure) in ratings.items()}
        return made | pascal_items(pascal.figures, every["pascal"][key])

    first = next(iter(runs))
    found = {"clip-s": agreement(first, "cos"), "info-clip": agreement("info-clip", "both")}
    for title, key in (("infometic-p", "p"), ("infometic-r", "r"), ("infometic", "both"), ("infometic-plus", "plus")):
        found[title] = agreement(first, key)
    cells = {name: {column: str(item) for column, item in made.items()} for name, made in found.items()}
    for other in ("clip-s", "info-clip"):
        cells[f"p, infometic-plus against {other}"] = tests(found["infometic-plus"], found[other])
    fine_cells = {name: {key: str(item) for key, item in fine[name].items()} for name in ("info-clip", first)}
    fine_cells["p"] = tests(fine[first], fine["info-clip"])
    columns, fine_columns = list(found["clip-s"]), list(fine[first])
    ablation = {name: {key: str(item) for key, item in (agreement(name, "plus") | fine[name]).items()} for name in runs}
    text = "\n\n".join(
        [
            "Agreement with people (95 % bootstrap intervals over photos; p of paired permutations):",
            table(columns, cells, "metric"),
            "Word by word and region by region:",
            table(fine_columns, fine_cells, "trained with"),
            "Ablation, infometic-plus:",
            table([*columns, *fine_columns], ablation, "trained with"),
        ]
    )
    print(text)
    if given.page is not None:
        page = given.page.read_text("utf-8")
        start, end = START.format(given.encoder), END.format(given.encoder)
        head, _, rest = page.partition(start)
        _, _, tail = rest.partition(end)
        write_atomically(given.page, f"{head}{start}\n\n{text}\n\n{end}{tail}")


if __name__ == "__main__":
    main()
