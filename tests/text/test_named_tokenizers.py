"""Tokenizers by name: the words are sacrebleu's, no score is a silent zero, and signatures say which it was."""

from __future__ import annotations

import pickle
import warnings

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


@pytest.mark.parametrize("name", sorted(NAMES.keys() - {"ja-mecab", "ko-mecab"}))
def test_a_named_tokenizer_is_kept_as_its_name(name: str) -> None:
    metric = load_metric("bleu-1", tokenizer=name)
    assert metric.identity().lasting
    assert pickle.loads(pickle.dumps(metric)).identity() == metric.identity()
    assert metric.identity() != load_metric("bleu-1").identity()


def test_a_name_that_is_none_is_refused_with_those_there_are() -> None:
    assert set(NAMES) >= SEGMENTING
    with pytest.raises(InputError, match="13a, intl, char, zh, ja-mecab, ko-mecab"):
        load_metric("bleu-1", tokenizer="klingon")
