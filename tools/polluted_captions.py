"""Captions with one word replaced, in the layout of `caplens bench captokeneval`: for want of the released data.

    python tools/polluted_captions.py FLICKR8K_FOLDER FEATURES OUTPUT
    caplens bench captokeneval --data OUTPUT --data FLICKR8K_FOLDER -m infometic,info-clip

One caption of each Flickr8k test photo; the replaced word is the wrong one. Regions are the detector's named ones with
weak labels as in training. FEATURES is the folder of `caplens train infometic --features`; what is missing is made.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from caplens.encoders.load import load_encoder
from caplens.storage.atomic import write_atomically
from caplens.storage.weights import require
from caplens.text.object_labels import ObjectLabels
from caplens.text.wordnet import WORDNET
from caplens.training.infometic.data import load_splits, mentioned_regions
from caplens.vision.regions import make_proposer


def main() -> None:
    folder, features, output = (Path(given) for given in sys.argv[1:4])
    captions = folder / "flickr8k_captions.json"
    encoder, proposer = load_encoder("embedded"), make_proposer("detector")
    split = load_splits(encoder, proposer, folder / "images", captions, [], features, names=("test",))["test"]
    things = ObjectLabels(require(WORDNET))
    rows = []
    wrong = split.corrupted
    for words, owner, changed in zip(wrong.words, wrong.owner, wrong.changed, strict=True):
        regions = split.pictures.image_regions[owner].regions
        named, said = mentioned_regions(words, regions, things)
        rows.append(
            {
                "image": split.pictures.names[owner],
                "caption": " ".join(word.text for word in words),
                "words": [
                    {"word": word.text, "correct": place != int(changed)}
                    for place, word in enumerate(words)
                    if word.semantic
                ],
                "regions": [
                    {"box": box.tolist(), "mentioned": bool(is_said)}
                    for box, has_name, is_said in zip(regions.boxes, named, said, strict=True)
                    if has_name
                ],
            }
        )
    output.mkdir(parents=True, exist_ok=True)
    write_atomically(output / "captokeneval.json", json.dumps(rows, indent=1) + "\n")
    print(f"{len(rows)} captions, {sum(len(row['words']) for row in rows)} words, {output / 'captokeneval.json'}")


if __name__ == "__main__":
    main()
