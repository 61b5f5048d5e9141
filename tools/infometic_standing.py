"""Where people's captions stand on InfoMetIC's scales: quantiles over Flickr8k's validation photos, for explanations.

Run it again after the weights change: python tools/infometic_standing.py FLICKR8K_FOLDER FEATURES
FEATURES is the folder of `caplens train infometic --features`; what is missing there is made.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

from caplens.captions import CaptionSet
from caplens.encoders.looks import Look, Looks
from caplens.errors import CaplensWarning
from caplens.files import write_atomically
from caplens.metrics.base import Workspace, silent
from caplens.metrics.infometic import InfoMetic
from caplens.metrics.standing import KEYS, place
from caplens.training.grounded import region_features
from caplens.training.pairs import read_pairs

LEVELS = 41


class Featured(InfoMetic):
    """InfoMetIC over pictures that were looked at before."""

    looks: list[Look]
    rows: list[int]

    def looked(self, work: Workspace) -> Looks:
        return Looks(self.looks, self.rows)


def main(folder: Path, features: Path) -> None:
    by_photo = read_pairs(folder / "flickr8k_captions.json", ()).val
    texts = [text for found in by_photo.values() for text in found]
    metric = Featured()
    metric.rows = [number for number, found in enumerate(by_photo.values()) for _ in found]
    metric.looks = region_features(
        metric.loaded(), metric.proposer(), folder / "images", list(by_photo), features / "regions-val", silent
    )
    images = [folder / "images" / name for name, found in by_photo.items() for _ in found]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaplensWarning)
        result = metric.compute(Workspace(CaptionSet.of(texts, images=images)))
    details = [result.explained(row) for row in range(len(texts))]
    content = {
        "weights": metric.grounding().weights_hash,
        "from": f"{len(texts):,} captions by people of {len(by_photo):,} Flickr8k validation photos",
    }
    for key in KEYS:
        values = np.array([entry[key] for entry in details], dtype=np.float64)
        content[key] = [round(float(value), 4) for value in np.quantile(values, np.linspace(0, 1, LEVELS))]
        print(key, content[key][:: LEVELS // 4])
    judged = [word["status"] for entry in details for word in entry["words"] if "status" in word]
    print(f"words of people's captions called wrong: {judged.count('wrong') / len(judged):.3f}")
    write_atomically(place(), json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
