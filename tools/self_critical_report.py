"""The write-up of tools/self_critical.py: table 2 of the paper, and in figures what its figures 1 and 4 show by eye."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import caplens
from caplens.storage.atomic import atomic_path, write_atomically
from caplens.text.ptb import tokenize
from caplens.text.stopwords import STOP_WORDS
from caplens.training.captioner import Pictures

METRICS = ("cider-r", "cider-d", "spice", "rouge-l", "meteor", "bleu-4")
TITLES = {"cider-r": "CIDEr-R", "cider-d": "CIDEr-D", "cross-entropy": "cross entropy only"}
TEACHERS = ("cross-entropy", "cider-d", "cider-r")
COLOURS = {"cross-entropy": "grey", "cider-d": "tab:red", "cider-r": "tab:blue"}
MEANING = {"single": "single reference, the longest", "multi": "all five references"}

INTRODUCTION = """# A metric as a teacher

Written by
`python -m tools.self_critical --images DIR --captions FILE --features DIR --output DIR --report docs/research`
(caplens {version}): {trainings} trainings, {minutes} CPU minutes on one core, after the pictures' features.

The CIDEr-R paper (sections 6.2 and 6.3) trains captioners on COCO and #PraCegoVer with CIDEr-D and with CIDEr-R as the
reward, and sees those that CIDEr-D taught repeat words where references are few and long. This is the same experiment
at the size of two cores.

- Flickr8k's training split, each picture with its longest caption; pictures whose longest caption has a length strictly
  between the quartiles are removed: {train} training and {test} test pictures, captions of {words} words (the paper's
  COCO subset: 71,428 and 3,146 pictures, 13.7 ± 3.9 words). The second condition has the same pictures with all five
  captions.
- AoANet of width {width}, {heads} heads and {refining_layers} refining layer on a 4 by 4 grid of DINOv2 patches (the
  paper: 1024, 8 and 6, on detected regions). Captions have at most {longest} words.
- Cross entropy for {single} epochs with one reference, {multi} with five, once per condition and seed. Both rewards go
  on from there for {further_single} epochs with one reference, {further_multi} with five (time did not allow more):
  batches of {batch} pictures, {samples} samples each, every sample held against the mean of the others, learning rate
  {self_critical_learning_rate:g}. The end of a caption counts as a word of the reward.
- Test captions by a beam of 3, judged against the references of their condition. Nothing was chosen by test results.
  ± is the standard deviation over seeds; scores are ×100.
- An earlier version of this page reported trainings that fell apart and ended saying "a". The cause was ours: the
  unknown word, which is never said, kept its share of the probability, and a teacher that lowers whatever was drawn
  raised it until hardly any was left for real words. Since it takes no probability, no training has fallen apart.
- "Repeated words" are words that the same caption said before, "a" and "the" too, which grows with a caption's length;
  "content words" leave function words out; a caption "stammers" when a word or a pair of words comes twice in a row.

