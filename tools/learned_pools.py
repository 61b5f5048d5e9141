"""The captions that the shipped weights of nneval and caplens are trained on, out of the public data sets.

    python tools/learned_pools.py DATA OUTPUT

DATA holds the folders coco, flickr8k, flickr30k and machine. Written are, for `caplens train composite`, flickr8k.json
(--human) and usual.json (--background), for `caplens train nneval`, human.json, machine.json and rated.jsonl, and for
`caplens train encoder`, unseen.json (--text-only). No picture of a rated set is in any but rated.jsonl, which only
stops nneval's training. The same data give the same files.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from caplens.bench.data import read_json
from caplens.storage.atomic import write_atomically
from caplens.text.stopwords import STOP_WORDS

COCO, BANK, UNSEEN = 2600, 700, 5000
# Flickr8k's validation pictures are judged; they and so many of the training pictures lend wrong captions.
LENDING = 2473
MOST_SIMILAR_OF = (300, 30, 3)
Captions = dict[str, list[str]]


def main() -> None:
    data, output = (Path(argument) for argument in sys.argv[1:])
    coco = coco_pool(data)
    bank = dict(list(coco.items())[1200 : 1200 + BANK]) | dict(list(flickr30k_pool(data).items())[300 : 300 + BANK])
    machine = machine_captions(data, coco)
    for name, content in {
        "flickr8k": flickr8k_pool(data),
        "usual": bank,
        "human": coco,
        "machine": out_of_domain(coco, machine),
        "unseen": unseen_pool(data),
    }.items():
        write_atomically(output / f"{name}.json", json.dumps(content))
        print(f"{name}.json: {len(content)} pictures")
    rows = expert_medians(data)
    write_atomically(output / "rated.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    print(f"rated.jsonl: {len(rows)} captions")


def shuffled(names: Iterable[str]) -> list[str]:
    """In an order that depends on nothing but the names."""
    return sorted(names, key=lambda name: hashlib.md5(name.encode(), usedforsecurity=False).hexdigest())


def coco_pool(data: Path, most: int = COCO) -> Captions:
    """COCO val2014 images outside Karpathy's test split, which Composite and THumB rate."""
    images = read_json(data / "coco" / "coco_captions.json")
    fit = (
        name
        for name, image in images.items()
        if image["split"] in ("val", "val2017_extra") and len(image["captions"]) >= 5
    )
    return {name: images[name]["captions"][:5] for name in shuffled(fit)[:most]}


def flickr30k_pool(data: Path) -> Captions:
    """Flickr30k training pictures that are not in Flickr8k."""
    images = read_json(data / "flickr30k" / "flickr30k_captions.json.gz")
    in_flickr8k = read_json(data / "flickr30k" / "flickr30k_to_flickr8k_image.json")
    fit = (
        name
        for name, image in images.items()
        if image["split"] == "train" and not in_flickr8k.get(name) and len(image["captions"]) == 5
    )
    return {name: images[name]["captions"] for name in shuffled(fit)}


def unseen_pool(data: Path) -> Captions:
    """Captions of pictures that are not at hand, as many of COCO's as of Flickr30k's."""
    pools = coco_pool(data, UNSEEN), dict(list(flickr30k_pool(data).items())[:UNSEEN])
    return {name: texts for pool in pools for name, texts in pool.items()}


def flickr8k_pool(data: Path) -> Captions:
    """Flickr8k validation pictures, then training pictures, without Flickr30k's test split, which Composite rates."""
    images = read_json(data / "flickr8k" / "flickr8k_captions.json")
    twins = read_json(data / "flickr30k" / "flickr30k_to_flickr8k_image.json")
    splits = read_json(data / "flickr30k" / "flickr30k_captions.json.gz")
    rated = {twin for name, twin in twins.items() if twin and splits[name]["split"] == "test"}
    names = [*listed(data, "dev"), *listed(data, "train")[:LENDING]]
    fit = [name for name in names if name not in rated and len(images[name]["captions"]) >= 5]
    return {name: images[name]["captions"][:5] for name in fit}


def listed(data: Path, split: str) -> list[str]:
    return (data / "flickr8k" / f"Flickr_8k.{split}Images.txt").read_text("utf-8").split()


def machine_captions(data: Path, images: Captions) -> Captions:
    """What the systems that captioned all of val2014 say of these images."""
    said: dict[str, dict[str, str]] = {name: {} for name in images}
    with gzip.open(data / "machine" / "coco.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["image"] in said and row["system"].startswith("val2014_"):
                said[row["image"]][row["system"]] = row["caption"]
    return {name: sorted(set(captions.values())) for name, captions in said.items() if captions}


def out_of_domain(human: Captions, machine: Captions) -> Captions:
    """Per image what machines said of images more or less like it: what captioners out of their domain do."""
    draw, names = random.Random(5), [name for name in human if name in machine]
    words = {
        name: {word for text in human[name] for word in text.lower().strip(".").split() if word not in STOP_WORDS}
        for name in names
    }

    def similar(name: str, of: int) -> str:
        others = [other for other in draw.sample(names, of) if other != name]
        return max(others, key=lambda other: len(words[other] & words[name]) / len(words[other] | words[name]))

    return {name: [draw.choice(machine[similar(name, of)]) for of in MOST_SIMILAR_OF] for name in names}


def expert_medians(data: Path) -> list[dict[str, Any]]:
    """Flickr8k-Expert, each caption with the median of its three ratings: what two agree on, or the middle."""
    made: dict[tuple[str, str], dict[str, Any]] = {}
    votes: dict[tuple[str, str], list[float]] = {}
    for name, image in read_json(data / "flickr8k" / "flickr8k.json").items():
        for row in image["human_judgement"]:
            votes.setdefault((name, row["caption"]), []).append(float(row["rating"]))
            made[name, row["caption"]] = {"caption": row["caption"], "references": image["ground_truth"]}
    return [row | {"rating": median(votes[key])} for key, row in made.items()]


if __name__ == "__main__":
    main()
