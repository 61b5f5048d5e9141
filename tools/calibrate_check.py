"""Fit and measure the verdicts of `caplens check` on Flickr8k photos that no model was trained on.

    python tools/calibrate_check.py FLICKR8K_FOLDER PAIRS.jsonl [--write]

PAIRS.jsonl keeps what the metric says of every pair of photo and text; it is made where it is missing (an hour on two
cores). For each of 1,000 validation and 400 test photos: two of its captions, two of any other photos, one of the most
similar photo, and one of its own with a noun replaced. Weights are fitted on half of the validation photos; how often a
verdict is right is measured on the other half. With --write the calibration that ships is replaced.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import caplens
from caplens.core.errors import CaplensWarning
from caplens.core.types import unit
from caplens.encoders.embedder import Embedder
from caplens.encoders.load import load_encoder
from caplens.evaluation.check import Calibration, evidence
from caplens.storage import weights
from caplens.storage.atomic import write_atomically
from caplens.text.words import tag_words
from caplens.training.pairs import read_pairs

Floats = NDArray[np.float64]
PHOTOS = {"val": 1000, "test": 400}
FREQUENT = 500
KINDS = ("right", "random", "similar", "noun")
WRONG_FROM, DOUBTFUL_FROM = 0.88, 0.4
TARGET = Path(__file__).parents[1] / "src" / "caplens" / "storage" / "shipped" / "check-calibration.json"


def make_pairs(folder: Path, target: Path) -> None:
    """Write one row per pair of photo and text: its kind, and the details that InfoMetIC gives."""
    listed = read_pairs(folder / "flickr8k_captions.json", ())
    nouns = frequent_nouns([text for texts in list(listed.train.values())[:2000] for text in texts])
    random = np.random.default_rng(0)
    with target.open("w", encoding="utf-8") as out:
        for split, most in PHOTOS.items():
            captions: dict[str, list[str]] = getattr(listed, split)
            names = [sorted(captions)[row] for row in random.permutation(len(captions))[:most]]
            rows = list(texts_of(names, captions, nearest(folder, names), nouns, random))
            for start in range(0, len(rows), 600):
                part = rows[start : start + 600]
                images = [folder / "images" / photo for photo, _, _ in part]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CaplensWarning)
                    found = caplens.evaluate([text for _, _, text in part], images=images, metrics=["infometic"])
                for place, (photo, kind, text) in enumerate(part):
                    details = found["infometic"].explained(place)
                    row = {"split": split, "kind": kind, "photo": photo, "caption": text, "details": details}
                    out.write(json.dumps(row) + "\n")
                print(f"{split}: {start + len(part):,} of {len(rows):,} texts", flush=True)


def texts_of(
    names: list[str],
    captions: dict[str, list[str]],
    similar: list[int],
    nouns: list[str],
    random: np.random.Generator,
) -> Iterator[tuple[str, str, str]]:
    """Photo, kind and text of every pair."""
    for number, name in enumerate(names):
        order = random.permutation(len(captions[name])).tolist()
        for place in order[:2]:
            yield name, "right", captions[name][place]
        for _ in range(2):
            other = (number + 1 + int(random.integers(len(names) - 1))) % len(names)
            yield name, "random", captions[names[other]][int(random.integers(5))]
        yield name, "similar", captions[names[similar[number]]][int(random.integers(5))]
        replaced = replace_noun(captions[name], order[2], nouns, random)
        if replaced is not None:
            yield name, "noun", replaced


def nearest(folder: Path, names: list[str]) -> list[int]:
    """For every photo the one whose picture vector is nearest."""
    vectors = unit(Embedder(load_encoder("embedded")).images([folder / "images" / name for name in names]).vectors)
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -1)
    return [int(place) for place in similarity.argmax(axis=1)]


def frequent_nouns(texts: list[str]) -> list[str]:
    """The most frequent nouns, the most frequent first."""
    words = [word.text.lower() for listed in tag_words(texts) for word in listed if word.tag == "NN"]
    names, counts = np.unique(words, return_counts=True)
    return [str(name) for name in names[np.argsort(-counts, kind="stable")][:FREQUENT]]


def replace_noun(texts: list[str], place: int, nouns: list[str], random: np.random.Generator) -> str | None:
    """A caption with one noun replaced by one that no caption of the photo has."""
    tagged = tag_words(texts)
    used = {word.text.lower() for listed in tagged for word in listed}
    words = tagged[place]
    places = [number for number, word in enumerate(words) if word.tag == "NN"]
    choice = [noun for noun in nouns if noun not in used]
    if not places or not choice:
        return None
    changed = places[int(random.integers(len(places)))]
    new = choice[int(random.integers(len(choice)))]
    return " ".join(new if number == changed else word.text for number, word in enumerate(words))


def fit(features: Floats, wrong: NDArray[np.bool_], ridge: float = 1e-3) -> tuple[float, ...]:
    """Logistic regression by Newton's method; weights of the features, then the constant."""
    mean, spread = features.mean(axis=0), features.std(axis=0)
    inputs = np.column_stack([(features - mean) / spread, np.ones(len(features))])
    solved = np.zeros(inputs.shape[1])
    for _ in range(100):
        chance = 1 / (1 + np.exp(-inputs @ solved))
        gradient = inputs.T @ (chance - wrong) / len(wrong) + ridge * solved
        curvature = (inputs * (chance * (1 - chance))[:, None]).T @ inputs / len(wrong) + ridge * np.eye(len(solved))
        solved -= np.linalg.solve(curvature, gradient)
    scaled = solved[:-1] / spread
    return (*map(float, scaled), float(solved[-1] - (scaled * mean).sum()))


