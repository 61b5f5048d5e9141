"""METEOR against its jar's numbers, with small data of our own, and without any."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import shutil
import subprocess
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caplens import evaluate
from caplens.core.errors import CaplensWarning, InputError, MissingData
from caplens.core.progress import silent
from caplens.metrics.base import Result
from caplens.metrics.meteor import STEMMERS, Meteor, prepare
from caplens.storage import weights
from caplens.text import meteor_data
from caplens.text.meteor_data import FUNCTION_WORDS, JAR, TABLE


@pytest.fixture(scope="session")
def published() -> None:
    """METEOR's own data, which the numbers of its jar need."""
    if not meteor_data.built().complete and weights.find("meteor") is None:
        pytest.skip("METEOR's data is not here: caplens weights fetch meteor")


def meteor(candidates: list[str], references: list[list[str]], **options: Any) -> Result:
    return evaluate(candidates, references, metrics=[Meteor(**options)])["meteor"]


@pytest.fixture
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as METEOR's archive has it, with a handful of words."""
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))
    folder = tmp_path / "meteor"
    (folder / "data").mkdir(parents=True)
    with zipfile.ZipFile(folder / JAR, "w") as jar:
        jar.writestr("synonym/english.synsets", "puppy\n00000001\npup\n00000001 00000002\n")
        jar.writestr("synonym/english.exceptions", "pup\npuppen\n")
    with gzip.open(folder / "data" / TABLE, "wt") as file:
        file.write("0.5\nin front of\nbefore\n0.25\nold\naged\n")
    return folder


@pytest.mark.shared
@pytest.mark.parametrize("workload", ["coco_1k", "coco_5k"])
@pytest.mark.usefixtures("published")
def test_every_caption_of_coco_scores_as_in_the_jar(shared: Path, workload: str) -> None:
    rows = json.loads((shared / "golden" / f"{workload}.json").read_text())
    golden = json.loads((shared / "golden" / f"{workload}.scores.json").read_text())["meteor"]
    result = meteor([row["cand"] for row in rows], [row["refs"] for row in rows])
    np.testing.assert_allclose(result.scores, golden["per_sample"], rtol=0, atol=1e-12)
    assert result.score == pytest.approx(golden["corpus"], abs=1e-12)
    assert "modules:exact,stem,synonym,paraphrase|" in result.signature


@pytest.mark.shared
@pytest.mark.usefixtures("published")
def test_every_row_of_flickr8k_expert_scores_as_in_the_jar(shared: Path) -> None:
    images = json.loads((shared / "data/flickr8k/flickr8k.json").read_text())
    golden = np.load(shared / "golden/flickr8k_expert.scores.npz")["meteor"]
    pairs = [(row["caption"], image["ground_truth"]) for image in images.values() for row in image["human_judgement"]]
    pairs = [(caption, references) for caption, references in pairs if caption not in references]
    result = meteor([caption for caption, _ in pairs], [references for _, references in pairs])
    np.testing.assert_allclose(result.scores, golden, rtol=0, atol=1e-12)


package = find_spec("pycocoevalcap")
JAR_PATH = (
    Path(package.submodule_search_locations[0], "meteor", JAR)
    if package and package.submodule_search_locations
    else None
)