![rewards and lengths](self-critical.svg)
"""


@dataclass(frozen=True)
class Outcome:
    """One captioner: how it was trained, and what it says about the test pictures."""

    condition: str
    seed: int
    teacher: str
    said: list[str]
    minutes: float
    curve: list[dict[str, float]]

    @property
    def rewards(self) -> list[float]:
        """The mean reward of the samples, epoch by epoch."""
        return [point["reward"] for point in self.curve if "reward" in point]


def repeated(text: str, but: frozenset[str] = frozenset()) -> float:
    """Share of the words that the same caption said before; some may be left out of it."""
    words = [word for word in text.split() if word not in but]
    return (len(words) - len(set(words))) / len(words) if words else 0.0


def stammers(text: str) -> bool:
    """Whether a word, or two words, are said twice in a row."""
    words = text.split()
    pairs = list(pairwise(words))
    return any(a == b for a, b in pairs) or any(a == b for a, b in zip(pairs, pairs[2:], strict=False))


def distinct(texts: Sequence[str], size: int) -> float:
    """Different n-grams of all captions together, by the number of all n-grams (distinct-n)."""
    grams = [tuple(words[at : at + size]) for words in map(str.split, texts) for at in range(len(words) - size + 1)]
    return len(set(grams)) / max(1, len(grams))


def habits(texts: Sequence[str]) -> dict[str, float]:
    """What one sees when reading the captions."""
    lengths = [len(text.split()) for text in texts]
    return {
        "repeated words, %": 100 * float(np.mean([repeated(text) for text in texts])),
        "repeated content words, %": 100 * float(np.mean([repeated(text, STOP_WORDS) for text in texts])),
        "captions that stammer, %": 100 * float(np.mean([stammers(text) for text in texts])),
        "distinct-1": distinct(texts, 1),
        "distinct-2": distinct(texts, 2),
        "words": float(np.mean(lengths)),
        "± words": float(np.std(lengths)),
        "different captions, %": 100 * len(set(texts)) / len(texts),
    }


def spread(values: Sequence[float], digits: int) -> str:
    """Mean ± standard deviation over seeds."""
    deviation = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{deviation}"


def spread_of(lengths: Sequence[int]) -> str:
    return f"{np.mean(lengths):.1f} ± {np.std(lengths):.1f}"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


class Results:
    """All captioners, scored once."""

    def __init__(self, outcomes: Sequence[Outcome], test: Mapping[str, Pictures]) -> None:
        self.outcomes, self.test = outcomes, test
        self.scores: dict[tuple[str, int, str], dict[str, float]] = {}
        for one in self.outcomes:
            report = caplens.evaluate(one.said, test[one.condition].references, metrics=list(METRICS))
            self.scores[one.condition, one.seed, one.teacher] = {name: report[name].score for name in METRICS}

    def of(self, condition: str, teacher: str) -> list[Outcome]:
        return [one for one in self.outcomes if (one.condition, one.teacher) == (condition, teacher)]

    def table(self, condition: str) -> str:
        """Table 2: scores ×100, as the paper prints them."""
        rows = []
        for teacher in TEACHERS:
            found = [self.scores[one.condition, one.seed, one.teacher] for one in self.of(condition, teacher)]
            if found:
                cells = [spread([100 * scores[name] for scores in found], 1) for name in METRICS]
                rows.append([TITLES[teacher], str(len(found)), *cells])
        return markdown(["optimizing", "seeds", *(TITLES.get(name, name.upper()) for name in METRICS)], rows)

    def habits(self, condition: str) -> str:
        measured = {teacher: [habits(one.said) for one in self.of(condition, teacher)] for teacher in TEACHERS}
        rows = []
        for teacher, found in measured.items():
            if found:
                digits = {"distinct-1": 3, "distinct-2": 3}
                cells = [spread([one[name] for one in found], digits.get(name, 1)) for name in found[0]]
                rows.append([TITLES[teacher], *cells])
        people = [text for texts in self.test[condition].references for text in tokenize(texts)]
        one_each = [tokenize(texts[:1])[0] for texts in self.test[condition].references]
        shown = habits(one_each if condition == "multi" else people)
        rows.append(
            ["people", *(f"{value:.{3 if name.startswith('distinct') else 1}f}" for name, value in shown.items())]
        )
        return markdown(["captions by", *shown], rows)

    def examples(self, condition: str, count: int = 8) -> str:
        """Half of them every so-manieth picture, half where a captioner repeats itself most; all of the first seed."""
        said = {teacher: self.of(condition, teacher)[0].said for teacher in TEACHERS}
        total = len(self.test[condition].ids)
        plain = [round(total * (at + 0.5) / (count // 2)) for at in range(count // 2)]
        worst = sorted(range(total), key=lambda row: -max(repeated(texts[row]) for texts in said.values()))
        chosen = [*plain, *[row for row in worst if row not in plain][: count - len(plain)]]
        rows = [
            [
                self.test[condition].ids[row].partition("_")[0],
                self.test[condition].references[row][0].replace("|", "/"),
                *(texts[row] for texts in said.values()),
            ]
            for row in chosen
        ]
        return markdown(["picture", "a person", *(TITLES[teacher] for teacher in said)], rows)


def plot(path: Path, results: Results, conditions: Sequence[str]) -> None:
    """Reward while learning, and how long the captions become."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2 * len(conditions)), layout="constrained")
    panels = figure.subplots(len(conditions), 2, squeeze=False)
    for (curves, lengths), condition in zip(panels, conditions, strict=True):
        for teacher in TEACHERS:
            for number, one in enumerate(results.of(condition, teacher)):
                label = TITLES[teacher] if number == 0 else None
                if one.rewards:
                    epochs = range(1, len(one.rewards) + 1)
                    curves.plot(epochs, one.rewards, color=COLOURS[teacher], marker=".", label=label)
            words = [len(text.split()) for one in results.of(condition, teacher) for text in one.said]
            if words:
                bins = np.arange(0, 32) - 0.5
                share = np.histogram(words, bins)[0] / len(words)
                lengths.step(bins[:-1] + 0.5, share, where="mid", color=COLOURS[teacher], label=TITLES[teacher])
        references = [len(text.split()) for texts in results.test[condition].references for text in tokenize(texts)]
        share = np.histogram(references, bins)[0] / len(references)
        lengths.fill_between(bins[:-1] + 0.5, share, step="mid", color="tab:green", alpha=0.2, label="people")
        curves.set(title=MEANING[condition], xlabel="self-critical epoch", ylabel="mean reward of the samples")
        lengths.set(title=MEANING[condition], xlabel="words in a caption", ylabel="share of test captions")
        for axes in (curves, lengths):
            axes.legend(fontsize=8)
            axes.grid(alpha=0.3)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})


