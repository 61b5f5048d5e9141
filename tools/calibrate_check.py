"""Fit and measure the verdicts of `caplens check` on Flickr8k photos that no model was trained on.

    python tools/calibrate_check.py FLICKR8K_FOLDER [--over infometic --kept PAIRS.jsonl] [--features DIR] [--write]

For each of 1,000 validation and 400 test photos: two of its captions, two of any other photos, one of the most similar
photo, and one of its own with a noun replaced. Weights are fitted on half of the validation photos; how often a verdict
is right is measured on the other half. There are two calibrations: over the strong encoder (ten minutes on two cores),
and over InfoMetIC for machines without its weights (an hour; what it says of every pair is kept in a file).
--features is the folder of `caplens train`, in which the tower's outputs of these photos are kept. With --write the
calibration that ships is replaced.
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
from caplens.evaluation.belonging import ENCODER, Background
from caplens.evaluation.check import Calibration, evidence
from caplens.storage import weights
from caplens.storage.atomic import write_atomically
from caplens.storage.tensors import write_tensors
from caplens.text.words import tag_words
from caplens.training.pairs import read_pairs

Floats = NDArray[np.float64]
PHOTOS = {"val": 1000, "test": 400}
FREQUENT = 500
KINDS = ("right", "random", "similar", "noun")
LIMITS = {"infometic": (0.88, 0.4), ENCODER: (0.6, 0.3)}
"""From which probability on a text is called wrong, and doubtful."""
BACKGROUND = 512
TARGET = Path(__file__).parents[1] / "src" / "caplens" / "storage" / "shipped" / "check-calibration.json"


def draw_pairs(folder: Path) -> list[dict[str, Any]]:
    """Return every pair of photo and text, with its split and its kind."""
    listed = read_pairs(folder / "flickr8k_captions.json", ())
    nouns = frequent_nouns([text for texts in list(listed.train.values())[:2000] for text in texts])
    random = np.random.default_rng(0)
    pairs = []
    for split, most in PHOTOS.items():
        captions: dict[str, list[str]] = getattr(listed, split)
        names = [sorted(captions)[row] for row in random.permutation(len(captions))[:most]]
        for photo, kind, text in texts_of(names, captions, nearest(folder, names), nouns, random):
            pairs.append({"split": split, "kind": kind, "photo": photo, "caption": text})
    return pairs


def add_infometic(pairs: list[dict[str, Any]], folder: Path, target: Path) -> None:
    """Add InfoMetIC's evidence to every pair; details are kept in the file, and read from it where it is there."""
    if not target.exists():
        with target.open("w", encoding="utf-8") as out:
            for start in range(0, len(pairs), 600):
                part = pairs[start : start + 600]
                images = [folder / "images" / pair["photo"] for pair in part]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CaplensWarning)
                    found = caplens.evaluate([pair["caption"] for pair in part], images=images, metrics=["infometic"])
                out.writelines(json.dumps(found["infometic"].explained(row)) + "\n" for row in range(len(part)))
                print(f"{start + len(part):,} of {len(pairs):,} texts", flush=True)
    for pair, line in zip(pairs, target.read_text("utf-8").splitlines(), strict=True):
        pair["evidence"] = evidence(json.loads(line))


def add_strong(pairs: list[dict[str, Any]], folder: Path, background: Background, features: Path | None) -> None:
    """Add the strong encoder's evidence to every pair."""
    encoder = load_encoder(ENCODER, keep=features)
    embedder = Embedder(encoder, progress=lambda *state: print(*state, end="\r", flush=True))
    pictures = embedder.images([folder / "images" / pair["photo"] for pair in pairs]).vectors
    found = background.evidence(pictures, embedder.texts([pair["caption"] for pair in pairs]))
    for pair, row in zip(pairs, found, strict=True):
        pair["evidence"] = row.tolist()


def make_background(folder: Path, features: Path | None) -> Background:
    """Return vectors of training photos and of captions of other training photos."""
    embedder = Embedder(load_encoder(ENCODER, keep=features))
    train = read_pairs(folder / "flickr8k_captions.json", ()).train
    names = [sorted(train)[row] for row in np.random.default_rng(1).permutation(len(train))[: 2 * BACKGROUND]]
    pictures = embedder.images([folder / "images" / name for name in names[:BACKGROUND]]).vectors
    captions = embedder.texts([train[name][0] for name in names[BACKGROUND:]])
    rounded = (unit(vectors).astype(np.float16) for vectors in (pictures, captions))  # as it ships
    return Background(*(unit(vectors) for vectors in rounded))


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


