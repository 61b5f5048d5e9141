"""Show that the image tower of caplens is CLIP's: zero-shot by CLIP's own text vectors of COCO's names.

    python -m tools.clip_zero_shot FLICKR8K_FOLDER [--photos 500]

For each of six names the area under the curve: photos of whose five captions at least three say the word, against
photos whose captions say none of the six. Needs `caplens weights fetch clip-vit-b-16-vision clip-vit-b-16-coco-names`.
"""

from __future__ import annotations

import argparse
import json
import pickletools
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.stats import rankdata

from caplens.core.types import Floats, unit
from caplens.encoders.clip_vision import ClipVision
from caplens.storage import weights

NAMES = {"bicycle": 9, "boat": 11, "dog": 28, "horse": 37, "motorcycle": 44, "skateboard": 58}
"""Names and their places among COCO's 80 in alphabetical order."""


def text_vectors(path: Path) -> Floats:
    """Return the 80 vectors: the end of the largest string in the pickle, which is read as data and never run."""
    strings = [argument for _, argument, _ in pickletools.genops(path.read_bytes()) if isinstance(argument, bytes)]
    numbers = np.frombuffer(max(strings, key=len)[-80 * 512 * 2 :], np.float16)
    return unit(numbers.astype(np.float64).reshape(80, 512))


def choose_photos(folder: Path, most: int) -> tuple[dict[str, list[str]], list[str]]:
    """Return up to so many photos with each name, and six times as many with none of them."""
    captions = json.loads((folder / "flickr8k_captions.json").read_text("utf-8"))
    said = {
        photo: [sum(name in text.lower().split() for text in entry["captions"]) for name in NAMES]
        for photo, entry in captions.items()
    }
    shown = {name: [photo for photo in said if said[photo][row] >= 3][:most] for row, name in enumerate(NAMES)}
    return shown, [photo for photo in said if not any(said[photo])][: most * len(NAMES)]


def area_under_curve(positive: list[float], negative: list[float]) -> float:
    """Return how often a positive is above a negative, ties counting half."""
    ranks = rankdata([*positive, *negative])[: len(positive)]
    return float((ranks.sum() - len(positive) * (len(positive) + 1) / 2) / len(positive) / len(negative))


def zero_shot(tower: ClipVision, folder: Path, texts: Floats, most: int) -> dict[str, float]:
    """Return the area under the curve of every name."""
    shown, without = choose_photos(folder, most)
    vectors = {}
    for photo in {*without, *(photo for photos in shown.values() for photo in photos)}:
        with Image.open(folder / "images" / photo) as image:
            vectors[photo] = unit(tower.encode(tower.pixels(image)[None])[0])[0]
    areas = {}
    for name, row in NAMES.items():
        hits, misses = ([float(vectors[photo] @ texts[row]) for photo in photos] for photos in (shown[name], without))
        areas[name] = area_under_curve(hits, misses)
    return areas


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--photos", type=int, default=500)
    given = arguments.parse_args()
    texts = text_vectors(weights.require("clip-vit-b-16-coco-names"))
    for name, area in zero_shot(ClipVision(), given.folder, texts, given.photos).items():
        print(f"{name}: {area:.3f}")


if __name__ == "__main__":
    main()
