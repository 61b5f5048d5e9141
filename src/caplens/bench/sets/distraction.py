"""The six distraction tasks of NNEval's Table 3: a caption against a version with its person or scene tampered with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from caplens.bench.base import SEED, RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.statistics import AgreementStatistic, MeanStatistic, PairStatistic
from caplens.core.captions import CaptionSet


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PEOPLE = _words(
    "man men woman women boy boys girl girls child children kid kids baby toddler person people lady ladies guy "
    "guys couple group family crowd player players worker workers boater skier surfer cyclist biker climber "
    "dancer singer musician runner swimmer skateboarder snowboarder soldier officer policeman fireman student "
    "teacher chef gentleman teenager teenagers friends adults adult male female individual individuals youth team"
)
SCENES = _words(
    "beach park street road sidewalk field grass snow water pool ocean lake river sea mountain mountains hill "
    "forest woods desert city town building house room kitchen bedroom office classroom restaurant bar stage gym "
    "court track stadium playground yard backyard garden market store shop mall station airport bridge path trail "
    "rink sand shore alley parking-lot lot church library museum hallway stairs dock boardwalk cliff meadow pond "
    "creek waterfall plaza square subway train bus auditorium arena ramp skatepark"
)
# A person phrase ends before any of these.
BREAKS = _words(
    "in on at with and or is are was were be wearing holding sitting standing walking running playing riding of "
    "to from by for near next while as that who which , ."
)
_WORD = r"[A-Za-z][\w'-]*"
_SCENE = re.compile(
    rf"\b(?:in|on|at|through|down|across|near|by|along|inside|outside|over)\s+"
    rf"((?:a|an|the|some)\s+(?:{_WORD}\s+){{0,2}}?({_WORD}))(?=\s*[.,]?\s*$)",
    re.IGNORECASE,
)
LONGEST_PHRASE = 5
TASKS = ("replace person", "replace scene", "share person", "share scene", "just person", "just scene")


@dataclass(frozen=True)
class Phrase:
    """A person or scene phrase inside a caption."""

    text: str
    head: str
    start: int
    end: int


@dataclass(frozen=True)
class Sentence:
    """A caption with the phrases that the tasks tamper with."""

    image: str
    text: str
    others: list[str]
    person: Phrase | None
    scene: Phrase | None


@rating_set
class Distraction(RatingSet):
    name = "distraction"
    title = "Distraction tasks (replace, share, just × person, scene)"
    what = "captions of Flickr30k's test photos against distractors; the right answer follows from how they were made"
    protocol = (
        "made from the captions by NNEval's section 5.3: the first person phrase or the closing scene phrase is "
        "replaced by one with another head noun (replace), kept while the rest comes from another photo's caption "
        "(share), or stands alone (just); scored against the photo's other captions; ties count half"
    )
    license = "research use (Flickr30k)"
    home = "Flickr30k captions: dataset_flickr30k.json (Karpathy) or flickr30k_captions.json"
    paper = "Hodosh and Hockenmaier, VL 2016; Sharif et al., ECCV 2018 (NNEval), Table 3"
    files = (("dataset_flickr30k.json", "flickr30k_captions.json"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        sentences = _sentences(read_json(path))
        require_rows(len(sentences), self.title, path)
        generator = np.random.default_rng([SEED, 6])
        instances = [
            (task, sentence, text) for task in TASKS for sentence, text in distractors(task, sentences, generator)
        ]
        units, count = number_units(sentence.image for _, sentence, _ in instances)
        captions = self._captions(data, path, instances)
        parts: list[AgreementStatistic] = []
        for task in TASKS:
            inside = np.flatnonzero([name == task for name, _, _ in instances])
            if len(inside):
                parts.append(PairStatistic(key=task, better=2 * inside, worse=2 * inside + 1, units=units[inside]))
        mean = MeanStatistic(key="mean", parts=tuple(parts), headline=True)
        notes = (
            "instances made by caplens from the captions; the published figures are on Hodosh and Hockenmaier's own",
        )
        return Task(
            [captions],
            count,
            [mean, *parts],
            f"seed:{SEED}|ties:half|instances:{len(instances)}",
            notes,
            sources=(path,),
        )

    def _captions(self, data: DataFolders, path: Path, instances: Sequence[tuple[str, Sentence, str]]) -> CaptionSet:
        return CaptionSet(
            ids=[f"{number} {side}" for number in range(len(instances)) for side in ("right", "wrong")],
            candidates=[text for _, sentence, wrong in instances for text in (sentence.text, wrong)],
            references=[sentence.others for _, sentence, _ in instances for _ in (0, 1)],
            images=data.pictures([sentence.image for _, sentence, _ in instances for _ in (0, 1)]),
            source=path.name,
        )


def person_phrase(text: str) -> Phrase | None:
    """The person that opens a caption.

    >>> person_phrase("A young man in a hat is running .").text
    'A young man'
    """
    for match in islice(re.finditer(r"\S+", text), LONGEST_PHRASE):
        word = match[0].lower().strip(",.")
        if word in PEOPLE:
            end = match.start() + len(word)
            return Phrase(text[:end], word, 0, end)
        if word in BREAKS:
            return None
    return None


def scene_phrase(text: str) -> Phrase | None:
    """The place that closes a caption.

    >>> scene_phrase("Two dogs play in a green field .").text
    'a green field'
    """
    match = _SCENE.search(text)
    if not match or match[2].lower() not in SCENES:
        return None
    return Phrase(match[1], match[2].lower(), match.start(1), match.end(1))


def _sentences(content: dict[str, Any]) -> list[Sentence]:
    if "images" in content:
        captions = {
            image["filename"]: [sentence["raw"] for sentence in image["sentences"]]
            for image in content["images"]
            if image["split"] == "test"
        }
    else:
        captions = {name: entry["captions"] for name, entry in content.items() if entry["split"] == "test"}
    return sentences_of(captions)


def sentences_of(captions: Mapping[str, Sequence[str]]) -> list[Sentence]:
    """The captions of every photo with their phrases."""
    return [
        Sentence(
            image=image,
            text=text,
            others=[other for place, other in enumerate(texts) if place != number],
            person=person_phrase(text),
            scene=scene_phrase(text),
        )
        for image, texts in captions.items()
        for number, text in enumerate(texts)
        if len(texts) > 1
    ]


def distractors(task: str, sentences: Sequence[Sentence], generator: np.random.Generator) -> list[tuple[Sentence, str]]:
    """Every caption that the task can tamper with, and its distractor."""
    action, part = task.split()
    having = [(sentence, phrase) for sentence in sentences if (phrase := getattr(sentence, part)) is not None]
    tampered = []
    for sentence, phrase in having:
        if action == "just":
            tampered.append((sentence, phrase.text))
            continue
        for _ in range(20):  # a few tries for a partner that fits; a rare phrase may have none
            other, other_phrase = having[int(generator.integers(len(having)))]
            same_head = other_phrase.head == phrase.head
            if action == "share" and same_head and other.image != sentence.image and other.text != sentence.text:
                tampered.append((sentence, other.text))
                break
            if action == "replace" and not same_head:
                tampered.append((sentence, _spliced(sentence.text, phrase, other_phrase.text)))
                break
    return tampered


def _spliced(text: str, phrase: Phrase, new: str) -> str:
    new = new[0].upper() + new[1:] if phrase.start == 0 else new[0].lower() + new[1:]
    return text[: phrase.start] + new + text[phrase.end :]
