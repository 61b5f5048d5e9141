"""Where people's captions stand on the metrics that `caplens serve` shows: quantiles over Flickr8k's validation photos.

Run it again after weights or metrics change: python tools/standing.py FLICKR8K_FOLDER
One caption of every photo is held against the photo and against one to four of its others. It writes
src/caplens/server/standing.json; a signature that is not in it gets no place among people's captions.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

from caplens.core.errors import CaplensWarning
from caplens.evaluation.evaluate import evaluate
from caplens.server import standing
from caplens.server.tasks import BOTH_METRICS, PICTURE_METRICS, REFERENCE_METRICS
from caplens.storage.atomic import write_atomically
from caplens.training.pairs import read_pairs

PHOTOS = 300
METRICS_BY_PICTURE = [name for name in PICTURE_METRICS if name != "infometic"]
"""InfoMetIC has percentiles of its own."""


def measure(folder: Path) -> dict[str, list[float]]:
    """Return the quantiles by comparable signature."""
    by_photo = read_pairs(folder / "flickr8k_captions.json", ()).val
    photos = {name: texts for name, texts in by_photo.items() if len(texts) > standing.MOST_REFERENCES}
    names = list(photos)[:PHOTOS]
    texts = {name: photos[name][0] for name in names}
    images = {name: folder / "images" / name for name in names}
    reports = [evaluate(texts, images=images, metrics=METRICS_BY_PICTURE, encoder="embedded")]
    for count in range(1, standing.MOST_REFERENCES + 1):
        references = {name: photos[name][1 : 1 + count] for name in names}
        reports.append(evaluate(texts, references, images, metrics=[*REFERENCE_METRICS, *BOTH_METRICS]))
        reports.append(evaluate(texts, references, metrics=list(BOTH_METRICS)))
        print(f"{count} references", flush=True)
    levels = np.linspace(0, 1, 101)
    return {
        standing.comparable(result.signature): np.quantile(result.scores, levels).round(5).tolist()
        for report in reports
        for result in report
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore", CaplensWarning)
    quantiles = measure(Path(sys.argv[1]))
    content = {"from": f"one caption by people of each of {PHOTOS} Flickr8k validation photos", "quantiles": quantiles}
    target = Path(standing.__file__).with_name(standing.TABLE)
    write_atomically(target, json.dumps(content, separators=(",", ":")) + "\n")
    print(f"wrote {target}: {len(quantiles)} signatures")