@pytest.mark.oracle
@pytest.mark.skipif(JAR_PATH is None or shutil.which("java") is None, reason="java or pycocoevalcap is not here")
def test_a_dictionary_of_words_is_stemmed_as_in_the_jar() -> None:
    from caplens.native._kernels import english_stem

    assert JAR_PATH is not None
    with zipfile.ZipFile(JAR_PATH) as jar:
        words = jar.read("synonym/english.synsets").decode().splitlines()[::2]
    endings = ["", "s", "'s", "ed", "ing", "ly", "ness", "ful", "ization", "iveness", "ied"]
    words = [word + endings[place % len(endings)] for place, word in enumerate(words)]
    stems = subprocess.run(
        ["java", "-cp", str(JAR_PATH), "Stemmer", "english"],
        input="\n".join(words) + "\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert [english_stem(word) for word in words] == stems


INFLECTED = [
    ("dois homens sentados no banco do parque", "um homem senta em um banco no parque"),
    ("uma reprodução da produção das soluções", "reproduções e produções de uma solução"),
    ("la donna cammina sulla spiaggia con i cani", "una donna camminava sulle spiagge con un cane"),
    ("twee honden lopen over het strand", "een hond loopt op stranden"),
    ("to hunde løber på stranden", "en hund løb over strandene"),
    ("två hundar springer på stranden", "en hund sprang på en strand"),
    ("kaksi koiraa juoksee rannalla", "koira juoksi rannoilla"),
    ("két kutya fut a parton", "a kutyák futnak a partokon"),
    ("doi câini aleargă pe plajă", "un câine alerga pe plaje"),
    ("iki köpek sahilde koşuyor", "köpekler sahillerde koştu"),
    ("a dog", "a cat"),
]
"""Captions and references in ten languages, whose words differ by their endings."""


@pytest.mark.oracle
@pytest.mark.skipif(JAR_PATH is None or shutil.which("java") is None, reason="java or pycocoevalcap is not here")
@pytest.mark.parametrize("language", [*STEMMERS, "und"])
def test_other_languages_score_as_in_the_jar(language: str, tmp_path: Path) -> None:
    pytest.importorskip("snowballstemmer")
    for name, column in (("captions", 0), ("references", 1)):
        lines = "\n".join(pair[column] for pair in INFLECTED)
        (tmp_path / name).write_text(f"{lines}\n", encoding="utf-8")
    code = {"sv": "se", "und": "other"}.get(language, language)
    jar = ["java", "-Dfile.encoding=UTF-8", "-jar", str(JAR_PATH), tmp_path / "captions", tmp_path / "references"]
    printed = subprocess.run([*jar, "-l", code], capture_output=True, text=True, check=True, encoding="utf-8").stdout
    theirs = [float(line.split("\t")[1]) for line in printed.splitlines() if line.startswith("Segment")]
    made = meteor([text for text, _ in INFLECTED], [[other] for _, other in INFLECTED], language=language)
    assert made.scores.tolist() == pytest.approx(theirs, abs=1e-12)
    assert made.score == pytest.approx(float(printed.split("Final score:")[1]), abs=1e-12)
    assert f"|language:{'other' if language == 'und' else language}|" in made.signature
    assert f"|modules:exact{'' if language == 'und' else ',stem'}|" in made.signature


@pytest.mark.shared
@pytest.mark.oracle
@pytest.mark.skipif(JAR_PATH is None or shutil.which("java") is None, reason="java or pycocoevalcap is not here")
def test_real_portuguese_words_are_stemmed_as_in_the_jar(shared: Path) -> None:
    pytest.importorskip("snowballstemmer")
    content = json.loads((shared / "data" / "ciderr" / "pracegover_triplets.json").read_text("utf-8"))
    texts = [text.lower() for triplet in content["HCI"].values() for text in triplet[:3]]
    words = sorted({word for text in texts for word in re.findall(r"[^\W\d_]+", text)})
    stems = subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-cp", str(JAR_PATH), "Stemmer", "portuguese"],
        input="\n".join(words) + "\n",
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    ).stdout.splitlines()
    assert list(Meteor(language="pt").stems(words).values()) == stems


def test_a_language_that_needs_paraphrases_says_so() -> None:
    with pytest.raises(MissingData, match="METEOR in de needs a table of paraphrases"):
        Meteor(language="de")
    with pytest.raises(InputError, match="a code of two or three letters"):
        Meteor(language="german")
    report = evaluate(["ein Hund"], [["ein Hund"]], metrics=["meteor", "bleu-1"], language="de")
    assert "paraphrases" in report.errors["meteor"]
    assert report["bleu-1"].score == pytest.approx(1)


def test_a_caption_that_is_a_reference_scores_one(own_data: Path) -> None:
    result = meteor(["a dog runs", "a dog"], [["a dog runs"], ["cats", "a dog"]], data=own_data)
    assert result.scores.tolist() == [1.0, 1.0]
    assert result.score == 1.0


