"""How well references find a wrong word: captions by people with one word replaced, held against the other references.

python tools/explained_words.py CAPTIONS (a file with splits, as `caplens train` reads it; its test split is used)
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from caplens.core.details import Details
from caplens.evaluation.reference_support import ReferenceMatcher
from caplens.training.infometic.data import frequent_words, replace_word, tag_captions
from caplens.training.pairs import read_pairs


def replaced(captions: Path, seed: int = 0) -> list[tuple[str, list[str], int]]:
    """Caption, other references of its picture, and the place of the replaced word; one per picture."""
    pairs = read_pairs(captions, ())
    frequent = frequent_words(tag_captions([text for texts in pairs.train.values() for text in texts]))
    random = np.random.default_rng(seed)
    made = []
    for texts in pairs.test.values():
        words = tag_captions(texts)
        true = frozenset(word.text.lower() for found in words for word in found)
        place = int(random.integers(len(texts)))
        found = replace_word(words[place], frequent, true, random)
        if found is not None:
            others = [text for number, text in enumerate(texts) if number != place]
            made.append((" ".join(word.text for word in found[0]), others, found[1]))
    return made


def figures(entries: list[Details], places: list[int]) -> str:
    """Of the replaced words, the share called wrong; of all other judged words, the share called wrong."""
    caught, false = [], []
    for details, place in zip(entries, places, strict=True):
        for number, word in enumerate(details["words"]):
            if number == place:
                caught.append(word.get("status") == "wrong")
            elif "status" in word:
                false.append(word["status"] == "wrong")
    return (
        f"replaced words called wrong {np.mean(caught):.3f}, others called wrong {np.mean(false):.3f} ({len(caught):,})"
    )


def main(captions: Path) -> None:
    rows = replaced(captions)
    texts, references, places = (list(column) for column in zip(*rows, strict=True))
    support = ReferenceMatcher()
    for note in support.notes:
        print(f"note: {note}", file=sys.stderr)
    print(figures(support.explain(texts, references), places))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
