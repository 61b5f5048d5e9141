"""nocaps-FOIL: captions of things that COCO does not have, against the same captions with one thing exchanged."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np

from caplens.bench.base import RatingSet, Task, number_units, rating_set, require_rows
from caplens.bench.data import DataFolders, read_json
from caplens.bench.localization import PROTOCOL, Marked, localization, number_words
from caplens.bench.statistics import AgreementStatistic, PrecisionStatistic
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.text.words import split_words

DOMAINS = ("in-domain", "near-domain", "out-domain")


@rating_set
class NocapsFoil(RatingSet):
    name = "nocaps-foil"
    title = "nocaps-FOIL"
    what = "captions of nocaps photos against foils with one noun exchanged, many of things that COCO does not have"
    protocol = "average precision: foils, found by the lowest score; localization accuracy: " + PROTOCOL
    license = "see the authors' repository; captions as nocaps"
    home = "data/nocaps-val-foil.json of github.com/DavidMChan/aloha"
    paper = "Petryk et al., NAACL 2024 (ALOHa)"
    files = (("nocaps_foil.json", "nocaps-val-foil.json"),)

    def load(self, data: DataFolders) -> Task:
        path = self.require(data, *self.files[0])
        pairs = read_json(path)
        require_rows(len(pairs), self.title, path)
        for number, pair in enumerate(pairs, start=1):
            for key in ("baseline", "foil", "references", "image_path", "domain"):
                if key not in pair:
                    raise InputError(f"no {key!r}", where=f"{path}, row {number}")
        units, count = number_units(pair["image_path"] for pair in pairs)
        captions = CaptionSet(
            ids=[f"{number}{side}" for number in range(len(pairs)) for side in ("right", "wrong")],
            candidates=[text for pair in pairs for text in (pair["baseline"], pair["foil"])],
            references=[pair["references"] for pair in pairs for _ in (0, 1)],
            images=data.pictures([pair["image_path"] for pair in pairs for _ in (0, 1)]),
            source=path.name,
        )
        marked = [exchanged(pair["baseline"], pair["foil"]) for pair in pairs]
        wrong = np.tile(np.array([0, 1], dtype=np.uint8), len(pairs))
        figures: list[AgreementStatistic] = [
            PrecisionStatistic(key="average precision", headline=True, wrong=wrong, units=np.repeat(units, 2)),
            localization("localization accuracy", range(1, 2 * len(pairs), 2), marked, units),
        ]
        for domain in DOMAINS:
            places = [place for place, pair in enumerate(pairs) if pair["domain"] == domain]
            if places:
                some = [marked[place] for place in places]
                odd = [2 * place + 1 for place in places]
                figures.append(localization(f"localization accuracy, {domain}", odd, some, units[places]))
        signature = f"pairs:{len(pairs)}|ties:together"
        return Task([captions], count, figures, signature, details=True, sources=(path,))


def exchanged(right: str, foil: str) -> Marked:
    """Return the words of the foil that the right caption does not have in their place.

    >>> sorted(exchanged("A dog and a cat.", "A hot dog and a cat."))
    [('hot', 0)]
    """
    words = number_words(split_words(foil))
    matcher = SequenceMatcher(None, [word.lower() for word in split_words(right)], [word for word, _ in words], False)
    return frozenset(
        word for kind, _, _, start, stop in matcher.get_opcodes() if kind != "equal" for word in words[start:stop]
    )