def test_the_formula_by_hand(own_data: Path) -> None:
    # caption: 3 content words and a function word; one stem match (0.6), one exact content word, one function word
    result = meteor(["the dogs chased cats"], [["the dog sleeps with cats"]], data=own_data)
    matched = 0.75 * (1 + 0.6) + 0.25
    precision, recall = matched / (0.75 * 3 + 0.25), matched / (0.75 * 3 + 0.25 * 2)
    chunks, words = 2, 3  # "the dogs", "cats"
    mean = 1 / (0.15 / precision + 0.85 / recall)
    assert result.score == pytest.approx(mean * (1 - 0.6 * (chunks / words) ** 0.2), abs=1e-12)


def test_the_corpus_score_comes_from_sums(own_data: Path) -> None:
    whole = meteor(["a dog runs", "cats"], [["a dog runs"], ["two big cats asleep"]], data=own_data)
    assert whole.score != pytest.approx(whole.scores.mean(), abs=1e-3)
    assert whole.score == pytest.approx(float(Meteor().corpus(whole.statistics.sum(axis=0), 2)))


def test_details_say_what_matched_what(own_data: Path) -> None:
    result = meteor(
        ["a puppy sits before an aged barn"], [["a pup sits in front of an old house", "unrelated"]], data=own_data
    )
    assert result.details is not None
    (detail,) = result.details
    assert [(word["text"], word.get("status"), word.get("match")) for word in detail["words"]] == [
        ("a", "exact", None),
        ("puppy", "synonym", "pup"),
        ("sits", "exact", None),
        ("before", "paraphrase", "in front of"),
        ("an", "exact", None),
        ("aged", "paraphrase", "old"),
        ("barn", "wrong", None),
    ]
    assert detail["missing"] == [{"text": "house"}]
    assert detail["note"] == "closest reference: a pup sits in front of an old house"
    assert result.details[:1] == [detail]
    json.dumps(list(pickle.loads(pickle.dumps(result.details))))


def test_details_of_words_with_strange_blanks(own_data: Path) -> None:
    strange = "a dog\x1cx y\x85z runs"
    result = meteor([strange], [[strange]], data=own_data, tokenizer="whitespace")
    assert {word["status"] for word in result.explained(0)["words"]} == {"exact"}


def test_data_that_is_not_meteors_own_shows_in_the_signature(own_data: Path) -> None:
    assert "|data:" in meteor(["a dog"], [["a cat"]], data=own_data).signature


def test_the_environment_names_the_data(own_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_METEOR_DATA", str(own_data))
    assert meteor(["pup"], [["puppy"]]).score > 0


@pytest.mark.parametrize(("absent", "modules"), [(TABLE, "exact,stem,synonym"), (JAR, "exact,stem,paraphrase")])
def test_with_half_of_the_data_the_rest_runs(own_data: Path, absent: str, modules: str) -> None:
    next(own_data.rglob(absent)).unlink()
    with pytest.warns(CaplensWarning, match="caplens weights fetch meteor"):
        result = meteor(["pup old"], [["puppy aged"]], data=own_data)
    assert f"|modules:{modules}|" in result.signature


def test_without_any_data_words_and_stems_still_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path))
    monkeypatch.setattr(weights, "find", lambda name: None)
    with pytest.warns(CaplensWarning, match="without its synonym and paraphrase module"):
        result = meteor(["dogs running", "pup"], [["the dog ran", "a dog runs"], ["puppy"]])
    assert result.scores[0] > 0
    assert result.scores[1] == 0
    assert "|modules:exact,stem|" in result.signature


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (JAR, b"not a zip", "not METEOR's archive"),
        (TABLE, b"not a gzip", "not a METEOR paraphrase table"),
        (TABLE, gzip.compress(b"0.5\nold\n"), "cut short"),
        (TABLE, gzip.compress(b"0.5\nold\n\n"), "line 3 of the paraphrase table is empty"),
        (TABLE, gzip.compress(b"0.5\nold\naged\n" * 9)[:-9], "not a METEOR paraphrase table"),
    ],
)
def test_bad_data_is_named(own_data: Path, name: str, content: bytes, problem: str) -> None:
    next(own_data.rglob(name)).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}.*{problem}"):
        meteor(["a"], [["a"]], data=own_data)
    assert not list((own_data.parent / "cache").rglob("*.part"))


