"""Where people's captions stand on InfoMetIC's scales: quantiles over Flickr8k's validation photos, for explanations.

Run it again after the weights change: python tools/infometic_standing.py FLICKR8K_FOLDER [PHOTOS]
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

from caplens.captions import CaptionSet
from caplens.errors import CaplensWarning
from caplens.files import write_atomically
from caplens.metrics.base import Workspace
from caplens.metrics.infometic import InfoMetic
from caplens.metrics.standing import KEYS, place
from caplens.training.pairs import read_pairs

LEVELS = 41


def main(folder: Path, photos: int) -> None:
    by_photo = read_pairs(folder / "flickr8k_captions.json", ()).val
    names = sorted(by_photo)[:photos]
    rows = [(name, text) for name in names for text in by_photo[name]]
    captions = CaptionSet.of([text for _, text in rows], images=[folder / "images" / name for name, _ in rows])
    metric = InfoMetic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaplensWarning)
        result = metric.compute(Workspace(captions))
    details = [result.explained(row) for row in range(len(rows))]
    content = {
        "weights": metric.grounding().weights_hash,
        "from": f"{len(rows):,} captions by people of {len(names):,} Flickr8k validation photos",
    }
    for key in KEYS:
        values = np.array([entry[key] for entry in details], dtype=np.float64)
        content[key] = [round(float(value), 4) for value in np.quantile(values, np.linspace(0, 1, LEVELS))]
        print(key, content[key][:: LEVELS // 4])
    write_atomically(place(), json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