def rising(results: Results, condition: str) -> str:
    """The mean reward of the samples in the first and in the last self-critical epoch."""
    parts = []
    for teacher in TEACHERS[1:]:
        found = [one.rewards for one in results.of(condition, teacher)]
        if found:
            first, last = (np.mean([rewards[at] for rewards in found]) for at in (0, -1))
            parts.append(f"{TITLES[teacher]} from {first:.2f} to {last:.2f}")
    return "; ".join(parts)


def verdict(results: Results, condition: str) -> str:
    """Which teacher's captioner repeats more."""
    measured = {teacher: {one.seed: habits(one.said) for one in results.of(condition, teacher)} for teacher in TEACHERS}
    both = sorted(measured["cider-d"].keys() & measured["cider-r"].keys())
    lines = []
    for name in ("repeated words, %", "repeated content words, %", "captions that stammer, %"):
        means = {teacher: spread([one[name] for one in found.values()], 1) for teacher, found in measured.items()}
        fewer = sum(measured["cider-r"][seed][name] < measured["cider-d"][seed][name] for seed in both)
        lines.append(
            f"- {name}: {means['cider-d']} after CIDEr-D, {means['cider-r']} after CIDEr-R, {means['cross-entropy']} "
            f"before. Fewer with CIDEr-R, as the paper expects, in {fewer} of {len(both)} seeds."
        )
    change = {
        (teacher, name): np.mean([one[name] for one in measured[teacher].values()])
        - np.mean([one[name] for one in measured["cross-entropy"].values()])
        for teacher in TEACHERS[1:]
        for name in ("repeated content words, %", "words")
    }
    lines.append(
        "- Against the captioners they started from: "
        + "; ".join(
            f"{TITLES[teacher]} {change[teacher, 'repeated content words, %']:+.1f} points of repeated content words, "
            f"{change[teacher, 'words']:+.1f} words a caption"
            for teacher in TEACHERS[1:]
        )
        + "."
    )
    if len(both) < 3:
        lines.append(f"- {len(both)} seed(s) decide nothing: the expectation is neither confirmed nor refuted here.")
    return "\n".join(lines)


def write_report(
    folder: Path,
    outcomes: Sequence[Outcome],
    train: Mapping[str, Pictures],
    test: Mapping[str, Pictures],
    settings: Mapping[str, Any],
) -> None:
    """Write self-critical.md and its plot."""
    results = Results(outcomes, test)
    conditions = [name for name in train if results.of(name, "cider-d") and results.of(name, "cider-r")]
    plot(folder / "self-critical.svg", results, conditions)
    lengths = [len(text.split()) for texts in train["single"].references for text in tokenize(texts)]
    first, further = settings["epochs"]
    facts = {
        **settings,
        "version": caplens.__version__,
        "trainings": len(outcomes),
        "minutes": f"{sum(one.minutes for one in outcomes):.0f}",
        "train": f"{len(train['single'].ids):,}",
        "test": f"{len(test['single'].ids):,}",
        "words": spread_of(lengths),
        **first,
        **{f"further_{name}": epochs for name, epochs in further.items()},
    }
    parts = [INTRODUCTION.format(**facts)]
    for condition in conditions:
        parts += [
            f"## {MEANING[condition].capitalize()}\n",
            f"Mean reward of the samples, first and last epoch: {rising(results, condition)}.\n",
            verdict(results, condition) + "\n",
            results.table(condition),
            results.habits(condition),
            "Captions of the first seed: four pictures taken evenly from the list, then four where one of the "
            "captioners repeats itself most.\n",
            results.examples(condition),
        ]
    write_atomically(folder / "self-critical.md", "\n".join(parts))