def test_a_path_that_is_no_folder_with_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a folder"):
        meteor(["a"], [["a"]], data=tmp_path / "nowhere")
    with pytest.raises(InputError, match=f"neither {JAR} nor {TABLE}"):
        meteor(["a"], [["a"]], data=tmp_path)


def test_many_may_build_the_index_at_once(own_data: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: meteor_data.build(own_data, silent, own=True), range(16)))
    assert len(made) == 1
    assert meteor(["old pup"], [["aged puppy"]], data=own_data).score > 0


@pytest.mark.parametrize("word", ["dog", "a"])
def test_a_thousand_words_are_scored(own_data: Path, word: str) -> None:
    mixed = " ".join(["a dog runs before an old pup"] * 140)
    result = meteor([f"{word} " * 1000, mixed], [[f"{word} " * 999, mixed + " asleep"]] * 2, data=own_data)
    assert (result.scores > 0.4).all()


def test_beyond_the_search_forced_alignments_are_the_same(own_data: Path) -> None:
    words = [f"w{number}" for number in range(1002)]
    rotated = [*words[300:], *words[:300]]
    with pytest.warns(CaplensWarning, match="1 captions were aligned greedily"):
        result = meteor([" ".join(words)], [[" ".join(rotated)]], data=own_data)
    assert result.statistics[0, 4:].tolist() == [1002, 2]
    searched = meteor([" ".join(words[:400])], [[" ".join(rotated[602:])]], data=own_data)
    assert searched.notes == ()


def test_beyond_the_search_stems_match_where_words_do_not(own_data: Path) -> None:
    caption, reference = ["dogs", "run", *["cat"] * 1200], ["dog", *["cat"] * 1200, "running", "runs", "bird"]
    with pytest.warns(CaplensWarning, match="aligned greedily"):
        result = meteor([" ".join(caption)], [[" ".join(reference)]], data=own_data)
    assert result.statistics[0, 4:].tolist() == [1202, 3]
    statuses = [word.get("status") for word in result.explained(0)["words"]]
    assert statuses == ["stem", "stem", *["exact"] * 1200]
    assert result.explained(0)["missing"] == [{"text": "runs"}, {"text": "bird"}]


def test_a_text_equal_to_its_reference_scores_one_however_long(own_data: Path) -> None:
    with pytest.warns(CaplensWarning, match="aligned greedily"):
        assert meteor(["a dog " * 5000], [["a dog " * 5000]], data=own_data).scores.tolist() == [1.0]


def test_three_bars_make_two_references_of_one_and_vanish_from_a_caption(own_data: Path) -> None:
    result = meteor(["a ||| dog"], [["a cat ||| a dog", "x"]], data=own_data, tokenizer="whitespace")
    assert result.score == 1
    assert result.details is not None
    assert result.details[0]["note"] == "closest reference: a dog"


def test_other_tokenizers_are_named_in_the_signature(own_data: Path) -> None:
    plain = meteor(["A dog's day."], [["a dog day"]], data=own_data, tokenizer="whitespace")
    assert "|tokenizer:whitespace|" in plain.signature
    called = meteor(["A dog's day."], [["a dog day"]], data=own_data, tokenizer=str.split)
    assert "|tokenizer:builtins.str.split|" in called.signature
    assert called.score == plain.score


def test_upper_case_is_lowered_after_abbreviations_are_told_apart() -> None:
    assert [line.split() for line in prepare(["Mr. Ärger", "mr. Ärger"])] == [["mr.", "ärger"], ["mr", ".", "ärger"]]


def test_there_are_93_function_words() -> None:
    assert len(set(FUNCTION_WORDS)) == len(FUNCTION_WORDS) == 93


def test_no_warning_when_all_modules_run(own_data: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meteor(["a dog"], [["a cat"]], data=own_data)
