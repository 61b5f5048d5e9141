"""Which metric can be gamed? Writes docs/research/gameability.md and its plots.

    python tools/gameability.py --data DIR          # DIR holds coco/ and ciderr/

Four experiments, none needs a picture:
1. an honest caption with one of its words said again and again;
2. an honest caption cut short or drawn out by saying it twice;
3. half a caption, filled up with its last word said again;
4. a search that knows a few words of the reference and puts them together to please one metric. That is the place a
   captioner is in when it is trained with the metric as reward: sure of some words, paid for a whole sentence.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import caplens
from caplens.core.errors import CaplensError
from caplens.metrics.base import Metric
from caplens.storage.atomic import atomic_path, write_atomically
from caplens.text.ptb import tokenize

SEED = 7
METRICS = ("cider-d", "cider-r", "bleu-4", "rouge-l", "meteor", "spice", "sent-sim", "nneval", "caplens-score")
SLOW = ("spice", "sent-sim", "nneval", "caplens-score")
SLOW_SHARE = 4
"""Metrics that take milliseconds a caption see a quarter of the captions."""
N_GRAM_METRICS = ("cider-d", "cider-r", "bleu-4", "rouge-l")
REPEATS = [float(times) for times in range(11)]
FILL = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1]
STRETCH = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0]


Curves = dict[str, dict[str, list[float]]]
"""Set, metric, and its relative scores."""


@dataclass(frozen=True)
class Texts:
    """Captions with their references, and the whole corpus for the idf."""

    name: str
    candidates: list[str]
    references: list[list[str]]
    corpus: list[list[str]]
    metrics: tuple[str, ...]

    def some(self, metric: str, count: int) -> Texts:
        """The first captions, fewer for slow metrics."""
        count = count // SLOW_SHARE if metric in SLOW else count
        return replace(self, candidates=self.candidates[:count], references=self.references[:count])


def english(data: Path, count: int) -> Texts:
    """COCO: one person's caption against the four others'."""
    images = json.loads((data / "coco/coco_captions.json").read_text())
    captions = [image["captions"] for image in (images.values() if isinstance(images, dict) else images)]
    chosen = random.Random(SEED).sample([texts for texts in captions if len(texts) >= 5], count)
    return Texts(
        "COCO, four references",
        [texts[0] for texts in chosen],
        [list(texts[1:5]) for texts in chosen],
        [list(texts[1:5]) for texts in captions],
        METRICS,
    )


def portuguese(data: Path, count: int) -> Texts:
    """#PraCegoVer: a long description against another one of the same picture."""
    with gzip.open(data / "ciderr/pracegover_duplications.json.gz", "rt", encoding="utf-8") as file:
        groups = [[entry["caption"] for entry in group] for group in json.load(file).values()]
    pairs = [
        group[:2] for group in groups if len(group) > 1 and all(20 <= len(text.split()) <= 80 for text in group[:2])
    ]
    chosen = random.Random(SEED).sample(pairs, min(count, len(pairs)))
    return Texts(
        "#PraCegoVer, one long reference",
        [pair[0] for pair in chosen],
        [[pair[1]] for pair in chosen],
        [[group[0]] for group in groups],
        N_GRAM_METRICS,
    )


def load(texts: Texts) -> dict[str, Metric]:
    """The metrics that can run here, CIDEr's with the idf of the whole corpus."""
    made = {}
    for name in texts.metrics:
        try:
            metric = caplens.load_metric(name, **({"idf": texts.corpus} if name.startswith("cider") else {}))
            caplens.evaluate(["a dog"], [["a dog"]], metrics=[metric])
        except CaplensError as error:
            print(f"{name} is left out: {error}")
        else:
            made[name] = metric
    return made


def relative_scores(
    metric: Metric, texts: Texts, change: Callable[[str, float], str], values: list[float]
) -> list[float]:
    """The mean score of the captions after each change, by that of the captions as they were; all in one go."""
    changed = [texts.candidates, *([change(text, value) for text in texts.candidates] for value in values)]
    scores = caplens.evaluate(
        [text for group in changed for text in group], texts.references * len(changed), metrics=[metric]
    )[metric.name].scores
    honest, *others = scores.reshape(len(changed), -1).mean(axis=1)
    return [float(other / honest) for other in others]


