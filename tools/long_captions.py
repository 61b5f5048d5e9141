"""How parts of a long caption are best put together, and what length does to n-gram metrics; on made-up paragraphs.

    python -m tools.long_captions DATA

There is no rated set of long captions among the data, so paragraphs are made of people's captions: five captions of a
picture one after another, of which none to all five are exchanged for captions of another picture. What agrees best
with the number of right sentences is right. Prints the tables of docs/research/long-captions.md.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

import caplens
from caplens.core.tables import Table
from caplens.core.types import Floats, unit
from caplens.encoders.embedder import Embedder
from caplens.encoders.load import load_encoder
from caplens.encoders.sentence import load_sentence_encoder

PICTURES = 400
SENTENCES = 5
LIMITS = (0.4, 0.5, 0.6, 0.7)
COMBINE: dict[str, Callable[[Floats], float]] = {"mean": np.mean, "minimum": np.min}


def main(folder: str) -> None:
    data = Path(folder)
    generator = np.random.default_rng(12345)
    _print("Against the picture (Flickr8k, validation pictures, embedded encoder)", by_picture(data, generator))
    _print("Against a long reference (Pascal-50S, five captions against five others)", by_reference(data, generator))
    _print("Longer and longer captions, all of them right (Flickr8k)", by_length(data))


def by_picture(data: Path, generator: np.random.Generator) -> Table:
    """Sentences against pictures, by ways to combine them."""
    captions = _flickr8k(data, "val")
    names = sorted(captions)[:PICTURES]
    embedder = Embedder(load_encoder("embedded"))
    pictures = unit(embedder.images([data / "flickr8k" / "images" / name for name in names]).vectors)
    rows: list[list[str]] = []
    for kind, others in _others([" ".join(captions[name]) for name in names], generator).items():
        paragraphs, right = _exchange([captions[name] for name in names], others, generator)
        flat = unit(embedder.texts([sentence for sentences in paragraphs for sentence in sentences]))
        seen = np.repeat(pictures, SENTENCES + 1, axis=0)
        cosines = np.einsum("psd,pd->ps", flat.reshape(len(paragraphs), SENTENCES, -1), seen)
        whole = np.einsum("pd,pd->p", unit(embedder.texts([" ".join(each) for each in paragraphs])), seen)
        means = np.einsum("pd,pd->p", unit(flat.reshape(len(paragraphs), SENTENCES, -1).mean(axis=1)), seen)
        rows += _judged(kind, cosines, {"whole": whole, "vector of the mean": means}, right)
    return _table(rows)


def by_reference(data: Path, generator: np.random.Generator) -> Table:
    """Sentences against the sentences of one long reference."""
    content = json.loads(gzip.decompress((data / "pascal50s" / "pascal50s.json.gz").read_bytes()))
    references: dict[str, list[str]] = content["references"]
    names = [name for name in sorted(references) if len(references[name]) >= 2 * SENTENCES][:PICTURES]
    encoder = load_sentence_encoder("all-MiniLM-L6-v2")
    partners = [references[name][SENTENCES : 2 * SENTENCES] for name in names]
    theirs = encoder.encode([text for each in partners for text in each]).reshape(len(names), SENTENCES, -1)
    whole_theirs = encoder.encode([" ".join(each) for each in partners])
    rows: list[list[str]] = []
    for kind, others in _others([" ".join(references[name]) for name in names], generator).items():
        paragraphs, right = _exchange([references[name][:SENTENCES] for name in names], others, generator)
        flat = encoder.encode([text for each in paragraphs for text in each]).reshape(len(paragraphs), SENTENCES, -1)
        against = np.repeat(theirs, SENTENCES + 1, axis=0)
        best = np.einsum("psd,ptd->pst", flat, against).max(axis=2)
        whole = np.einsum(
            "pd,pd->p",
            encoder.encode([" ".join(each) for each in paragraphs]),
            np.repeat(whole_theirs, SENTENCES + 1, axis=0),
        )
        means = np.einsum("pd,pd->p", unit(flat.mean(axis=1)), unit(against.mean(axis=1)))
        rows += _judged(kind, best, {"whole": whole, "vector of the mean": means}, right)
    return _table(rows)


def by_length(data: Path) -> Table:
    """One to four captions of a picture one after another, against its fifth."""
    captions = _flickr8k(data, "test")
    names = sorted(captions)
    rows = []
    for count in range(1, SENTENCES):
        report = caplens.evaluate(
            [" ".join(captions[name][:count]) for name in names],
            [captions[name][SENTENCES - 1 :] for name in names],
            metrics=["cider-d", "cider-r", "bleu-4", "rouge-l", "meteor", "capture"],
        )
        rows.append([str(count), *(f"{100 * result.score:.1f}" for result in report)])
    return Table(("sentences", *(result.name for result in report)), rows)


def _flickr8k(data: Path, split: str) -> dict[str, list[str]]:
    content = json.loads((data / "flickr8k" / "flickr8k_captions.json").read_text("utf-8"))
    return {
        name: [text.removesuffix(" .").rstrip(".") + "." for text in entry["captions"]]
        for name, entry in content.items()
        if entry["split"] == split and len(entry["captions"]) == SENTENCES
    }


def _others(texts: Sequence[str], generator: np.random.Generator) -> dict[str, list[int]]:
    """For every picture another one: any, or the one whose captions are most alike."""
    vectors = load_sentence_encoder("all-MiniLM-L6-v2").encode(texts)
    alike = vectors @ vectors.T
    np.fill_diagonal(alike, -1)
    shift = int(generator.integers(1, len(texts)))
    return {
        "any picture": [(place + shift) % len(texts) for place in range(len(texts))],
        "similar picture": alike.argmax(axis=1).tolist(),
    }


def _exchange(
    texts: Sequence[Sequence[str]], others: Sequence[int], generator: np.random.Generator
) -> tuple[list[list[str]], np.ndarray]:
    """Every paragraph with none, one, … all sentences exchanged; which sentences are right."""
    paragraphs, right = [], []
    for place, own in enumerate(texts):
        order = generator.permutation(SENTENCES)
        for wrong in range(SENTENCES + 1):
            is_right = np.ones(SENTENCES, bool)
            is_right[order[:wrong]] = False
            foreign = texts[others[place]]
            paragraphs.append([own[slot] if is_right[slot] else foreign[slot] for slot in range(SENTENCES)])
            right.append(is_right)
    return paragraphs, np.array(right)


def _judged(kind: str, values: Floats, more: dict[str, Floats], right: np.ndarray) -> list[list[str]]:
    """Rows of the table of ways to combine, and of the one of wrong sentences that are found."""
    ways = {**{name: np.apply_along_axis(combine, 1, values) for name, combine in COMBINE.items()}, **more}
    rows = []
    for name, scores in ways.items():
        by_picture = scores.reshape(-1, SENTENCES + 1)
        tau = kendalltau(right.sum(axis=1), scores).statistic
        pairs = (by_picture[:, :1] > by_picture[:, 1:2]).mean()
        later = (by_picture[:, 1:-1] > by_picture[:, 2:]).mean()
        rows.append([kind, name, *(f"{100 * figure:.1f}" for figure in (tau, pairs, later))])
    one = right.sum(axis=1) == SENTENCES - 1
    found = (values[one].argmin(axis=1) == right[one].argmin(axis=1)).mean()
    rows.append([kind, "lowest is the wrong one", f"{100 * found:.1f}", "", ""])
    ordered = np.sort(values, axis=1)
    share = ordered[:, 0] / ordered[:, 1:].mean(axis=1)
    for limit in LIMITS:
        wrong, false = (share[one] < limit).mean(), (share[right.all(axis=1)] < limit).mean()
        rows.append([kind, f"lowest below {limit:g} of the others", f"{100 * wrong:.1f}", f"{100 * false:.1f}", ""])
    return rows


def _table(rows: list[list[str]]) -> Table:
    """Of the rows about the lowest sentence, the figures are how often it is wrong, and how often it only seems so."""
    head = (
        "exchanged for",
        "combined by",
        "τb with right sentences",
        "none preferred to one wrong",
        "n to n + 1 wrong",
    )
    return Table(head, rows)


def _print(title: str, table: Table) -> None:
    print(f"\n{title}\n\n{table.to_markdown()}")


if __name__ == "__main__":
    main(sys.argv[1])
