"""What the judges ask, what they make of the answers, and what their signatures say."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.judge_server import JudgeServer, Reply, judge_server
from tests.vision.test_video import write_video

import caplens
from caplens.core.errors import InputError, MissingData
from caplens.metrics import expand_groups, load_metric
from caplens.metrics.judge.prompts import Prompt

pytest.importorskip("httpx")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as judge:
        yield judge


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    Image.new("RGB", (2000, 500), "red").save(path)
    return path


def asked(body: dict[str, Any]) -> tuple[str, Image.Image | None]:
    """The words and the picture of a request."""
    content = body["messages"][0]["content"]
    if isinstance(content, str):
        return content, None
    words, picture = content
    data = base64.b64decode(picture["image_url"]["url"].removeprefix("data:image/jpeg;base64,"))
    return words["text"], Image.open(io.BytesIO(data))


def test_clair_sends_caption_and_references_and_no_picture(server: JudgeServer, photo: Path) -> None:
    server.replies = [Reply('{"score": 85, "reason": "same dog"}')]
    report = caplens.evaluate(["a dog"], [["the dog", "dogs"]], [photo], metrics=["clair"], **server.options)
    assert report["clair"].score == pytest.approx(0.85)
    assert report["clair"].details == [{"reason": "same dog"}]
    words, picture = asked(server.bodies[0])
    assert "\na dog\n" in words
    assert "- the dog\n- dogs\n" in words
    assert picture is None
    assert "logprobs" not in server.bodies[0]
    prompt = Prompt.shipped("clair").label
    assert report["clair"].signature.startswith(
        f"clair|model:toy|temperature:0|samples:1|max_tokens:512|prompt:{prompt}|smoothing:no|picture:no|references:2|"
    )


def test_fleur_sends_the_picture_made_smaller_and_smooths(server: JudgeServer, photo: Path) -> None:
    tokens = [
        ('{"score": ', {'{"score": ': 1.0}),
        ("0", {"0": 0.9, "1": 0.1}),
        (".", {".": 1.0}),
        ("8", {"8": 0.5, "7": 0.3, "9": 0.2}),
        (', "reason": "red"}', {', "reason": "red"}': 1.0}),
    ]
    server.replies = [Reply("".join(token for token, _ in tokens), tokens=tokens)]
    report = caplens.evaluate(["a red wall"], images=[photo], metrics=["fleur"], **server.options)
    assert report["fleur"].score == pytest.approx(0.9 * 0.79 + 0.1)  # as tests/metrics/judge/test_answers.py works out
    assert "|smoothing:yes|picture:yes|" in report["fleur"].signature
    _, picture = asked(server.bodies[0])
    assert picture is not None
    assert picture.size == (1024, 256)
    assert (server.bodies[0]["logprobs"], server.bodies[0]["top_logprobs"]) == (True, 20)
    plain = caplens.evaluate(["a red wall"], images=[photo], metrics=["fleur"], **server.options, smoothing=False)
    assert plain["fleur"].score == pytest.approx(0.8)
    assert "|smoothing:no|" in plain["fleur"].signature


@pytest.mark.parametrize("name", ["fleur", "g-veval"])
def test_of_a_video_frames_are_sent_in_their_order(name: str, server: JudgeServer, tmp_path: Path) -> None:
    pytest.importorskip("av")
    server.replies = [Reply('{"score": 0.5, "accuracy": 80, "completeness": 40, "conciseness": 100, "relevance": 60}')]
    video = write_video(tmp_path / "film.mp4", 9)
    kept = {**server.options, "smoothing": False}
    made = caplens.evaluate(["a dog"], videos=[video], metrics=[name], frames="uniform-3", **kept)[name]
    words, *shown = server.bodies[0]["messages"][0]["content"]
    assert words["text"].startswith("The pictures are frames of one video")
    assert len(shown) == 3
    assert len({picture["image_url"]["url"] for picture in shown}) == 3
    assert "|media:video|frames:uniform-3" in made.signature
    with pytest.raises(InputError, match="every-K or uniform-N"):
        load_metric(name, frames="some")


def test_without_probabilities_the_score_stands_as_it_is_and_a_note_says_so(server: JudgeServer, photo: Path) -> None:
    server.replies = [Reply('{"score": 0.8}')]
    with pytest.warns(match="no probabilities for 1 of 1 scores"):
        report = caplens.evaluate(["a red wall"], images=[photo], metrics=["fleur"], **server.options)
    assert report["fleur"].score == pytest.approx(0.8)
    assert "|smoothing:no|" in report["fleur"].signature


@pytest.mark.parametrize(
    ("references", "pictures", "name"),
    [(True, False, "g-veval-references"), (False, True, "g-veval-picture"), (True, True, "g-veval-both")],
)
def test_g_veval_asks_by_what_is_given(
    server: JudgeServer, photo: Path, references: bool, pictures: bool, name: str
) -> None:
    given: dict[str, Any] = {
        "references": [["a wall"]] if references else None,
        "images": [photo] if pictures else None,
    }
    report = caplens.evaluate(["a red wall"], **given, metrics=["g-veval"], **server.options, smoothing=False)
    assert report["g-veval"].score == pytest.approx(0.5)
    assert f"|prompt:{Prompt.shipped(name).label}|" in report["g-veval"].signature
    words, picture = asked(server.bodies[0])
    assert ("- a wall" in words) is references
    assert (picture is not None) is pictures


FOUR = '{"reason": "accuracy: 7 of 8", "accuracy": 80, "completeness": 40, "conciseness": 100, "relevance": 60}'


@pytest.mark.parametrize("references", [True, False])
def test_g_veval_scores_four_criteria_of_a_video(server: JudgeServer, tmp_path: Path, references: bool) -> None:
    pytest.importorskip("av")
    server.replies = [Reply(FOUR)]
    given: dict[str, Any] = {"references": [["a red wall"]] if references else None, "metrics": ["g-veval"]}
    video = write_video(tmp_path / "film.mp4", 3)
    made = caplens.evaluate(["a wall"], videos=[video], **given, **server.options, smoothing=False)["g-veval"]
    assert made.score == pytest.approx(0.7)
    assert made.details is not None
    assert made.details[0]["reason"] == "accuracy: 7 of 8"
    assert made.details[0]["categories"] == pytest.approx(
        {"Accuracy": 0.8, "Completeness": 0.4, "Conciseness": 1.0, "Relevance": 0.6}
    )
    name = f"g-veval-criteria-{'both' if references else 'picture'}"
    assert f"|prompt:{Prompt.shipped(name).label}|" in made.signature
    words = server.bodies[0]["messages"][0]["content"][0]["text"]
    assert ("- a red wall" in words) is references


def test_g_veval_scores_one_number_or_four_as_asked(server: JudgeServer, tmp_path: Path) -> None:
    """Also without videos, where their captions are held against references alone."""
    server.answer = lambda body: Reply(FOUR if "completeness:" in asked(body)[0] else '{"score": 30}')
    given: dict[str, Any] = {"references": [["a wall"]], "metrics": ["g-veval"], "smoothing": False, **server.options}
    assert caplens.evaluate(["a wall"], **given)["g-veval"].score == pytest.approx(0.3)
    made = caplens.evaluate(["a wall"], **given, criteria=True)["g-veval"]
    assert made.score == pytest.approx(0.7)
    assert f"|prompt:{Prompt.shipped('g-veval-criteria-references').label}|" in made.signature


def test_an_answer_that_lacks_a_criterion_is_asked_for_again_and_then_named(server: JudgeServer) -> None:
    server.replies = [Reply('{"accuracy": 80, "completeness": 40, "conciseness": 100}')]
    given: dict[str, Any] = {"references": [["a wall"]], "metrics": ["g-veval"], "smoothing": False, **server.options}
    made = caplens.evaluate(["a wall"], **given, criteria=True)["g-veval"]
    assert np.isnan(made.scores[0])
    assert "for each of accuracy, completeness, conciseness, relevance" in made.failures[0]
    assert len(server.bodies) == 2


def test_every_criterion_is_smoothed(server: JudgeServer) -> None:
    tokens: list[tuple[str, dict[str, float]]] = []
    for name, number in (("accuracy", "80"), ("completeness", "40"), ("conciseness", "90"), ("relevance", "60")):
        lower = str(int(number) - 10)
        tokens += [(f'"{name}": ', {f'"{name}": ': 1.0}), (number, {number: 0.5, lower: 0.5}), (", ", {", ": 1.0})]
    server.replies = [Reply("".join(token for token, _ in tokens), tokens=tokens)]
    made = caplens.evaluate(["a"], [["b"]], metrics=["g-veval"], criteria=True, **server.options)["g-veval"]
    assert made.score == pytest.approx((75 + 35 + 85 + 55) / 400)
    assert "|smoothing:yes|" in made.signature


def test_g_veval_with_nothing_to_hold_a_caption_against_says_so(server: JudgeServer) -> None:
    with pytest.raises(MissingData, match="references, pictures or videos"):
        caplens.evaluate(["a"], metrics=["g-veval"], **server.options)


def test_a_prompt_of_your_own_on_a_scale_of_your_own(server: JudgeServer, tmp_path: Path) -> None:
    prompt = tmp_path / "kind.txt"
    prompt.write_text("Is it kind, 1 to 5? {caption}", encoding="utf-8")
    server.replies = [Reply("4")]
    options = {**server.options, "prompt": prompt, "low": 1, "high": 5}
    report = caplens.evaluate(["a dear {references} dog"], metrics=["judge"], **options)
    assert report["judge"].score == pytest.approx(0.75)
    assert asked(server.bodies[0])[0] == "Is it kind, 1 to 5? a dear {references} dog"
    assert "response_format" not in server.bodies[0]  # the prompt does not speak of JSON
    before = report["judge"].signature
    assert "|low:1|high:5|prompt:kind.txt@" in before
    prompt.write_text("Is it kind? 1 to 5: {caption}", encoding="utf-8")
    report = caplens.evaluate(["a dear {references} dog"], metrics=["judge"], **options)
    assert report["judge"].signature != before
    assert len(server.bodies) == 2


def test_the_places_of_the_authors_files_are_known(server: JudgeServer, tmp_path: Path) -> None:
    prompt = tmp_path / "authors.txt"
    prompt.write_text("Rate {{Caption}} by {{Reference}}. End with $score$.", encoding="utf-8")
    server.replies = [Reply("It says dog, they say dogs. $70$")]
    options = {**server.options, "prompt": prompt, "smoothing": False}
    report = caplens.evaluate(["a dog"], [["dogs"]], metrics=["g-veval"], **options)
    assert report["g-veval"].score == pytest.approx(0.7)
    assert asked(server.bodies[0])[0] == "Rate a dog by - dogs. End with $score$."


def test_prompts_that_cannot_work_are_refused(server: JudgeServer, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Is it good?", encoding="utf-8")
    with pytest.raises(InputError, match="no place for the caption"):
        caplens.evaluate(["a dog"], metrics=["judge"], **server.options, prompt=prompt)
    prompt.write_text("{caption} {references}", encoding="utf-8")
    with pytest.raises(MissingData, match="place for references"):
        caplens.evaluate(["a dog"], metrics=["judge"], **server.options, prompt=prompt)
    with pytest.raises(MissingData, match="prompt=FILE"):
        caplens.evaluate(["a dog"], metrics=["judge"], **server.options)
    assert server.bodies == []


def test_samples_are_averaged_and_shown(server: JudgeServer) -> None:
    server.replies = [Reply('{"score": 20, "reason": "first"}'), Reply('{"score": 60}'), Reply('{"score": 70}')]
    options = {**server.options, "samples": 3, "temperature": 0.7, "concurrency": 1}
    report = caplens.evaluate(["a dog"], [["dogs"]], metrics=["clair"], **options)
    assert report["clair"].score == pytest.approx(0.5)
    assert report["clair"].details is not None
    assert report["clair"].details[0]["samples"] == pytest.approx([0.2, 0.6, 0.7])
    assert [body["seed"] for body in server.bodies] == [0, 1, 2]
    with pytest.raises(InputError, match="all alike"):
        load_metric("clair", samples=2)


def test_an_empty_caption_is_worth_nothing_and_costs_nothing(server: JudgeServer) -> None:
    report = caplens.evaluate(["", " \n"], [["a"], ["b"]], metrics=["clair"], **server.options)
    assert report["clair"].scores.tolist() == [0.0, 0.0]
    assert server.bodies == []


def test_a_picture_that_cannot_be_read_costs_its_row(server: JudgeServer, photo: Path, tmp_path: Path) -> None:
    report = caplens.evaluate(
        ["a", "b", "c"],
        images=[photo, tmp_path / "none.png", None],
        metrics=["fleur"],
        **server.options,
        smoothing=False,
    )
    server.replies = [Reply('{"score": 0.5}')]
    assert set(report["fleur"].failures) >= {1, 2}
    assert "no such file" in report["fleur"].failures[1]
    assert "there is none" in report["fleur"].failures[2]
    assert np.isnan(report["fleur"].scores[1:]).all()


def test_judges_run_only_when_they_are_named() -> None:
    assert {"clair", "fleur", "g-veval", "judge"}.isdisjoint(expand_groups(["all"]))
    assert expand_groups(["clair"]) == ["clair"]


def test_tables_name_the_model() -> None:
    assert load_metric("clair", model="some-model").label == "clair by some-model"