def repeat_a_word(text: str, times: float) -> str:
    """The longest word said again, where it stands."""
    words = text.split()
    longest = max(range(len(words)), key=lambda position: len(words[position]))
    return " ".join([*words[: longest + 1], *[words[longest]] * int(times), *words[longest + 1 :]])


def stretch(text: str, factor: float) -> str:
    words = text.split()
    return " ".join((words * 3)[: max(1, round(len(words) * factor))])


def fill(text: str, factor: float) -> str:
    """The first half, and its last word said again until the text is so long."""
    words = text.split()
    half = words[: max(1, len(words) // 2)]
    return " ".join([*half, *[half[-1]] * (round(len(words) * factor) - len(half))])


def please(metric: Metric, texts: Texts, longest: int, known: int, patience: int = 2) -> tuple[list[str], float]:
    """For each reference, the text that a greedy search finds to score best from a few known words.

    Every step adds the word that scores best; a text that has not improved for `patience` words is done.
    """
    tokens = [text.split() for text in tokenize([references[0] for references in texts.references])]
    frequent = [word for word, _ in Counter(word for words in tokens for word in words).most_common(12)]
    draw = random.Random(SEED)
    rare = [sorted({word for word in words if word not in frequent}) for words in tokens]
    allowed = [[*frequent, *draw.sample(words, min(known, len(words)))] for words in rare]
    built: list[list[str]] = [[] for _ in tokens]
    best: list[tuple[float, list[str]]] = [(0.0, []) for _ in tokens]
    going = set(range(len(tokens)))
    for _ in range(longest):
        rows = [(row, word) for row in sorted(going) for word in allowed[row]]
        if not rows:
            break
        scores = caplens.evaluate(
            [" ".join([*built[row], word]) for row, word in rows],
            [texts.references[row][:1] for row, _ in rows],
            metrics=[metric],
        )[metric.name].scores
        step: dict[int, tuple[float, str]] = {}
        for (row, word), score in zip(rows, scores, strict=True):
            if row not in step or score > step[row][0]:
                step[row] = (float(score), word)
        for row, (score, word) in step.items():
            built[row].append(word)
            if score > best[row][0]:
                best[row] = (score, list(built[row]))
            elif len(built[row]) - len(best[row][1]) > patience:
                going.discard(row)
    return [" ".join(words) for _, words in best], float(np.mean([score for score, _ in best]))


def repeated_share(texts: list[str]) -> float:
    """Share of the words that were said before in the same text."""
    words = [text.split() for text in texts]
    return sum(len(said) - len(set(said)) for said in words) / max(1, sum(map(len, words)))


def plot(path: Path, curves: Curves, x: list[float], label: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * len(curves) + 1, 3.4), layout="constrained")
    panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    for axes, (title, lines) in zip(panels, curves.items(), strict=True):
        for name, values in lines.items():
            axes.plot(x, values, marker=".", label=name, linestyle="-" if name.startswith("cider") else "--")
        axes.axhline(1, color="grey", linewidth=0.6)
        axes.set(title=title, xlabel=label)
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.axes[0].set_ylabel("score relative to the honest caption")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})


def table(curves: dict[str, list[float]], x: list[float], first: str) -> str:
    head = f"| {first} | " + " | ".join(f"{value:g}" for value in x) + " |\n"
    rule = "|---|" + "---|" * len(x) + "\n"
    return head + rule + "".join(f"| {n} | " + " | ".join(f"{v:.2f}" for v in vs) + " |\n" for n, vs in curves.items())


