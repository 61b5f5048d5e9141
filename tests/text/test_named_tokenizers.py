"""Tokenizers by name: the words are sacrebleu's, no score is a silent zero, and signatures say which it was."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import caplens
from caplens.core.errors import CaplensWarning, InputError
from caplens.metrics import load_metric
from caplens.text.named_tokenizers import NAMES, SEGMENTING, NamedTokenizer

pytest.importorskip("sacrebleu")

CHINESE = "一只黑色的狗在草地上跑"
NEARLY = "一只白色的狗在草地上跑"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("13a", "Um cão preto, corre!", ["um", "cão", "preto", ",", "corre", "!"]),
        ("intl", "¿Qué perro?", ["¿", "qué", "perro", "?"]),
        ("char", "Ein Hund", list("einhund")),
        ("zh", "两只dog跑", ["两", "只", "dog", "跑"]),
    ],
)
def test_words_of_a_text(name: str, text: str, words: list[str]) -> None:
    assert NamedTokenizer(name)(text) == words


@pytest.mark.parametrize(
    ("name", "module", "text", "words"),
    [
        ("ja-mecab", "MeCab", "黒い犬が走る", ["黒い", "犬", "が", "走る"]),
        ("ko-mecab", "mecab_ko", "검은 개가 달린다", ["검", "은", "개", "가", "달린다"]),
        ("fugashi", "fugashi", "黒い犬が走る", ["黒い", "犬", "が", "走る"]),
        ("jieba", "jieba", "一只黑色的狗在草地上跑", ["一只", "黑色", "的", "狗", "在", "草地", "上", "跑"]),
    ],
)
def test_words_that_a_dictionary_finds(name: str, module: str, text: str, words: list[str]) -> None:
    pytest.importorskip(module)
    assert NamedTokenizer(name)(text) == words


@pytest.mark.parametrize("metric", ["bleu-1", "rouge-l", "cider-r"])
def test_a_script_without_spaces_gets_a_score_with_a_tokenizer_and_a_note_without(metric: str) -> None:
    given = ([CHINESE, "猫在垫子上睡觉了"], [[NEARLY], ["狗在水里游泳呢"]])
    with pytest.warns(CaplensWarning, match=r"tokenizer=zh, ja-mecab, ko-mecab"):
        silent = caplens.evaluate(*given, metrics=[metric])[metric]
    with warnings.catch_warnings():
        warnings.simplefilter("error", CaplensWarning)
        heard = caplens.evaluate(*given, metrics=[metric], tokenizer="zh")[metric]
    assert silent.scores[0] < 1e-6 < 0.3 < heard.scores[0]
    assert "tokenizer:zh@sacrebleu-" in heard.signature
    with pytest.warns(CaplensWarning, match="without spaces"):
        caplens.evaluate(*given, metrics=[metric], tokenizer="13a")


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"ja-mecab", "ko-mecab", "jieba", "fugashi"}))
def test_a_named_tokenizer_is_kept_as_its_name(name: str) -> None:
    metric = load_metric("bleu-1", tokenizer=name)
    assert metric.identity().lasting
    assert pickle.loads(pickle.dumps(metric)).identity() == metric.identity()
    assert metric.identity() != load_metric("bleu-1").identity()


def test_a_name_that_is_none_is_refused_with_those_there_are() -> None:
    assert set(NAMES) >= SEGMENTING
    with pytest.raises(InputError, match="13a, intl, char, zh, ja-mecab, ko-mecab, jieba, fugashi"):
        load_metric("bleu-1", tokenizer="klingon")


@pytest.mark.parametrize(
    ("language", "name"), [("pt", "ptb"), ("zh", "zh"), ("ja", "ja-mecab"), ("ko", "ko-mecab"), ("th", "char")]
)
def test_a_language_stands_for_its_tokenizer(language: str, name: str) -> None:
    by_language, by_name = (load_metric("bleu-1", tokenizer=each) for each in (language, name))
    assert vars(by_language) == vars(by_name)


def test_the_signature_names_the_tokenizer_and_not_the_language() -> None:
    made = caplens.evaluate(["um cão"], [["o cão"]], metrics=["bleu-1"], tokenizer="pt")["bleu-1"]
    assert "|tokenizer:ptb|" in made.signature


def test_jieba_leaves_no_file_that_others_could_change(tmp_path: Path) -> None:
    pytest.importorskip("jieba")
    cut = "from caplens.text.named_tokenizers import NamedTokenizer; print(len(NamedTokenizer('jieba')('一只狗')))"
    done = subprocess.run(
        [sys.executable, "-c", cut], env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "2", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_language_chooses_the_tokenizer_unless_one_is_named() -> None:
    given = ([CHINESE], [[NEARLY]])
    with pytest.warns(CaplensWarning, match="look like zh: words are found by the tokenizer zh@sacrebleu-"):
        found = caplens.evaluate(*given, metrics=["bleu-1"], language="auto")["bleu-1"]
    assert "tokenizer:zh@sacrebleu-" in found.signature
    assert found.score == caplens.evaluate(*given, metrics=["bleu-1"], language="zh")["bleu-1"].score
    named = caplens.evaluate(*given, metrics=["bleu-1"], language="zh", tokenizer="char")["bleu-1"]
    assert "tokenizer:char@" in named.signature
    with pytest.raises(InputError, match="a code of two or three letters"):
        caplens.evaluate(*given, metrics=["bleu-1"], language="chinese")


def test_in_english_and_with_spaces_the_language_changes_nothing() -> None:
    given = (["a dog runs", "a cat"], [["the dog runs"], ["cats"]])
    plain = caplens.evaluate(*given, metrics=["bleu-1"])
    for language in ("auto", "en", "pt"):
        made = caplens.evaluate(*given, metrics=["bleu-1"], language=language)["bleu-1"]
        assert (made.score, made.signature) == (plain["bleu-1"].score, plain["bleu-1"].signature)


def test_compared_systems_share_a_language() -> None:
    with pytest.warns(CaplensWarning, match="look like zh"):
        compared = caplens.compare(
            {"one": [CHINESE, NEARLY], "other": [NEARLY, "a dog"]},
            references=[[NEARLY], [NEARLY]],
            metrics=["bleu-1"],
            language="auto",
        )
    assert "tokenizer:zh@" in compared.metrics["bleu-1"].signature
