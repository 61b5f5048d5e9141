"""Which captions look English: real ones in several languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caplens.core.errors import CaplensWarning
from caplens.text.language import LOOKED_AT, detect_language, foreign_note, looks_english

ENGLISH = [
    "A dog", "dogs playing", "Two men in red shirts .", "THE DOG RUNS", "A Dog Runs Through Snow", "pup", "3 cats!",
    "Angela Merkel meets Emmanuel Macron in Berlin", "Lionel Messi celebrates a goal for Barcelona", "", "!!", "😀 😀",
]  # fmt: skip
OTHERS = [
    "Eine Katze sitzt auf einem Stuhl", "Ein Hund", "Ein Mann in einem Hut", "Die Frau hat einen Hund an der Leine",
    "Un gato está sentado en una silla", "Dos perros corren por la playa", "Un tren en la estación",
    "Un chat est assis sur une chaise", "Um cachorro corre na grama", "Кошка сидит на стуле", "椅子に猫が座っている",
]  # fmt: skip


@pytest.mark.parametrize("text", ENGLISH)
def test_english_captions_look_english(text: str) -> None:
    assert looks_english(text)


@pytest.mark.parametrize("text", OTHERS)
def test_captions_in_other_languages_do_not(text: str) -> None:
    assert not looks_english(text)


def test_a_set_gets_a_note_when_many_of_it_are_foreign() -> None:
    assert foreign_note([]) is None
    assert foreign_note(["a cat"] * 19 + ["ein hund läuft"]) is None
    assert "about 20 % of the captions" in (foreign_note(["a cat"] * 8 + ["ein hund läuft"] * 2) or "")
    assert "about 100 %" in (foreign_note(["ein hund läuft"] * 5 * LOOKED_AT) or "")
    assert "this caption does not look English" in (foreign_note(["ein hund läuft"]) or "")


def test_a_metric_that_knows_only_english_says_so() -> None:
    import caplens

    german = ["ein hund läuft", "eine katze schläft"]
    with pytest.warns(CaplensWarning, match="meteor: about 100 % of the captions do not look English"):
        made = caplens.evaluate(german, [[text] for text in german], metrics=["meteor", "rouge-l"])
    assert "English" in made["meteor"].notes[-1]
    assert not made["rouge-l"].notes


def test_words_without_spaces_between_them_are_no_words_to_the_tokenizer() -> None:
    import caplens

    chinese = ["一只猫在垫子上", "一只狗在沙滩上跑"]
    with pytest.warns(CaplensWarning, match=r"cider-d: .* 100 % .* script without spaces between words"):
        made = caplens.evaluate(chinese, [["一只猫坐在垫子上"], ["狗在沙滩上奔跑"]], metrics=["cider-d"])
    assert made["cider-d"].score == 0
    by_character = caplens.evaluate(
        chinese, [["一只猫坐在垫子上"], ["狗在沙滩上奔跑"]], metrics=["cider-d"], tokenizer=list
    )
    assert by_character["cider-d"].score > 1
    assert not by_character["cider-d"].notes
    segmented = [" ".join(text) for text in chinese]
    assert not caplens.evaluate(segmented, [[text] for text in segmented], metrics=["cider-d"])["cider-d"].notes


@pytest.mark.shared
def test_real_captions(shared: Path) -> None:
    lines = (shared / "data/flickr8k/Flickr8k.token.txt").read_text("utf-8").splitlines()
    flagged = [line for line in lines if not looks_english(line.split("\t")[1])]
    assert len(flagged) / len(lines) < 0.0005
    triplets = json.loads((shared / "data/ciderr/pracegover_triplets.json").read_text("utf-8"))
    texts = [text for kind in triplets.values() for entry in kind.values() for text in entry if isinstance(text, str)]
    assert sum(not looks_english(text) for text in texts) / len(texts) > 0.97


@pytest.mark.parametrize(
    ("text", "code"),
    [
        *zip(OTHERS, ["de", "de", "de", "de", "es", "es", "es", "fr", "pt", "ru", "ja"], strict=True),
        ("一只猫坐在椅子上", "zh"),
        ("의자에 고양이가 앉아 있다", "ko"),
        ("แมวนั่งบนเก้าอี้", "th"),
        ("un gatto è seduto su una sedia", "it"),
        ("een kat zit op een stoel", "nl"),
        ("A dog runs", "en"),
        ("!!", "und"),
        ("", "und"),
    ],
)
def test_languages_are_told_apart(text: str, code: str) -> None:
    assert detect_language([text]) == code


def test_most_texts_decide() -> None:
    assert detect_language(["a dog runs", "Ein Hund auf der Wiese", "Ein Mann mit einem Hut", ""]) == "de"


@pytest.mark.shared
def test_real_portuguese_captions_are_portuguese(shared: Path) -> None:
    content = json.loads((shared / "data" / "ciderr" / "pracegover_triplets.json").read_text("utf-8"))
    texts = [reference for reference, *_ in content["HCI"].values()]
    assert detect_language(texts) == "pt"
    assert sum(detect_language([text]) == "pt" for text in texts) >= 0.95 * len(texts)
