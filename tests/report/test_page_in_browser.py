"""The page in a real browser: searching, sorting, filtering, explaining, and no error in the console."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.toys import Blind, Overlap, Picky

import caplens
from caplens.core.workspace import Workspace
from caplens.metrics.base import Statistics

pytestmark = pytest.mark.browser

CAPTIONS = {
    "zebra": "a zebra eats grass",
    "cat": "a cat sleeps",
    "markup": "<b>bold</b> cat & dog",
    "lost": "broken",
    "silent": "",
}


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The page of five captions, freshly opened; afterwards the console must be empty."""
    references = {name: ["a cat sleeps", "a zebra on the grass"] for name in CAPTIONS}
    report = caplens.evaluate(CAPTIONS, references, metrics=[Overlap(), Picky(), Blind()])
    report.to_html(tmp_path / "page.html")
    browser.get((tmp_path / "page.html").as_uri())
    yield browser
    assert browser.get_log("browser") == []


def listed(page: Any) -> list[str]:
    """The ids of the captions in the list, from top to bottom."""
    found: list[str] = page.execute_script("return [...document.querySelectorAll('#list .id')].map(n => n.textContent)")
    return found


def choose(page: Any, control: str, value: str) -> None:
    page.execute_script(
        "const node = document.getElementById(arguments[0]); node.value = arguments[1];"
        "node.dispatchEvent(new Event('input', {bubbles: true}))",
        control,
        value,
    )


def find(page: Any, selector: str) -> Any:
    return page.find_element("css selector", selector)


def test_the_worst_captions_come_first_and_the_file_order_can_be_had(page: Any) -> None:
    assert listed(page) == ["silent", "cat", "zebra", "markup", "lost"]  # by the last metric, the unscored one last
    assert find(page, "#count").text == "5 captions"
    choose(page, "order", "file")
    assert listed(page) == list(CAPTIONS)


def test_search_filters_and_marks(page: Any) -> None:
    find(page, "body").send_keys("/")
    page.switch_to.active_element.send_keys("EATS zebra")
    assert listed(page) == ["zebra"]
    assert find(page, "#count").text == "1 of 5 captions"
    assert find(page, "#list mark").text == "zebra"
    page.switch_to.active_element.send_keys("\ue00c")  # Escape
    assert len(listed(page)) == 5


def test_sorting_by_a_metric_puts_unscored_captions_last(page: Any) -> None:
    choose(page, "metric", "1")
    choose(page, "order", "worst")
    assert listed(page) == ["silent", "cat", "zebra", "markup", "lost"]
    choose(page, "order", "best")
    assert listed(page) == ["markup", "zebra", "cat", "silent", "lost"]


def test_bounds_and_kinds_filter(page: Any) -> None:
    choose(page, "metric", "0")
    choose(page, "low", "50")
    assert listed(page) == ["zebra", "cat"]
    assert page.find_elements("css selector", "#show option[value=wrong]") != []
    find(page, ".tools button[type=reset]").click()
    page.execute_script("return new Promise(done => setTimeout(done, 50))")
    assert len(listed(page)) == 5
    choose(page, "show", "unscored")
    assert listed(page) == ["lost"]
    assert "Not scored by toy-picky: the <picture> cannot be read" in find(page, "#list .reason").text
    choose(page, "show", "empty")
    assert listed(page) == ["silent"]


def test_a_bar_of_the_histogram_filters(page: Any) -> None:
    bars = page.find_elements("css selector", ".histogram svg[data-metric='0'] .catch")
    page.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", bars[-1])
    assert listed(page) == ["zebra", "cat"]


def test_bars_of_the_histogram_are_reached_by_keyboard(page: Any) -> None:
    """One stop of Tab per histogram, arrows between its bars, Enter as a click."""

    def title(bar: Any) -> str:
        text: str = bar.find_element("css selector", "title").get_attribute("textContent")
        return text

    stops = page.execute_script(
        "return [...document.querySelectorAll('.histogram svg')]"
        ".map(drawing => drawing.querySelectorAll('[tabindex=\"0\"]').length)"
    )
    assert stops == [1, 1]
    page.execute_script("document.querySelector('.histogram svg .catch').focus()")
    focused = page.switch_to.active_element
    assert title(focused) == "2 captions from 0.00 to 25.00"
    focused.send_keys("\ue014")  # arrow to the right
    moved = page.switch_to.active_element
    assert title(moved) == "1 caption from 25.00 to 50.00"
    moved.send_keys("\ue007")  # Enter
    assert (find(page, "#low").get_attribute("value"), find(page, "#high").get_attribute("value")) == (
        "25.00",
        "50.00",
    )
    assert len(listed(page)) == 1


def test_worst_and_best_follow_the_metric(page: Any) -> None:
    find(page, ".tabs button[data-metric='0']").click()
    best = page.find_elements("css selector", "#best .id")
    worst = page.find_elements("css selector", "#worst .id")
    assert best[0].text == "cat"
    assert worst[0].text in {"lost", "silent"}
    assert not {node.text for node in best} & {node.text for node in worst}


