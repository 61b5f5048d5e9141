"""BLEU, ROUGE-L and the CIDEr family against the official scores and against textbook twins."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import naive

import caplens
from caplens import CaptionSet
from caplens.core.errors import CaplensWarning

METRICS = ["bleu", "rouge-l", "cider-d", "cider-plain", "cider-r"]


def assert_official(report: caplens.Report, official: dict[str, Any]) -> None:
    for n in range(4):
        result = report[f"bleu-{n + 1}"]
        np.testing.assert_allclose(result.scores, official["bleu"]["per_sample"][n], rtol=0, atol=1e-12)
        assert result.score == pytest.approx(official["bleu"]["corpus"][n], abs=1e-12)
    for name in ("rouge-l", "cider-d", "cider-plain", "cider-r"):
        np.testing.assert_allclose(report[name].scores, official[name]["per_sample"], rtol=0, atol=1e-12)
        assert report[name].score == pytest.approx(official[name]["corpus"], abs=1e-12)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["coco_1k", "coco_5k"])
def test_official_tokens_give_the_official_scores(shared: Path, name: str) -> None:
    tokens = json.loads((shared / "golden" / f"{name}.tokens.json").read_text())
    official = json.loads((shared / "golden" / f"{name}.scores.json").read_text())
    captions = CaptionSet.of([texts[0] for texts in tokens["res"]], tokens["gts"], ids=tokens["ids"])
    report = caplens.evaluate(captions, metrics=METRICS, tokenizer="whitespace")
    assert_official(report, official)
    # Not only close: the same bits.
    assert report["cider-d"].scores.tolist() == official["cider-d"]["per_sample"]
    assert report["rouge-l"].scores.tolist() == official["rouge-l"]["per_sample"]


@pytest.mark.shared
@pytest.mark.parametrize("name", ["coco_1k", "coco_5k"])
def test_raw_captions_give_the_official_scores(shared: Path, name: str) -> None:
    rows = json.loads((shared / "golden" / f"{name}.json").read_text())
    official = json.loads((shared / "golden" / f"{name}.scores.json").read_text())
    captions = CaptionSet.of(
        [row["cand"] for row in rows], [row["refs"] for row in rows], ids=[row["id"] for row in rows]
    )
    assert_official(caplens.evaluate(captions, metrics=METRICS), official)


@pytest.mark.shared
def test_flickr8k_expert_rows_give_the_official_scores(shared: Path) -> None:
    images = json.loads((shared / "data" / "flickr8k" / "flickr8k.json").read_text())
    candidates, references = [], []
    for image in images.values():
        for judgment in image["human_judgement"]:
            if not np.isnan(judgment["rating"]):
                candidates.append(judgment["caption"])
                references.append(image["ground_truth"])
    official = np.load(shared / "golden" / "flickr8k_expert.scores.npz")
    report = caplens.evaluate(candidates, references, metrics=["bleu", "rouge-l", "cider-d"])
    names = {"bleu1": "bleu-1", "bleu2": "bleu-2", "bleu3": "bleu-3", "bleu4": "bleu-4", "rouge": "rouge-l"}
    for key, metric in {**names, "cider": "cider-d"}.items():
        np.testing.assert_allclose(report[metric].scores, official[key], rtol=0, atol=1e-9)


@pytest.mark.shared
def test_the_thirty_values_of_the_cider_r_authors(shared: Path) -> None:
    folder = shared / "data" / "ciderr"
    start = "toy_candidate_classification"
    annotations = json.loads((folder / f"{start}_references.json").read_text())["annotations"]
    references: dict[str, list[str]] = {}
    for annotation in annotations:
        references.setdefault(str(annotation["image_id"]), []).append(annotation["caption"])
    expected = {row["key"]: row for row in csv.DictReader((folder / f"{start}_results.csv").open())}
    for column, kind in {"CC": "correct", "IC": "incorrect"}.items():
        rows = json.loads((folder / f"{start}_{kind}_candidates.json").read_text())
        captions = {str(row["image_id"]): row["caption"] for row in rows}
        report = caplens.evaluate(captions, references, metrics=["cider-d", "cider-r", "rouge-l", "bleu-4"])
        for metric, name in {"cider-d": "CIDEr-D", "cider-r": "CIDEr-R", "rouge-l": "ROUGE", "bleu-4": "BLEU4"}.items():
            official = [float(expected[key][f"{name} {column}"]) for key in captions]
            np.testing.assert_allclose(100 * report[metric].scores, official, rtol=0, atol=1e-9)


words = st.sampled_from(["a", "b", "c", "dog", "t-shirt", "'s", "1 1/2", "é", "_", "&", "t", "日本"])
texts = st.one_of(
    st.lists(words, max_size=9).map(" ".join),
    st.lists(st.sampled_from("ab"), min_size=60, max_size=150).map(" ".join),
    st.text(max_size=12).filter(lambda text: "\n" not in text),
)
rows = st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=4)), min_size=2, max_size=5)


@settings(max_examples=80, deadline=None)
@given(rows, st.floats(0, 1))
@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
def test_kernels_agree_with_the_textbook(rows: list[tuple[str, list[str]]], k_r: float) -> None:
    candidates, references = [row[0] for row in rows], [row[1] for row in rows]
    report = caplens.evaluate(candidates, references, metrics=METRICS, tokenizer="whitespace", k_r=k_r)
    for n in range(1, 5):
        each, whole = naive.bleu(candidates, references, n)
        np.testing.assert_allclose(report[f"bleu-{n}"].scores, each, rtol=1e-12, atol=1e-15)
        assert report[f"bleu-{n}"].score == pytest.approx(whole, rel=1e-12)
    np.testing.assert_allclose(report["rouge-l"].scores, naive.rouge_l(candidates, references), atol=1e-12)
    for kind in ("cider-d", "cider-plain", "cider-r"):
        expected = naive.cider(candidates, references, kind, k_r=k_r)
        np.testing.assert_allclose(report[kind].scores, expected, atol=1e-12)
    paper = caplens.evaluate(
        candidates, references, metrics=["cider-r"], tokenizer="whitespace", k_r=k_r, formula="paper"
    )
    np.testing.assert_allclose(
        paper["cider-r"].scores, naive.cider(candidates, references, "paper", k_r=k_r), atol=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(rows, rows)
@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
def test_idf_from_elsewhere_agrees_with_the_textbook(
    rows: list[tuple[str, list[str]]], elsewhere: list[tuple[str, list[str]]]
) -> None:
    candidates, references = [row[0] for row in rows], [row[1] for row in rows]
    corpus = [[row[0], *row[1]] for row in elsewhere]
    for kind in ("cider-d", "cider-plain", "cider-r"):
        report = caplens.evaluate(candidates, references, metrics=[kind], tokenizer="whitespace", idf=corpus)
        expected = naive.cider(candidates, references, kind, corpus)
        np.testing.assert_allclose(report[kind].scores, expected, atol=1e-12)


def test_the_common_subsequence_of_thousands_of_words() -> None:
    draw = random.Random(4)
    words = [f"w{number}" for number in range(2000)]
    # A few words stand in hundreds of places, most in one or two.
    long = [draw.choice(words[:6] if draw.random() < 0.5 else words) for _ in range(4200)]
    short = [[draw.choice(words[:6] + long) for _ in range(40)] for _ in range(2)]
    captions, references = [" ".join(long)], [[" ".join(words) for words in short]]
    report = caplens.evaluate(captions, references, metrics=["rouge-l"], tokenizer="whitespace")
    np.testing.assert_allclose(report["rouge-l"].scores, naive.rouge_l(captions, references), atol=1e-12)


def test_one_image_without_a_table_says_why_everything_is_zero() -> None:
    for name in ("cider-d", "cider-plain", "cider-r"):
        with pytest.warns(CaplensWarning, match=r"there is one image.*idf="):
            report = caplens.evaluate(["a cat"], [["a cat"]], metrics=[name])
        assert report[name].score == 0
    with pytest.warns(CaplensWarning, match="all 2 images have the same references"):
        caplens.evaluate(["a cat", "a dog"], [["a cat"]] * 2, metrics=["cider-d"])
    scored = caplens.evaluate(["a cat"], [["a cat"]], metrics=["cider-d"], idf=[["a dog"], ["the sea"]])
    assert scored["cider-d"].score > 0


@pytest.mark.parametrize("nothing", ["", "...", "&"])
def test_a_caption_without_words_gets_zero_from_cider_r_and_a_note(nothing: str) -> None:
    with pytest.warns(CaplensWarning, match="1 caption has no words and score 0"):
        report = caplens.evaluate([nothing, "a dog"], [["a cat"], ["a dog"]], metrics=["cider-r"])
    assert report["cider-r"].scores[0] == 0
    assert report["cider-r"].scores[1] > 0


def test_options_are_checked_and_named_in_the_signature() -> None:
    captions = CaptionSet.of(["a cat", "a dog"], [["a cat"], ["the dog"]])
    signatures = {
        caplens.evaluate(captions, metrics=["cider-r"], **options)["cider-r"].signature
        for options in ({}, {"k_r": 0.5}, {"formula": "paper"}, {"tokenizer": str.split}, {"idf": [["a"], ["b"]]})
    }
    assert len(signatures) == 5
    assert any("tokenizer:builtins.str.split" in signature for signature in signatures)
    refused: dict[str, dict[str, Any]] = {
        "0 to 1": {"k_r": 2},
        "paper": {"formula": "new"},
        "whitespace": {"tokenizer": "bpe"},
    }
    for message, wrong in refused.items():
        with pytest.raises(caplens.core.errors.InputError, match=message):
            caplens.evaluate(captions, metrics=["cider-r"], **wrong)
    with pytest.raises(caplens.core.errors.CaplensError, match="a tokenizer must return a list of strings"):
        caplens.evaluate(captions, metrics=["bleu-1"], tokenizer=str.upper)


def test_length_needs_nothing_but_captions() -> None:
    report = caplens.evaluate(["A dog's hat.", ""], metrics=["length"])
    assert report["length"].scores.tolist() == [4, 0]
    assert report["length"].score == 2
