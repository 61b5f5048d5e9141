"""Diversity, each score against a slow twin that follows its definition."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caplens
from caplens.core.errors import MetricNote, MissingData
from caplens.metrics.diversity import spread

PICTURES = {
    "one": ["a dog runs on the grass", "a dog runs on the green grass", "the dog is running"],
    "two": ["a cat", "a cat"],
    "three": ["two men ride bikes down a street", "people cycling", "a street with two men", "men on bikes"],
}
CAPTIONS = [text for texts in PICTURES.values() for text in texts]
GROUPS = [name for name, texts in PICTURES.items() for _ in texts]


def per_picture(metric: str, **options: Any) -> dict[str, float]:
    report = caplens.evaluate(CAPTIONS, groups=GROUPS, metrics=[metric], **options)
    return dict(zip(PICTURES, report.per_picture("mean")[metric].scores.tolist(), strict=True))


def naive_div(n: int) -> Callable[[list[str]], float]:
    def div(texts: list[str]) -> float:
        grams = {
            tuple(words[i : i + n]) for words in map(str.split, texts) for i in range(len(words)) if i + n <= len(words)
        }
        return len(grams) / sum(len(text.split()) for text in texts)

    return div


def naive_distinct(texts: list[str]) -> float:
    return len(set(texts)) / len(texts)


@pytest.mark.parametrize(
    ("metric", "naive"), [("div-1", naive_div(1)), ("div-2", naive_div(2)), ("distinct", naive_distinct)]
)
def test_ratios_are_those_of_every_picture(metric: str, naive: Callable[[list[str]], float]) -> None:
    assert per_picture(metric) == pytest.approx({name: naive(texts) for name, texts in PICTURES.items()})


def test_mbleu_is_bleu_against_the_others() -> None:
    made = caplens.evaluate(CAPTIONS, groups=GROUPS, metrics=["mbleu-4"])["mbleu-4"]
    others = [
        [text for i, text in enumerate(texts) if i != own] for texts in PICTURES.values() for own in range(len(texts))
    ]
    expected = caplens.evaluate(CAPTIONS, others, metrics=["bleu-4"])["bleu-4"]
    np.testing.assert_allclose(made.scores, expected.scores)
    assert made.score == pytest.approx(expected.score)
    assert not made.metric.higher_is_better


def naive_self_cider(pictures: dict[str, list[str]]) -> dict[str, float]:
    """By singular values of the matrix of unit tf-idf vectors, n = 1..4 side by side."""

    def grams(text: str) -> Counter[tuple[str, ...]]:
        words = text.split()
        return Counter(tuple(words[i : i + n]) for n in range(1, 5) for i in range(len(words) - n + 1))

    frequency = Counter(gram for texts in pictures.values() for gram in set().union(*map(grams, texts)))
    made = {}
    for name, texts in pictures.items():
        vectors = []
        for text in texts:
            counts = grams(text)
            vector = {gram: count * (log(len(pictures)) - log(frequency[gram])) for gram, count in counts.items()}
            norms = [sqrt(sum(v * v for gram, v in vector.items() if len(gram) == n)) for n in range(1, 5)]
            vectors.append({gram: v / norms[len(gram) - 1] for gram, v in vector.items() if v})
        space = sorted(set().union(*vectors))
        matrix = np.array([[vector.get(gram, 0.0) for gram in space] for vector in vectors])
        values = np.linalg.svd(matrix, compute_uv=False)
        made[name] = -log(values[0] / values.sum()) / log(len(texts))
    return made


def test_self_cider_equals_singular_values_of_tf_idf() -> None:
    assert per_picture("self-cider") == pytest.approx(naive_self_cider(PICTURES), abs=1e-6)


def test_self_cider_counts_documents_in_references_where_there_are_any() -> None:
    references = {"one": ["a dog"], "two": ["two cats"], "three": ["men on bikes"]}
    with_references = caplens.evaluate(CAPTIONS, references, groups=GROUPS, metrics=["self-cider"])["self-cider"]
    table = per_picture("self-cider", idf=list(references.values()))
    np.testing.assert_allclose(with_references.scores, [table[group] for group in GROUPS])


def test_spread_of_what_has_no_words_is_nothing() -> None:
    assert spread(np.zeros((3, 3))) == 0
    assert spread(np.ones((1, 1))) == 0
    assert 0 < spread(np.array([[1, 0.5], [0, 1]])) < 1


def test_vocabulary_counts_words_whatever_the_grouping() -> None:
    words = len({word for text in CAPTIONS for word in text.split()})
    assert caplens.evaluate(CAPTIONS, metrics=["vocabulary"])["vocabulary"].score == pytest.approx(words)
    even, groups = CAPTIONS[:8], ["a", "a", "b", "b", "c", "c", "d", "d"]
    report = caplens.evaluate(even, groups=groups, metrics=["vocabulary"])
    known = len({word for text in even for word in text.split()})
    assert report["vocabulary"].score == pytest.approx(known)
    assert report.per_picture("mean")["vocabulary"].score == pytest.approx(known)


def test_novel_compares_words_with_a_file_or_a_list(tmp_path: Path) -> None:
    path = tmp_path / "training.json"
    path.write_text(json.dumps({"1": ["A cat.", "people cycling"]}))
    expected = [float(text not in ("a cat", "people cycling")) for text in CAPTIONS]
    for training in (path, ["A cat.", "people cycling"]):
        made = caplens.evaluate(CAPTIONS, metrics=["novel"], training=training)["novel"]
        assert made.scores.tolist() == expected
    with pytest.raises(MissingData, match="training=FILE"):
        caplens.evaluate(CAPTIONS, metrics=["novel"])


def test_one_caption_per_picture_gets_a_note() -> None:
    for metric in ("div-1", "distinct", "mbleu-4", "self-cider"):
        with pytest.warns(MetricNote, match="one caption"):
            caplens.evaluate(["a dog", "a cat"], metrics=[metric])
        with warnings.catch_warnings():
            warnings.simplefilter("error", MetricNote)
            caplens.evaluate(CAPTIONS, groups=GROUPS, metrics=[metric])


def test_more_words_are_more_diverse() -> None:
    same, other = ["a dog runs fast"] * 3, ["a dog runs fast", "the puppy sprints", "an animal in motion"]
    for metric, better in (("div-1", 1), ("div-2", 1), ("distinct", 1), ("mbleu-4", -1), ("self-cider", 1)):
        one, two = (
            caplens.evaluate([*texts, "x y", "z"], groups=["a", "a", "a", "b", "b"], metrics=[metric])[metric].scores[0]
            for texts in (same, other)
        )
        assert (two - one) * better > 0, metric
