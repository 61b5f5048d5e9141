"""Document frequencies of the COCO val2014 captions, for NNEval's CIDEr; built once into the cache."""

from __future__ import annotations

import functools
import json
import zipfile
from pathlib import Path

from caplens.core.signature import caplens_version
from caplens.storage import weights
from caplens.storage.cache import FileCache
from caplens.text.idf import IdfTable, build_idf

CAPTIONS = "coco-captions-2014"
MEMBER = "coco/annotations/captions_val2014.json"


@functools.cache
def coco_val_idf() -> IdfTable:
    """The table of 40,504 images with all their captions; a missing source comes with the command that gets it."""
    return FileCache("idf").get_or_make(
        f"coco-val2014-{weights.model_digest(CAPTIONS)[:12]}-{caplens_version()}.safetensors",
        make=lambda: build_idf(read_coco_captions(weights.require(CAPTIONS))),
        read=IdfTable.load,
        write=IdfTable.save,
    )


def read_coco_captions(archive: Path) -> list[list[str]]:
    """The captions of every val2014 image, by image id."""
    by_image: dict[int, list[str]] = {}
    with zipfile.ZipFile(archive) as opened, opened.open(MEMBER) as file:
        for annotation in json.load(file)["annotations"]:
            by_image.setdefault(annotation["image_id"], []).append(annotation["caption"])
    return [by_image[image] for image in sorted(by_image)]