def findings(repeats: Curves, lengths: Curves, filled: Curves) -> str:
    """What the tables say about each set, in words."""
    lines = []
    for name, curves in repeats.items():
        kept = sorted((values[-1], metric) for metric, values in curves.items())
        twice = [metric for metric, values in lengths[name].items() if values[-1] > 1]
        paid = [
            f"{metric} (from {values[0]:.2f} to {max(values):.2f})"
            for metric, values in filled[name].items()
            if max(values) > 1.1 * values[0]
        ]
        lines.append(
            f"- {name}. One word {REPEATS[-1]:.0f} times more leaves of the score: "
            + ", ".join(f"{metric} {100 * share:.0f} %" for share, metric in kept)
            + f". The whole caption twice scores higher with: {', '.join(twice) or 'none'}. Half a caption filled "
            f"up with one word gains with: {', '.join(paid) or 'none'}."
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "docs" / "research")
    parser.add_argument("--count", type=int, default=120, help="captions per set")
    parser.add_argument("--searched", type=int, default=24, help="captions per set that the search pleases")
    options = parser.parse_args()
    sets = [english(options.data, options.count), portuguese(options.data, options.count)]
    repeats: Curves = {}
    lengths: Curves = {}
    filled: Curves = {}
    searches: list[str] = []
    for texts in sets:
        metrics = load(texts)
        changes = ((repeats, repeat_a_word, REPEATS), (lengths, stretch, STRETCH), (filled, fill, FILL))
        for curves, change, values in changes:
            curves[texts.name] = {
                name: relative_scores(metric, texts.some(name, options.count), change, values)
                for name, metric in metrics.items()
            }
            print(table(curves[texts.name], values, texts.name), flush=True)
        for name, metric in metrics.items():
            few = texts.some(name, options.searched)
            found, reached = please(metric, few, longest=60, known=5)
            lengths_found = [len(text.split()) for text in found]
            wanted = [len(references[0].split()) for references in few.references]
            searches.append(
                f"| {texts.name} | {name} | {reached:.3f} | {np.mean(lengths_found):.1f} of {np.mean(wanted):.1f} "
                f"| {100 * repeated_share(found):.0f} % | {max(found[:12], key=len)[:150]} |"
            )
            print(searches[-1], flush=True)
    plot(options.output / "gameability-repeats.svg", repeats, REPEATS, "times one word is said again")
    plot(options.output / "gameability-length.svg", lengths, STRETCH, "length relative to the honest caption")
    plot(options.output / "gameability-fill.svg", filled, FILL, "length relative to the honest caption")
    parts = [
        "# Which metric can be gamed?\n",
        f"Written by `python tools/gameability.py --data DIR` (caplens {caplens.__version__}, seed {SEED}). "
        f"{options.count} captions per set; {', '.join(SLOW)} take milliseconds a caption and see "
        f"{options.count // SLOW_SHARE}. METEOR, SPICE and the learned metrics read English only and are absent for "
        "#PraCegoVer, which is Portuguese. A value of 1 is the score of the honest caption, one that a person wrote; a "
        "metric that is hard to game falls as the caption gets worse.\n",
        findings(repeats, lengths, filled),
        "## One word said again and again\n",
        "![score against repeats](gameability-repeats.svg)\n",
        *(f"{name}\n\n{table(curves, REPEATS, 'times repeated')}" for name, curves in repeats.items()),
        "## Cut short, or drawn out by saying it again\n",
        "![score against length](gameability-length.svg)\n",
        *(f"{name}\n\n{table(curves, STRETCH, 'length')}" for name, curves in lengths.items()),
        "## Half a caption, filled up\n",
        "The first half of the caption, and then its last word again and again. A metric whose curve rises pays for "
        "words that say nothing.\n",
        "![score against filling](gameability-fill.svg)\n",
        *(f"{name}\n\n{table(curves, FILL, 'length')}" for name, curves in filled.items()),
        "## A search that pleases the metric\n",
        "The search knows five rarer words of one reference and the twelve most frequent words, and adds whatever word "
        "scores best, until none has helped for three words. A metric that pays for length with the known words makes "
        f"it repeat them. {options.searched} references per set, {options.searched // SLOW_SHARE} for slow metrics.\n",
        "| set | metric | score reached | words (of the reference's) | repeated words | example |\n"
        "|---|---|---|---|---|---|\n" + "\n".join(searches) + "\n",
    ]
    write_atomically(options.output / "gameability.md", "\n".join(parts))


if __name__ == "__main__":
    main()
