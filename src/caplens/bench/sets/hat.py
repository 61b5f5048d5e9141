"""HAT: captions by machines in which people marked every word that the photo does not show."""

from __future__ import annotations

import numpy as np

from caplens.bench.base import RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.localization import PROTOCOL, localization, number_words
from caplens.bench.statistics import PrecisionStatistic
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.text.words import split_words


@rating_set
class Hat(RatingSet):
    name = "hat"
    title = "HAT"
    what = "captions of COCO photos by machines; people marked the words that the photo does not show"
    protocol = (
        "average precision: captions with a marked word, found by the lowest score; localization accuracy: " + PROTOCOL
    )
    license = "see the authors' repository; photos as COCO"
    home = "data/hat-trainval.json of github.com/DavidMChan/aloha"
    paper = "Petryk et al., NAACL 2024 (ALOHa)"
    files = (("hat.json", "hat-trainval.json"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        rows = read_json(path)
        require_rows(len(rows), self.title, path)
        for number, row in enumerate(rows, start=1):
            for key in ("caption", "grounding", "references", "image_path"):
                if key not in row:
                    raise InputError(f"no {key!r}", where=f"{path}, row {number}")
        images = [row["image_path"] for row in rows]
        units, count = number_units(images)
        captions = CaptionSet(
            ids=[str(number) for number in range(len(rows))],
            candidates=[row["caption"] for row in rows],
            references=[row["references"] for row in rows],
            images=data.pictures(images),
            source=path.name,
        )
        marked = []
        for row in rows:
            words = [(part, wrong) for word, wrong in row["grounding"] for part in split_words(word)]
            keys = number_words(part for part, _ in words)
            marked.append(frozenset(key for key, (_, wrong) in zip(keys, words, strict=True) if wrong))
        wrong = np.array([bool(words) for words in marked], dtype=np.uint8)
        bad = np.flatnonzero(wrong)
        figures = [
            PrecisionStatistic(key="average precision", headline=True, wrong=wrong, units=units),
            localization("localization accuracy", bad.tolist(), [marked[row] for row in bad], units[bad]),
        ]
        signature = f"captions:{len(rows)}|wrong:{len(bad)}|ties:together"
        return Task([captions], count, figures, signature, details=True, sources=(path,))