def shares(pairs: list[dict[str, Any]], calibration: Calibration, threshold: float) -> dict[str, float]:
    """For each kind the share of texts whose probability reaches the threshold."""
    found: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for pair in pairs:
        found[pair["kind"]].append(reaches(pair, calibration, threshold))
    return {kind: float(np.mean(values)) for kind, values in found.items() if values}


def reaches(pair: dict[str, Any], calibration: Calibration, threshold: float) -> bool:
    """Whether the probability of a pair reaches the threshold; where nothing can be said, it does not."""
    return pair["evidence"] is not None and calibration.probability(pair["evidence"]) >= threshold


def bar(pairs: list[dict[str, Any]], calibration: Calibration, draws: int = 200) -> str:
    """Of 200 test photos with 40 captions swapped at random: how many of each are called wrong, over many draws."""
    by_photo: dict[str, dict[str, list[bool]]] = {}
    for pair in pairs:
        kinds = by_photo.setdefault(pair["photo"], {})
        kinds.setdefault(pair["kind"], []).append(reaches(pair, calibration, calibration.wrong_from))
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
    arguments.add_argument("--over", choices=sorted(LIMITS), default=ENCODER)
    arguments.add_argument("--kept", type=Path, default=Path("pairs.jsonl"))
    arguments.add_argument("--features", type=Path)
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    pairs = draw_pairs(given.folder)
    if given.over == ENCODER:
        background = make_background(given.folder, given.features)
        add_strong(pairs, given.folder, background, given.features)
        measured_with = load_encoder(ENCODER).weights_hash
    else:
        add_infometic(pairs, given.folder, given.kept)
        measured_with = weights.digest(weights.shipped("infometic"))[:12]
    validation = [pair for pair in pairs if pair["split"] == "val"]
    photos = sorted({pair["photo"] for pair in validation})
    first = set(photos[: len(photos) // 2])
    fitted = [pair for pair in validation if pair["photo"] in first and pair["kind"] in ("right", "random")]
    usable = [(pair["evidence"], pair["kind"] == "random") for pair in fitted if pair["evidence"] is not None]
    solved = fit(np.array([features for features, _ in usable]), np.array([wrong for _, wrong in usable]))
    wrong_from, doubtful_from = LIMITS[given.over]
    calibration = Calibration(solved, wrong_from, doubtful_from, measured_with)
    right = [calibration.probability(features) for features, wrong in usable if not wrong]
    print("people's captions of the fitted half, quantiles of the probability:")
    print(*(f"{share:.3f}: {np.quantile(right, share):.3f}" for share in (0.93, 0.95, 0.97, 0.98, 0.985, 0.99)))
    held_out = [pair for pair in validation if pair["photo"] not in first]
    wrong, noticed = (shares(held_out, calibration, level) for level in (wrong_from, doubtful_from))
    rates = {
        "wrong_is_right": wrong["random"] / (wrong["random"] + wrong["right"]),
        "swapped_found": wrong["random"],
        "right_called_wrong": wrong["right"],
        "right_called_doubtful": noticed["right"] - wrong["right"],
        "similar_noticed": noticed["similar"],
        "noun_noticed": noticed["noun"],
    }
    test = [pair for pair in pairs if pair["split"] == "test"]
    for title, part in (("validation, other half", held_out), ("test", test)):
        for name, level in (("wrong", wrong_from), ("wrong or doubtful", doubtful_from)):
            shown = ", ".join(f"{kind} {100 * value:.1f} %" for kind, value in shares(part, calibration, level).items())
            print(f"{title}: called {name}: {shown}")
    print(bar(test, calibration))
    if given.write:
        content = json.loads(TARGET.read_text("utf-8"))
        content[given.over] = {
            "weights": list(calibration.weights),
            "wrong_from": wrong_from,
            "doubtful_from": doubtful_from,
            "measured_with": measured_with,
            "rates": {key: round(value, 4) for key, value in rates.items()},
        }
        write_atomically(TARGET, json.dumps(content, indent=1) + "\n")
        if given.over == ENCODER:
            arrays = {"pictures": background.pictures, "captions": background.captions}
            target = TARGET.with_name("check-background.safetensors")
            write_tensors(target, {name: array.astype(np.float16) for name, array in arrays.items()}, {})
        print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
