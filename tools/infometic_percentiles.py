"""Where people's captions stand on InfoMetIC's scales: quantiles over Flickr8k's validation photos, for explanations.

Run it again after the weights change: python tools/infometic_percentiles.py FLICKR8K_FOLDER FEATURES [ENCODER]
ENCODER is embedded or embedded-strong, whose shipped weights are measured. FEATURES is the folder of
`caplens train infometic --features`; what is missing there is made. Then it prints, for captions of the test photos
with one word replaced and for captions of other photos, how many of the words are called wrong, and how many regions
that have a name and that no word names are called mentioned. In a caption of another photo those words count as wrong
that no caption of the photo uses.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.details import Details, Word
from caplens.core.errors import CaplensWarning
from caplens.core.progress import silent
from caplens.core.workspace import Workspace
from caplens.encoders.load import load_encoder
from caplens.evaluation.details import apply_verdict_rules
from caplens.metrics.infometic.metric import SHIPPED, InfoMetic
from caplens.metrics.infometic.percentiles import SCORES, percentiles_of, percentiles_path, word_weight
from caplens.metrics.infometic.region_features import ImageRegions, RegionFeatures
from caplens.storage.atomic import write_atomically
from caplens.training.infometic.data import corrupt_captions, frequent_words, tag_captions
from caplens.training.infometic.regions import region_features
from caplens.training.infometic.tensors import nearest
from caplens.training.pairs import read_pairs
from caplens.vision.regions import make_proposer

LEVELS = 41
FAR = 0.05
"""So many of people's captions count as far from their picture."""


class Featured(InfoMetic):
    """InfoMetIC over pictures whose regions are known."""

    images: list[ImageRegions]
    rows: list[int]

    def region_features(self, work: Workspace) -> RegionFeatures:
        return RegionFeatures(self.images, self.rows)


@dataclass(frozen=True)
class Photos:
    """Flickr8k's photos through the regions that a training kept."""

    folder: Path
    features: Path
    encoder: str

    def regions(self, split: str, names: list[str]) -> list[ImageRegions]:
        """Of the photos of one split."""
        encoder, proposer = load_encoder(self.encoder, keep=self.features), make_proposer("detector")
        return region_features(
            encoder, proposer, self.folder / "images", names, self.features / f"regions-{split}", silent
        )


def explain(photos: Photos, split: str, names: list[str], rows: list[int], texts: list[str]) -> list[Details]:
    """Details of captions; `rows` says which of the pictures each is about."""
    metric = Featured(photos.encoder)
    metric.rows, metric.images = rows, photos.regions(split, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaplensWarning)
        captions = CaptionSet.of(texts, images=[photos.folder / "images" / names[row] for row in rows])
        result = metric.compute(Workspace(captions))
    return [result.explained(row) for row in range(len(texts))]


def judged(details: Details) -> list[Word]:
    return [word for word in details["words"] if "status" in word]


def measure(photos: Photos) -> None:
    """Write the quantiles of people's captions."""
    by_photo = read_pairs(photos.folder / "flickr8k_captions.json", ()).val
    texts = [text for found in by_photo.values() for text in found]
    rows = [number for number, found in enumerate(by_photo.values()) for _ in found]
    details = explain(photos, "val", list(by_photo), rows, texts)
    details = [entry for entry in details if entry["overall"] is not None]  # a few do not look English
    scale = load_encoder(photos.encoder).scale
    fits_from = float(np.quantile([entry["cosine"] for entry in details], FAR).round(3))
    values: dict[str, list[float]] = {
        key: [(entry[key] or 0.0) + scale * entry["cosine"] for entry in details] for key in SCORES
    }
    values["word"] = [
        word_weight(word["score"] or 0.0, len(judged(entry)), entry["cosine"], fits_from)
        for entry in details
        for word in judged(entry)
    ]
    entry = {
        "scale": scale,
        "fits_from": fits_from,
        "from": f"{len(texts):,} captions by people of {len(by_photo):,} Flickr8k validation photos",
        **{key: np.quantile(found, np.linspace(0, 1, LEVELS)).round(4).tolist() for key, found in values.items()},
    }
    known = json.loads(percentiles_path().read_text("utf-8"))
    shipped = {InfoMetic(encoder).model().weights_hash for encoder in SHIPPED}
    content = {weights: kept for weights, kept in known.items() if weights in shipped}
    content[InfoMetic(photos.encoder).model().weights_hash] = entry
    write_atomically(percentiles_path(), json.dumps(content, indent=1) + "\n")
    percentiles_of.cache_clear()


def check(photos: Photos) -> None:
    """What readers are told about captions of the test photos: with one word replaced, and of other photos."""
    pairs = read_pairs(photos.folder / "flickr8k_captions.json", ())
    frequent = frequent_words(tag_captions([text for texts in pairs.train.values() for text in texts]))
    by_photo = {row: tag_captions(texts) for row, texts in enumerate(pairs.test.values())}
    words, rows, changed = corrupt_captions(by_photo, frequent, 1, 0)
    texts = [" ".join(word.text for word in found) for found in words]
    details = explain(photos, "test", list(pairs.test), rows, texts)
    show("one word replaced", details, [{place} for place in changed])
    firsts = [texts[0] for texts in pairs.test.values()]
    own = list(by_photo)
    show("its own caption", explain(photos, "test", list(pairs.test), own, firsts), [set()] * len(own))
    others = {"of a similar photo": similar(photos, list(pairs.test)), "of any photo": own[1:] + own[:1]}
    for title, owners in others.items():
        details = explain(photos, "test", list(pairs.test), own, [firsts[owner] for owner in owners])
        used = [{word.text.lower() for found in by_photo[row] for word in found} for row in own]
        unused = [
            {number for number, word in enumerate(entry["words"]) if word["text"].lower() not in said}
            for entry, said in zip(details, used, strict=True)
        ]
        show(title, details, unused)


def similar(photos: Photos, names: list[str]) -> list[int]:
    """The most similar other test photo of each."""
    images = photos.regions("test", names)
    return [int(row[0]) for row in nearest(np.stack([image.vectors[0] for image in images]), 1)]


def show(title: str, details: Sequence[Details], wrong: Sequence[set[int]]) -> None:
    print(title)
    for judge, entries in (("at β", details), ("for readers", [apply_verdict_rules(entry) for entry in details])):
        print(f"  {judge:12} wrong words: {shares(entries, wrong, True)}; others: {shares(entries, wrong, False)}")
        print(f"  {judge:12} regions: {mentioned(entries)}")


def shares(entries: Sequence[Details], wrong: Sequence[set[int]], among: bool) -> str:
    """How many words have which status, among the wrong ones or among the others."""
    counts = Counter(
        word["status"]
        for details, places in zip(entries, wrong, strict=True)
        for number, word in enumerate(details["words"])
        if "status" in word and (number in places) == among
    )
    return ", ".join(f"{status} {count / counts.total():.3f}" for status, count in counts.most_common())


def mentioned(entries: Sequence[Details]) -> str:
    """How many regions with a name are called mentioned, of those that a word names and of the others."""
    counts: Counter[tuple[bool, bool]] = Counter()
    for details in entries:
        named = {number for word in details["words"] for number in word.get("regions", ())}
        for number, region in enumerate(details["regions"]):
            if "label" in region:
                counts[number in named, region.get("status") in ("mentioned", "partly")] += 1
    parts = (("named by a word", True), ("named by none", False))
    return "; ".join(f"{counts[key, True]} of {counts[key, True] + counts[key, False]} {text}" for text, key in parts)


if __name__ == "__main__":
    given = Photos(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "embedded")
    measure(given)
    check(given)
