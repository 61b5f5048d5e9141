"""Does a captioner that is trained on a metric learn to please it? CIDEr-D against CIDEr-R as teachers.

    python -m tools.self_critical --images DIR --captions FILE --features DIR --output DIR            # trains
    python -m tools.self_critical ... --report docs/research                                          # and writes it up

The experiment of the CIDEr-R paper (section 6.2) at the size of two cores: Flickr8k, each picture with its longest
caption alone, pictures whose longest caption has a length strictly between the quartiles removed (single); and the same
pictures with all captions (multi). One cross-entropy training per condition and seed, from which both rewards start.
Stopped and started again it goes on where it was; `--minutes` stops it by itself.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from tools.self_critical_report import Outcome, write_report

from caplens.encoders.load import load_encoder
from caplens.storage.atomic import write_atomically
from caplens.text.ptb import tokenize
from caplens.training.captioner import CaptionerConfig, Pictures, fit, grid_features
from caplens.training.captioner_network import Captioner, FeatureSpec
from caplens.training.pairs import read_pairs

CONDITIONS = ("single", "multi")
REWARDS = ("cider-d", "cider-r")
ORDER = (("single", 1), ("multi", 1), ("single", 2), ("single", 3), ("multi", 2), ("multi", 3))
"""Conditions and seeds, so that a run that ends early has seen both conditions, and the first more often."""
CROSS_ENTROPY = CaptionerConfig(
    width=96, heads=4, refining_layers=1, dropout=0.1, longest=30, batch=48, learning_rate=3e-3, self_critical_epochs=0
)
EPOCHS = {"single": 8, "multi": 4}
"""Of cross entropy: a picture of the single condition has a fifth of the captions."""
SELF_CRITICAL_EPOCHS = {"single": 8, "multi": 5}
SELF_CRITICAL = replace(
    CROSS_ENTROPY,
    cross_entropy_epochs=0,
    self_critical_learning_rate=2e-4,
    batch=24,
    samples=4,
)


def longest_caption(captions: list[str]) -> tuple[int, str]:
    """The caption with the most words (the first of them), and how many these are."""
    words = [len(text.split()) for text in tokenize(captions)]
    best = int(np.argmax(words))
    return words[best], captions[best]


def subset(split: dict[str, list[str]], condition: str) -> dict[str, list[str]]:
    """The paper's subset of one split; lengths equal to a quartile stay, which keeps about the paper's share."""
    found = {name: longest_caption(captions) for name, captions in split.items()}
    first, third = np.percentile([words for words, _ in found.values()], [25, 75])
    return {
        name: [text] if condition == "single" else split[name]
        for name, (words, text) in found.items()
        if not first < words < third
    }


@contextmanager
def cpu_minutes(path: Path) -> Iterator[None]:
    """Adds what is spent inside to the number in a file, also when it is interrupted."""
    started = time.process_time()
    try:
        yield
    finally:
        before = float(path.read_text()) if path.exists() else 0.0
        write_atomically(path, f"{before + (time.process_time() - started) / 60:.2f}")


@dataclass
class Experiment:
    """The data and where the trainings are kept."""

    images: Path
    captions: Path
    features: Path
    output: Path

    def __post_init__(self) -> None:
        pairs = read_pairs(self.captions)
        encoder = load_encoder("embedded")
        names = [*pairs.train, *pairs.val, *pairs.test]
        grids = grid_features(encoder, CROSS_ENTROPY.grid, self.images, names, self.features)
        self.spec = FeatureSpec("embedded", encoder.grid_identity, CROSS_ENTROPY.grid)
        place = {name: row for row, name in enumerate(names)}

        def pictures(split: dict[str, list[str]]) -> Pictures:
            return Pictures(list(split), grids[[place[name] for name in split]], list(split.values()))

        self.train = {condition: pictures(subset(pairs.train, condition)) for condition in CONDITIONS}
        self.test = {condition: pictures(subset(pairs.test, condition)) for condition in CONDITIONS}

    def folder(self, condition: str, seed: int, teacher: str) -> Path:
        return self.output / f"{condition}-{seed}-{teacher}"

    def steps(self) -> Iterator[tuple[str, int, str]]:
        """All trainings, a whole comparison after the other."""
        for condition, seed in ORDER:
            for teacher in ("cross-entropy", *REWARDS):
                yield condition, seed, teacher

    def learn(self, condition: str, seed: int, teacher: str) -> None:
        """One training, and what it says about the test pictures; nothing if that is there."""
        folder = self.folder(condition, seed, teacher)
        if (folder / "said.json").exists():
            return
        pictures = self.train[condition]
        if teacher == "cross-entropy":
            config, start = replace(CROSS_ENTROPY, seed=seed, cross_entropy_epochs=EPOCHS[condition]), None
        else:
            epochs = SELF_CRITICAL_EPOCHS[condition]
            config = replace(SELF_CRITICAL, seed=seed, reward=teacher, self_critical_epochs=epochs)
            start = Captioner.load(self.folder(condition, seed, "cross-entropy") / "captioner.safetensors")
        with cpu_minutes(folder / "minutes.txt"):
            captioner = fit(pictures, config, self.spec, folder, start=start)
        write_atomically(folder / "said.json", json.dumps(captioner.caption(self.test[condition].features)))

    def outcomes(self) -> list[Outcome]:
        """What has been trained so far; an unfinished training says nothing yet."""
        found = []
        for condition, seed, teacher in self.steps():
            folder = self.folder(condition, seed, teacher)
            if (folder / "said.json").exists():
                said = json.loads((folder / "said.json").read_text())
                minutes = float((folder / "minutes.txt").read_text())
                curve = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
                found.append(Outcome(condition, seed, teacher, said, minutes, curve))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("images", "captions", "features", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--condition", choices=CONDITIONS, help="train only this one, beside another process")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no training after so many minutes")
    parser.add_argument("--report", type=Path, help="write self-critical.md and its plots into this folder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # the optimizer's memory of rare words fades to such numbers, which are slow
    experiment = Experiment(options.images, options.captions, options.features, options.output)
    until = time.monotonic() + 60 * options.minutes
    for step in experiment.steps():
        if time.monotonic() < until and options.condition in (None, step[0]):
            experiment.learn(*step)
            print(*step, flush=True)
    if options.report is not None:
        settings = {**asdict(SELF_CRITICAL), "epochs": (EPOCHS, SELF_CRITICAL_EPOCHS)}
        write_report(options.report, experiment.outcomes(), experiment.train, experiment.test, settings)


if __name__ == "__main__":
    main()
