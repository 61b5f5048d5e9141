"""FOIL: a caption against the same caption with one object word exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from caplens.bench.base import SEED, RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.sets.composite import coco_references
from caplens.bench.statistics import PairStatistic
from caplens.core.captions import CaptionSet

MOST_REFERENCES = 4


@dataclass(frozen=True)
class FoilPair:
    """A right and a wrong caption of a photo."""

    image: str
    right: str
    wrong: str


@rating_set
class Foil(RatingSet):
    name = "foil"
    title = "FOIL"
    what = "captions of COCO photos against foils with one noun exchanged; VALSE's selection was validated by a crowd"
    protocol = (
        "share of pairs whose right caption scores higher, ties count half; references are the photo's other captions, "
        "one (seeded) or up to four; pairs whose photo has no known references are left out"
    )
    license = "CC BY 4.0 (FOIL and VALSE); photos as COCO"
    home = "foilv1.0_test_2017.json of Shekhar et al., or foil-it.json of VALSE; COCO's captions_val2014.json"
    paper = "Shekhar et al., ACL 2017; Parcalabescu et al., ACL 2022 (VALSE)"
    files = (
        ("foilv1.0_test_2017.json", "valse_foil_it.json", "foil-it.json"),
        ("captions_val2014.json", "coco_captions.json"),
    )

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        captions_path = self.require(data, *self.files[1])
        references = references_by_picture(captions_path)
        pairs = [pair for pair in _read(path) if len(_others(references.get(pair.image, []), pair)) > 0]
        require_rows(len(pairs), self.title, path)
        units, count = number_units(pair.image for pair in pairs)
        generator = np.random.default_rng([SEED, 4])
        all_four = [_others(references[pair.image], pair)[:MOST_REFERENCES] for pair in pairs]
        single = [[texts[int(generator.integers(len(texts)))]] for texts in all_four]
        rows = 2 * np.arange(len(pairs))
        figures = [
            PairStatistic(key=key, headline=place == 1, better=rows, worse=rows + 1, units=units, trials=(place,))
            for place, key in enumerate(("accuracy, 1 reference", "accuracy, 4 references"))
        ]
        trials = [self._captions(data, path, pairs, texts) for texts in (single, all_four)]
        whole = path.name.startswith("foilv1.0")
        notes = () if whole else ("VALSE's 1,000 validated pairs, not the 8,000 pairs behind the published figures",)
        source = "foilv1.0" if whole else "valse"
        signature = f"source:{source}|references:1,4|seed:{SEED}|ties:half|pairs:{len(pairs)}"
        pictures = [pair.image for pair in pairs for _ in (0, 1)]
        return Task(
            trials, count, list(figures), signature, notes, sources=(path, captions_path), pictures=(pictures,) * 2
        )

    def _captions(
        self, data: DataFolders, path: Path, pairs: list[FoilPair], references: list[list[str]]
    ) -> CaptionSet:
        return CaptionSet(
            ids=[f"{number}{side}" for number in range(len(pairs)) for side in ("right", "wrong")],
            candidates=[text for pair in pairs for text in (pair.right, pair.wrong)],
            references=[texts for texts in references for _ in (0, 1)],
            images=data.pictures([pair.image for pair in pairs for _ in (0, 1)]),
            source=path.name,
        )


def references_by_picture(path: Path) -> dict[str, list[str]]:
    """File name to captions: COCO's own annotation file, or a plain {name: {"captions": [...]}}."""
    if path.name.startswith("captions_val"):
        return coco_references(path)
    return {name: entry["captions"] for name, entry in read_json(path).items()}


def _read(path: Path) -> Iterator[FoilPair]:
    content = read_json(path)
    if "annotations" not in content:  # VALSE
        for entry in content.values():
            yield FoilPair(entry["image_file"], entry["caption"], entry["foil"])
        return
    right: dict[int, str] = {}
    wrong: list[tuple[int, int, str]] = []
    for annotation in content["annotations"]:
        if annotation["foil"]:
            wrong.append((annotation["id"], annotation["image_id"], annotation["caption"]))
        else:
            right[annotation["id"]] = annotation["caption"]
    names = {image["id"]: image["file_name"] for image in content.get("images", []) if "file_name" in image}
    for number, image_id, caption in wrong:
        if number in right:
            yield FoilPair(names.get(image_id, f"COCO_val2014_{image_id:012d}.jpg"), right[number], caption)


def _others(references: list[str], pair: FoilPair) -> list[str]:
    """The photo's captions without the one that the pair was made from."""

    def plain(text: str) -> str:
        return " ".join(text.lower().split()).rstrip(" .")

    return [text for text in references if plain(text) != plain(pair.right)]
