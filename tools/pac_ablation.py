"""What each kind of positive is worth to PAC-S (the paper's Tables 1, 4 and 6), on an edition of the embedded encoder.

    python tools/pac_ablation.py DATA --output DIR [--features DIR] [--captions FILE] [--crops N] [--seeds 2]
        [--steps N] [--encoder NAME]

Trains the projections on real pairs alone, with t', with v' and with both, and writes the table of
docs/research/pac-s.md.
Trainings are resumable and stored; `--captions` names a captioner's captions of the training pictures, `--crops` how
many of them get a v' (all, unless that takes too long), `--steps` after how many a training ends at the latest. Nothing
is chosen on the ratings: a training stops by its validation loss.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from caplens.bench import agreement
from caplens.bench.base import SEED, Task, find_sets, number_units
from caplens.bench.data import DataFolders, read_json
from caplens.bench.score_store import stored_array, trial_scores
from caplens.bench.sets.distraction import distractors, sentences_of
from caplens.bench.statistics import AgreementStatistic, PairStatistic, Scored
from caplens.core.captions import CaptionSet
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.encoders.embedded import EDITIONS, heads_path, read_heads
from caplens.metrics import load_metric
from caplens.storage.atomic import write_atomically
from caplens.storage.identity import Identity
from caplens.training.contrastive import recall
from caplens.training.encoder import Features, load_features
from caplens.training.pac import PacConfig, train
from caplens.training.pairs import read_pairs

PAGE = Path(__file__).parents[1] / "docs" / "research" / "pac-s.md"
START, END = "<!-- written by tools/pac_ablation.py over {} -->", "<!-- end of the table over {} -->"
RESAMPLES = 1000
# The paper's patience is 3.4 passes over COCO; ours is 13 passes over Flickr8k, looked at every second one.
PATIENCE, VALIDATE_EVERY = 300, 50


@dataclass(frozen=True)
class Judge:
    """One column: a set, its figure, and the draws of the bootstrap, which all rows share."""

    title: str
    task: Task
    figure: AgreementStatistic
    encoder: str

    def values(self, heads: Path) -> Floats:
        """The figure of PAC-S with these heads, × 100: on the whole set, then on every resample."""
        metric = load_metric("pac-s", encoder=self.encoder, weights=str(heads))
        scored = Scored(metric, [trial_scores(metric, Workspace(captions)) for captions in self.task.trials])
        everything = np.ones((1, self.task.units), dtype=np.int32)
        weights = np.concatenate([everything, agreement.draw_weights(self.task.units, RESAMPLES, seed=1)])
        parts = ["pac ablation", self.figure.formula, metric.identity(), self.figure.material(scored), RESAMPLES]
        return 100 * stored_array(Identity.of(parts), lambda: self.figure.resampled(scored, weights))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--output", type=Path, required=True)
    arguments.add_argument("--features", type=Path)
    arguments.add_argument("--captions", type=Path)
    arguments.add_argument("--seeds", type=int, default=2)
    arguments.add_argument("--crops", type=int)
    arguments.add_argument("--steps", type=int, default=PacConfig.steps)
    arguments.add_argument("--encoder", default="embedded", choices=EDITIONS)
    given = arguments.parse_args()
    kept = given.features or given.output / "features"
    images = given.data / "flickr8k" / "images"
    captions = given.data / "flickr8k" / "flickr8k_captions.json"
    more = [given.data / "flickr30k" / "flickr30k_captions.json.gz"]
    runs: dict[str, list[Path]] = {"before tuning": [heads_path("contrastive", given.encoder)]}
    losses: dict[str, list[float]] = {}
    for seed in range(given.seeds):
        for name, (new_captions, new_images) in _settings(given.captions, given.crops).items():
            folder = given.output / f"{name.replace(' ', '-')}-{seed}"
            config = PacConfig(seed=seed, steps=given.steps, patience=PATIENCE, validate_every=VALIDATE_EVERY)
            result = _trained(folder, images, captions, more, config, new_captions, new_images, kept, given.encoder)
            print(name, seed, result, flush=True)
            runs.setdefault(name, []).append(folder / "pac.safetensors")
            losses.setdefault(name, []).append(result["validation loss"])
    pairs = read_pairs(captions, more)
    test = load_features(EDITIONS[given.encoder](keep=kept), pairs, images, kept)["test"]
    table = _table(runs, losses, _judges(given.data, given.encoder), test, given.seeds)
    page = PAGE.read_text("utf-8")
    start, end = START.format(given.encoder), END.format(given.encoder)
    before, after = page.split(start)[0], page.split(end)[1]
    write_atomically(PAGE, f"{before}{start}\n\n{table}\n{end}{after}")
    print(table)


def _settings(captions: Path | None, crops: int | None) -> dict[str, tuple[str | None, str | None]]:
    """Name to t' and v'; t' are the captioner's where there are some, else retrieved."""
    changed = "crops" if crops is None else f"crops-{crops}"
    made, kind = ("retrieved", "retrieved") if captions is None else (str(captions), "captioner")
    return {
        "real pairs only": (None, None),
        f"+ t' {kind}": (made, None),
        "+ v' crops": (None, changed),
        f"+ t' {kind} + v' crops": (made, changed),
    }


def _trained(
    folder: Path,
    images: Path,
    captions: Path,
    more: list[Path],
    config: PacConfig,
    new_captions: str | None,
    new_images: str | None,
    features: Path,
    encoder: str,
) -> dict[str, float]:
    done = folder / "result.json"
    if not done.exists():
        result = train(
            images,
            captions,
            more,
            folder,
            config,
            encoder=encoder,
            features=features,
            new_captions=new_captions,
            new_images=new_images,
        )
        write_atomically(done, json.dumps(result, indent=2) + "\n")
    made: dict[str, float] = json.loads(done.read_text())
    return made


def _judges(data: Path, encoder: str) -> list[Judge]:
    folders = DataFolders([data])
    made = []
    for name, key, title in (
        ("flickr8k-expert", "tau-c", "Expert τc"),
        ("flickr8k-cf", "tau-b", "CF τb"),
        ("pascal-50s-pairs", "mean", "Pascal-50S"),
    ):
        task = find_sets([name])[0].load(folders)
        made.append(Judge(title, task, next(figure for figure in task.figures if figure.key == key), encoder))
    return [*made, _foils(data, folders, encoder)]


def _foils(data: Path, folders: DataFolders, encoder: str) -> Judge:
    """Captions of Flickr8k's test photos against themselves with another person or scene: FOIL's kind of pair."""
    content = read_json(data / "flickr8k" / "flickr8k_captions.json")
    sentences = sentences_of({name: entry["captions"] for name, entry in content.items() if entry["split"] == "test"})
    generator = np.random.default_rng([SEED, 7])
    made = [pair for task in ("replace person", "replace scene") for pair in distractors(task, sentences, generator)]
    captions = CaptionSet(
        ids=[f"{number} {side}" for number in range(len(made)) for side in ("right", "wrong")],
        candidates=[text for sentence, wrong in made for text in (sentence.text, wrong)],
        images=folders.pictures([sentence.image for sentence, _ in made for _ in (0, 1)]),
    )
    units, count = number_units(sentence.image for sentence, _ in made)
    places = 2 * np.arange(len(made))
    figure = PairStatistic(key="foils", better=places, worse=places + 1, units=units)
    return Judge("FOIL-like", Task([captions], count, [figure], f"pairs:{len(made)}"), figure, encoder)


def _table(
    runs: dict[str, list[Path]], losses: dict[str, list[float]], judges: list[Judge], test: Features, seeds: int
) -> str:
    found = {
        name: [np.mean([judge.values(heads) for heads in paths], axis=0) for judge in judges]
        for name, paths in runs.items()
    }
    start = found["before tuning"]
    lines = [
        f"| Flickr8k train, {seeds} seed{'s' * (seeds > 1)} | validation loss | R@1 text → image | "
        + " | ".join(judge.title for judge in judges)
        + " |",
        "|---" * (3 + len(judges)) + "|",
    ]
    for name, values in found.items():
        loss = f"{np.mean(losses[name]):.3f}" if name in losses else ""
        cells = [name, loss, f"{np.mean([_recall(heads, test) for heads in runs[name]]):.1f}"]
        for value, first in zip(values, start, strict=True):
            shown = value if name == "before tuning" else value - first
            low, high = np.quantile(shown[1:], [0.025, 0.975])
            interval = (
                f"{low:.1f} to {high:.1f}" if name == "before tuning" else f"{shown[0]:+.2f}: {low:+.2f} to {high:+.2f}"
            )
            cells.append(f"{value[0]:.1f} ({interval})")
        lines.append(f"| {' | '.join(cells)} |")
    sizes = ", ".join(f"{judge.title} {judge.figure.count:,} rows" for judge in judges)
    note = (
        f"R@1: 1,000 test pictures, 5,000 captions. {sizes}. In brackets: before tuning, the 95 % interval of a "
        f"bootstrap over pictures ({RESAMPLES:,} draws); below, the difference to that row with its own interval, the "
        "same pictures drawn for both."
    )
    return "\n".join(lines) + f"\n\n{note}\n"


def _recall(heads: Path, test: Features) -> float:
    trained = read_heads(heads)
    return 100 * recall(trained.image(test.pictures), trained.text(test.ordered_texts), test.owner)[0]


if __name__ == "__main__":
    main()
