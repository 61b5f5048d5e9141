"""COCO system level: what each metric says about captioning systems, and about people, on the Karpathy test split."""

from __future__ import annotations

from typing import Any

import numpy as np

from caplens.bench.base import SEED, RatingSet, Task, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json, read_json_lines
from caplens.bench.statistics import AgreementStatistic, CorpusStatistic
from caplens.core.captions import CaptionSet

HUMANS = "Humans"


@rating_set
class CocoSystems(RatingSet):
    name = "coco-systems"
    title = "COCO system level"
    what = "corpus scores of captioning systems on the 5,000 photos of COCO's Karpathy test split, people among them"
    protocol = (
        "every system with a caption for each test photo, five references; people: one of a photo's captions, drawn "
        "with a seed, against the others; intervals by bootstrap over photos; corpus scores as leaderboards print them"
    )
    license = "captions of COCO CC BY 4.0; systems' captions as their authors released them"
    home = (
        "a json-lines file coco_systems.jsonl with system, image, caption; COCO captions with Karpathy's split "
        "(dataset_coco.json)"
    )
    paper = "Sarto et al., CVPR 2023 (PAC-S), Table 7"
    files = (("coco_systems.jsonl", "machine/coco.jsonl"), ("dataset_coco.json", "coco_captions.json"))

    def load(self, data: DataFolders) -> Task:
        path, captions_path = (self.require(data, *names) for names in self.files)
        references = _test_captions(read_json(captions_path))
        require_rows(len(references), self.title, captions_path)
        names = sorted(references)
        by_system: dict[str, dict[str, str]] = {}
        for row in read_json_lines(path):
            if row["image"] in references:
                by_system.setdefault(row["system"], {})[row["image"]] = row["caption"]
        generator = np.random.default_rng([SEED, 7])
        human, others = list[str](), list[list[str]]()
        for name in names:
            chosen = int(generator.integers(len(references[name])))
            human.append(references[name][chosen])
            others.append([text for number, text in enumerate(references[name]) if number != chosen])
        pictures = data.pictures(names)
        trials = [CaptionSet(names, human, others, pictures, source=HUMANS)]
        for system, captions in sorted(by_system.items()):
            if len(captions) == len(names):
                texts = [captions[name] for name in names]
                trials.append(CaptionSet(names, texts, [references[name] for name in names], pictures, source=system))
        figures: list[AgreementStatistic] = [
            CorpusStatistic(key=trial.source, trial=number, rows=len(names)) for number, trial in enumerate(trials)
        ]
        return Task(
            trials, len(names), figures, f"references:5|people:1-of-5|seed:{SEED}", sources=(path, captions_path)
        )


def _test_captions(content: dict[str, Any]) -> dict[str, list[str]]:
    """Photo to captions on the test split: Karpathy's file, or {name: {"split", "captions"}}."""
    if "images" in content:
        return {
            image["filename"]: [sentence["raw"] for sentence in image["sentences"]]
            for image in content["images"]
            if image["split"] == "test"
        }
    return {name: entry["captions"] for name, entry in content.items() if entry["split"] == "test"}