def test_markup_in_a_caption_is_shown_as_text(page: Any) -> None:
    choose(page, "search", "bold")
    assert find(page, "#list .candidate").text == "<b>bold</b> cat & dog"
    assert page.find_elements("css selector", "#list .candidate b") == []


def test_what_the_details_found_filters(page: Any) -> None:
    choose(page, "order", "file")
    choose(page, "show", "wrong")
    assert listed(page) == ["zebra", "markup", "lost"]
    choose(page, "show", "missing")
    assert listed(page) == ["zebra", "cat", "markup", "lost", "silent"]
    choose(page, "show", "explained")
    choose(page, "search", "zebra eats")
    assert listed(page) == ["zebra"]


def test_why_marks_the_words(page: Any) -> None:
    choose(page, "search", "zebra eats")
    find(page, "#list .why summary").click()
    page.execute_script("return new Promise(done => setTimeout(done, 50))")
    wrong = page.find_elements("css selector", "#list .words .is-wrong")
    assert [node.text for node in wrong] == ["eats"]
    assert "cat on sleeps the" in find(page, "#list .chips").text.replace("\n", " ")


def test_other_details_are_shown_as_values(browser: Any, tmp_path: Path) -> None:
    report = caplens.evaluate(["a cat"], metrics=[Picky()])
    details = [{"distance": 0.123456, "unknown": ["zyx", "<i>"], "none": None, "deep": {"a": [1]}}]
    report.add(replace(report["toy-picky"], details=details))
    report.to_html(tmp_path / "page.html")
    browser.get((tmp_path / "page.html").as_uri())
    find(browser, "#list .why summary").click()
    browser.execute_script("return new Promise(done => setTimeout(done, 50))")
    lines = [node.text for node in browser.find_elements("css selector", "#list .why .facts div")]
    assert lines == ["distance 0.1235", "unknown zyx, <i>", 'deep {"a":[1]}']
    assert browser.get_log("browser") == []


def test_words_and_regions_are_linked_in_the_report_too(browser: Any, tmp_path: Path) -> None:
    Image.new("RGB", (60, 40)).save(tmp_path / "photo.png")
    report = caplens.evaluate(["a cat sleeps"], [["a dog"]], images=[tmp_path / "photo.png"], metrics=[Overlap()])
    details = {
        "words": [{"text": "cat", "status": "right", "regions": [0]}],
        "regions": [{"box": [0, 0, 0.5, 1], "status": "mentioned", "label": "cat"}],
        "categories": {"Object": 0.25, "Size": None},
    }
    report.add(replace(report["toy-overlap"], details=[details]))
    report.to_html(tmp_path / "page.html")
    browser.get((tmp_path / "page.html").as_uri())
    for place in ("#worst", "#list"):
        panel = find(browser, f"{place} .why")
        panel.find_element("css selector", "summary").click()
        browser.execute_script("return new Promise(done => setTimeout(done, 50))")
        browser.execute_script("arguments[0].querySelector('.words .is-right').focus()", panel)
        assert [node.text for node in panel.find_elements("css selector", ".box.lit")] == ["cat"]
        assert panel.find_element("css selector", ".shares").text.split() == ["Object", "0.25", "Size", "none"]
        assert browser.execute_script("return arguments[0].scrollWidth <= arguments[0].clientWidth", panel)
        browser.execute_script("document.activeElement.blur()")
    assert browser.get_log("browser") == []


def test_nothing_is_wider_than_a_phone(page: Any, phone_width: int) -> None:
    assert page.execute_script("return document.documentElement.scrollWidth") <= phone_width


def test_an_empty_report_opens_without_errors(browser: Any, tmp_path: Path) -> None:
    caplens.evaluate([], [], metrics=[Picky()]).to_html(tmp_path / "none.html")
    browser.get((tmp_path / "none.html").as_uri())
    assert "0 captions" in find(browser, ".facts").text
    assert browser.get_log("browser") == []


class Sentences(Picky):
    """Finds the second sentence wrong."""

    name = "toy-sentences"

    def statistics(self, work: Workspace) -> Statistics:
        kinds = ("right", "wrong")
        made = [{"text": f"<{kind}> one.", "status": kind, "score": 0.25} for kind in kinds]
        return Statistics(super().statistics(work).rows, details=[{"sentences": made}] * len(work.captions))


def test_wrong_sentences_are_marked(browser: Any, tmp_path: Path) -> None:
    caplens.evaluate({"a": "a cat"}, metrics=[Sentences()]).to_html(tmp_path / "page.html")
    browser.get((tmp_path / "page.html").as_uri())
    browser.execute_script("document.querySelector('#list details').open = true")
    browser.implicitly_wait(5)
    find(browser, "#list .sentences li")
    browser.implicitly_wait(0)
    marked = "return [...document.querySelectorAll('#list .sentences span')].map(n => [n.textContent, n.className])"
    found = browser.execute_script(marked)
    assert found == [["<right> one.", "is-right"], ["<wrong> one.", "is-wrong"]]
    assert browser.get_log("browser") == []
