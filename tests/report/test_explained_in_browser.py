"""The page of `caplens explain` in a real browser: what belongs together lights up together, and markup stays text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from caplens.core.details import Details
from caplens.evaluation.explain import Explanation, View

pytestmark = pytest.mark.browser

CAPTION = "A puppy, with a hat <b>!"
REFERENCES = ["A small dog in a cap.", "a cat & <i>dog</i>"]
BY_PICTURE: Details = {
    "precision": 0.5,
    "recall": 12.5,
    "overall": None,
    "words": [
        {"text": "a"},
        {"text": "puppy", "status": "right", "score": 0.31, "match": "dog", "regions": [0, 1]},
        {"text": "with"},
        {"text": "a"},
        {"text": "hat", "status": "wrong", "score": 0.02},
    ],
    "missing": [{"text": "snow", "score": 0.04, "regions": [2]}],
    "regions": [
        {"box": [0.5, 0.2, 0.9, 0.9], "status": "mentioned", "label": "dog", "score": 0.4},
        {"box": [0.6, 0.3, 0.7, 0.4], "status": "mentioned", "score": 0.2},
        {"box": [0.0, 0.7, 0.4, 1.0], "status": "missing", "label": "snow", "score": 0.04},
        {"box": [0.0, 0.0, 0.2, 0.2], "status": "partly", "label": "cap", "note": "doubted", "score": 0.03},
        {"box": [0.3, 0.0, 0.4, 0.05], "status": "missing", "score": 0.01},
    ],
}
BY_REFERENCES: Details = {
    "words": [{"text": "A"}, {"text": "puppy", "status": "partly", "match": "dog", "note": "more exact"}],
    "tuples": [{"text": ["puppy"], "status": "right", "kind": "object"}],
    "categories": {"Object": 0.5, "Size": None},
}


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The page of one caption with a picture and references; afterwards the console must be empty."""
    Image.new("RGB", (300, 200), "grey").save(tmp_path / "photo.png")
    views = (View("picture", "By picture", BY_PICTURE), View("references", "By references", BY_REFERENCES))
    Explanation(CAPTION, REFERENCES, tmp_path / "photo.png", views).to_html(tmp_path / "page.html")
    browser.get((tmp_path / "page.html").as_uri())
    yield browser
    assert browser.get_log("browser") == []


def texts(page: Any, selector: str) -> list[str]:
    return [node.text for node in page.find_elements("css selector", selector)]


def lit(page: Any) -> list[str]:
    """What is lit, words and labels by their text, boxes by their name."""
    found: list[str] = page.execute_script(
        "return [...document.querySelectorAll('.lit')].map(n => n.getAttribute('aria-label') || n.textContent).sort()"
    )
    return found


def point_at(page: Any, node: Any) -> None:
    from selenium.webdriver import ActionChains

    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", node)
    ActionChains(page).move_to_element(node).perform()


def test_the_caption_stands_as_written_with_its_words_marked(page: Any) -> None:
    assert texts(page, ".words") == [CAPTION, CAPTION]
    assert page.find_elements("css selector", ".words b, .cited i") == []
    assert texts(page, ".words .is-wrong") == ["hat"]
    assert texts(page, ".cited li") == REFERENCES


def test_pointing_at_a_word_lights_its_boxes_and_says_why(page: Any) -> None:
    word = page.find_element("css selector", ".words .is-right")
    point_at(page, word)
    boxes = [f"{label} · mentioned · {score} · named by “puppy”" for label, score in (("dog", 0.4), ("puppy", 0.2))]
    assert lit(page) == [boxes[0], "puppy", boxes[1]]
    assert texts(page, ".remark")[0] == "puppy: supported · matches “dog” · 0.31"
    assert texts(page, ".cited mark") == ["dog", "dog"]
    point_at(page, page.find_element("css selector", "h1"))
    assert lit(page) == []
    assert texts(page, ".cited mark") == []


def test_pointing_at_a_small_box_inside_a_large_one_lights_its_word(page: Any) -> None:
    small = page.find_element("css selector", ".box[aria-label^=puppy]")
    point_at(page, small)
    assert lit(page) == ["puppy", "puppy · mentioned · 0.2 · named by “puppy”"]


def test_the_keyboard_does_what_the_pointer_does(page: Any) -> None:
    reached = []
    page.find_element("css selector", "body").click()
    for _ in range(8):
        page.switch_to.active_element.send_keys("\ue004")  # Tab
        reached.append(lit(page))
    assert ["snow", "snow · not mentioned · 0.04"] in reached
    assert ["hat"] in reached
    page.switch_to.active_element.send_keys("\ue00c")  # Escape
    assert lit(page) == []


def test_a_click_holds_what_is_lit(page: Any) -> None:
    chip = page.find_element("css selector", ".chips .is-missing")
    chip.click()
    point_at(page, page.find_element("css selector", "h1"))
    assert "snow" in lit(page)
    chip.click()
    point_at(page, page.find_element("css selector", "h1"))
    page.execute_script("document.activeElement.blur()")
    assert lit(page) == []


def test_scores_are_questions_and_answers(page: Any) -> None:
    assert texts(page, ".answers .question") == ["Are its words right?", "Does it say what is there?", "Overall"]
    assert texts(page, ".answers .value") == ["50 %", "12.5", "cannot be said"]
    assert texts(page, ".shares span") == ["Object", "", "0.5", "Size", "", "none"]
    assert texts(page, ".legend span") == ["2 mentioned", "1 partly", "1 not mentioned"]


def test_regions_without_a_name_are_shown_when_asked_for(page: Any) -> None:
    other = page.find_element("css selector", ".box.other")
    assert not other.is_displayed()
    page.find_element("css selector", ".legend input").click()
    assert other.is_displayed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marked_words_can_be_read(page: Any, scheme: str) -> None:
    """Contrast of every kind of word against its ground, at least 4.5 as WCAG asks."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        ratios = page.execute_script(
            """
            const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
              .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
              .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
            return [...document.querySelectorAll('.key [class]')].map((node) => {
              const style = getComputedStyle(node);
              const ground = style.backgroundColor === 'rgba(0, 0, 0, 0)'
                ? getComputedStyle(document.body).backgroundColor : style.backgroundColor;
              const [a, b] = [light(style.color), light(ground)].sort((x, y) => y - x);
              return (a + 0.05) / (b + 0.05);
            });
            """
        )
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert len(ratios) == 4
    assert min(ratios) >= 4.5, ratios


def test_nothing_is_wider_than_a_phone(page: Any, phone_width: int) -> None:
    assert page.execute_script("return document.documentElement.scrollWidth") <= phone_width


ODD = {
    "right-to-left": "كلب في الثلج",
    "emoji": "😀 👨‍👩‍👧 İstanbul'da köpek",
    "300 words": "word " * 300,
    "half a character": "\ud83d half",
    "one long word": "x" * 500,
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_captions_are_drawn(browser: Any, tmp_path: Path, kind: str) -> None:
    caption = ODD[kind]
    words: Details = {"words": [{"text": word, "status": "wrong"} for word in caption.split()]}
    Explanation(caption, ["a dog"], None, (View("references", "By references", words),)).to_html(tmp_path / "page.html")
    browser.get((tmp_path / "page.html").as_uri())
    drawn = browser.execute_script("return document.querySelector('.words').textContent.toWellFormed()")
    assert drawn.split() == caption.encode("utf-16", "surrogatepass").decode("utf-16", "replace").split()
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.get_log("browser") == []
