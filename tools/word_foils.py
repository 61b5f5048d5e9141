"""Foils for choosing settings: captions of COCO with one noun, verb, adjective or number exchanged for a likely one.

    python -m tools.word_foils DATA [METRIC …]

Prints, per kind of word, how well metrics find the foils and the exchanged word. The captions are those of people (held
against the other four) and of captioning systems (held against all five), of pictures that are in no rated set.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from caplens.bench.agreement import average_precision
from caplens.bench.localization import Marked, blamed_words, number_words
from caplens.core.captions import CaptionSet
from caplens.core.workspace import Workspace
from caplens.metrics import load_metric
from caplens.native._kernels import english_stem
from caplens.text.words import Word, split_words, tag_words

KINDS = {"NN": "noun", "VB": "verb", "JJ": "adjective", "CD": "number"}


class Picture(NamedTuple):
    """Captions of a picture by people and by systems."""

    name: str
    people: list[str]
    systems: list[str]


class Held(NamedTuple):
    """A caption and what it is held against."""

    picture: str
    caption: str
    references: list[str]


class Foil(NamedTuple):
    """A caption, the same with a word exchanged, and what both are held against."""

    picture: str
    kind: str
    right: str
    wrong: str
    place: int
    references: list[str]

    @property
    def marked(self) -> Marked:
        return frozenset({number_words(self.wrong.split())[self.place]})


def read_pictures(data: Path) -> list[Picture]:
    """Pictures of COCO's validation set that no rated set has."""
    entries = json.loads((data / "coco/coco_captions.json").read_text("utf-8"))
    rated = {row["image_path"] for row in json.loads((data / "hat/hat.json").read_text("utf-8"))}
    free = {name for name, entry in entries.items() if entry["split"] != "test" and name not in rated}
    systems: dict[str, list[str]] = defaultdict(list)
    with gzip.open(data / "machine/coco.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["image"] in free:
                systems[row["image"]].append(row["caption"])
    return [Picture(name, entries[name]["captions"], systems[name]) for name in sorted(free)]


class WordExchange:
    """Words that stand between the same neighbors elsewhere."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._between: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
        for words in tag_words(texts):
            for place, word in enumerate(words):
                if word.semantic and word.tag[:2] in KINDS:
                    self._between[self._around(words, place)][word.text.lower()] += 1

    @staticmethod
    def _around(words: Sequence[Word], place: int) -> tuple[str, str, str]:
        left = words[place - 1].text.lower() if place else ""
        right = words[place + 1].text.lower() if place + 1 < len(words) else ""
        return left, right, words[place].tag

    def foil(self, held: Held, words: Sequence[Word], kind: str, generator: random.Random) -> Foil | None:
        """The caption with a word of this kind exchanged for one that nobody said; None where none is."""
        places = [place for place, word in enumerate(words) if word.semantic and KINDS.get(word.tag[:2]) == kind]
        generator.shuffle(places)
        said = {english_stem(word.lower()) for text in (held.caption, *held.references) for word in split_words(text)}
        for place in places:
            others = self._between[self._around(words, place)]
            likely = {word: count for word, count in others.items() if english_stem(word) not in said}
            if likely:
                (other,) = generator.choices(list(likely), list(likely.values()))
                texts = [word.text for word in words]
                exchanged = [*texts[:place], other, *texts[place + 1 :]]
                return Foil(held.picture, kind, " ".join(texts), " ".join(exchanged), place, held.references)
        return None


def make_foils(pictures: Sequence[Picture], count: int, by_systems: bool, seed: int = 0) -> list[Foil]:
    """So many foils of every kind, of different pictures."""
    generator = random.Random(seed)
    drawn = generator.sample(pictures, min(len(pictures), 8 * count))
    held = [
        Held(picture.name, generator.choice(picture.systems or picture.people), picture.people[:5])
        if by_systems
        else Held(picture.name, picture.people[0], picture.people[1:5])
        for picture in drawn
    ]
    exchange = WordExchange([text for picture in drawn for text in picture.people])
    foils: list[Foil] = []
    wanted = Counter(dict.fromkeys(KINDS.values(), count))
    for each, words in zip(held, tag_words([each.caption for each in held]), strict=True):
        for kind in sorted(wanted, key=lambda kind: -wanted[kind]):
            if wanted[kind] and (made := exchange.foil(each, words, kind, generator)) is not None:
                foils.append(made)
                wanted[kind] -= 1
                break
    return foils


def captions_of(foils: Sequence[Foil]) -> CaptionSet:
    """Right and wrong captions in turn."""
    return CaptionSet.of(
        [text for foil in foils for text in (foil.right, foil.wrong)],
        [foil.references for foil in foils for _ in (0, 1)],
    )


def figures(foils: Sequence[Foil], name: str) -> str:
    """Average precision and localization of a metric, for every kind of word and for all."""
    metric = load_metric(name)
    result = metric.statistics(Workspace(captions_of(foils)))
    scores = metric.scores(result.rows) * (1 if metric.higher_is_better else -1)
    found = []
    for kind in (*KINDS.values(), ""):
        places = [place for place, foil in enumerate(foils) if foil.kind.startswith(kind)]
        both = np.array([2 * place + side for place in places for side in (0, 1)])
        wrong, rows = both % 2 == 1, np.arange(len(both), dtype=np.int32)
        [precision] = average_precision(scores[both], wrong, rows, np.ones((1, len(both)), dtype=np.int32))
        blamed = [blamed_words(result.details[2 * place + 1]) for place in places] if result.details else []
        hits = [
            sum(word in foils[place].marked for word in words) / len(words) if words else 0.0
            for place, words in zip(places, blamed, strict=False)
        ]
        found.append(f"{kind or 'all'} {100 * precision:.1f} / {100 * np.mean(hits) if hits else np.nan:.1f}")
    return "  ".join(found)


def main(data: str, *names: str) -> None:
    pictures = read_pictures(Path(data))
    for by_systems in (False, True):
        foils = make_foils(pictures, 300, by_systems)
        print(f"\n{'systems' if by_systems else 'people'}: average precision / localization, ×100, {len(foils)} foils")
        for name in names or ("hallucination",):
            print(f"{name}:  {figures(foils, name)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