def shares(rows: list[dict[str, Any]], calibration: Calibration, threshold: float) -> dict[str, float]:
    """For each kind the share of texts whose probability reaches the threshold."""
    found: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for row in rows:
        probability = calibration.probability(row["details"])
        found[row["kind"]].append(probability is not None and probability >= threshold)
    return {kind: float(np.mean(values)) for kind, values in found.items() if values}


def bar(rows: list[dict[str, Any]], calibration: Calibration, draws: int = 200) -> str:
    """Of 200 test photos with 40 captions swapped at random: how many of each are called wrong, over many draws."""
    by_photo: dict[str, dict[str, list[bool]]] = {}
    for row in rows:
        probability = calibration.probability(row["details"]) or 0.0
        kinds = by_photo.setdefault(row["photo"], {})
        kinds.setdefault(row["kind"], []).append(probability >= calibration.wrong_from)
    names, random = sorted(by_photo), np.random.default_rng(0)
    swapped, honest = [], []
    for _ in range(draws):
        chosen = [names[place] for place in random.permutation(len(names))[:200]]
        swapped.append(sum(by_photo[name]["random"][int(random.integers(2))] for name in chosen[:40]))
        honest.append(sum(by_photo[name]["right"][int(random.integers(2))] for name in chosen[40:]))
    return (
        f"200 test photos, {draws} draws: of 40 swapped captions {np.mean(swapped):.1f} called wrong "
        f"({np.quantile(swapped, 0.05):.0f} to {np.quantile(swapped, 0.95):.0f}), of 160 right ones "
        f"{np.mean(honest):.1f} ({np.quantile(honest, 0.05):.0f} to {np.quantile(honest, 0.95):.0f})"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("pairs", type=Path)
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    if not given.pairs.exists():
        make_pairs(given.folder, given.pairs)
    rows = [json.loads(line) for line in given.pairs.read_text("utf-8").splitlines()]
    validation = [row for row in rows if row["split"] == "val"]
    photos = sorted({row["photo"] for row in validation})
    first = set(photos[: len(photos) // 2])
    fitted = [row for row in validation if row["photo"] in first and row["kind"] in ("right", "random")]
    known = [(evidence(row["details"]), row["kind"] == "random") for row in fitted]
    usable = [(features, wrong) for features, wrong in known if features is not None]
    solved = fit(np.array([features for features, _ in usable]), np.array([wrong for _, wrong in usable]))
    calibration = Calibration(solved, WRONG_FROM, DOUBTFUL_FROM, weights.digest(weights.shipped("infometic"))[:12])
    held_out = [row for row in validation if row["photo"] not in first]
    wrong, noticed = (shares(held_out, calibration, level) for level in (WRONG_FROM, DOUBTFUL_FROM))
    rates = {
        "wrong_is_right": wrong["random"] / (wrong["random"] + wrong["right"]),
        "swapped_found": wrong["random"],
        "right_called_wrong": wrong["right"],
        "right_called_doubtful": noticed["right"] - wrong["right"],
        "similar_noticed": noticed["similar"],
        "noun_noticed": noticed["noun"],
    }
    test = [row for row in rows if row["split"] == "test"]
    for title, part in (("validation, other half", held_out), ("test", test)):
        for name, level in (("wrong", WRONG_FROM), ("wrong or doubtful", DOUBTFUL_FROM)):
            shown = ", ".join(f"{kind} {100 * value:.1f} %" for kind, value in shares(part, calibration, level).items())
            print(f"{title}: called {name}: {shown}")
    print(bar(test, calibration))
    if given.write:
        content = {
            "weights": list(calibration.weights),
            "wrong_from": WRONG_FROM,
            "doubtful_from": DOUBTFUL_FROM,
            "measured_with": calibration.measured_with,
            "rates": {key: round(value, 4) for key, value in rates.items()},
        }
        write_atomically(TARGET, json.dumps(content, indent=1) + "\n")
        print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
