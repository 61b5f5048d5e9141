"""Every flow of the pages in a real browser, by mouse, by keyboard alone, and on a phone; the console stays empty."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import IMAGES, NAMES, Running, start
from tests.serving import Handler, serve

from caplens.server.export import export
from caplens.server.settings import Settings
from caplens.storage import weights

pytestmark = pytest.mark.browser
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
ActionChains = pytest.importorskip("selenium.webdriver").ActionChains

PATIENCE = 180.0
TOKEN = "a-token-of-twenty-four-ch"


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """The browser; afterwards the console must be empty, but for the announced answer of a busy server."""
    browser.get_log("browser")
    yield browser
    assert [entry for entry in browser.get_log("browser") if "status of 503" not in entry["message"]] == []


@pytest.fixture
def phone(browser: Any) -> Iterator[Any]:
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def find(page: Any, selector: str) -> Any:
    return page.find_element("css selector", selector)


def texts(page: Any, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map(n => n.textContent)"
    found: list[str] = page.execute_script(script, selector)
    return found


def wait(page: Any, holds: Callable[[], Any]) -> Any:
    """What holds returns, as soon as that is true."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := holds():
            return found
        time.sleep(0.05)
    raise AssertionError(find(page, "main").text)


def press(page: Any, *keys: str) -> None:
    """Press keys, wherever the focus is."""
    for key in keys:
        ActionChains(page).send_keys(key).perform()


def tab_to(page: Any, selector: str, most: int = 80) -> None:
    """Press Tab until something has the focus."""
    for _ in range(most):
        if page.execute_script("return document.activeElement.matches(arguments[0])", selector):
            return
        press(page, Keys.TAB)
    raise AssertionError(f"the Tab key never comes to {selector}")


def narrow(page: Any) -> bool:
    """Nothing is wider than the screen."""
    return bool(
        page.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    )


def try_caption(page: Any, server: Running, caption: str) -> None:
    page.get(f"{server.address}/")
    with server.client() as client:
        while client.get("/health").json()["models"] != "loaded":
            time.sleep(0.2)
    find(page, "#file").send_keys(str(IMAGES / "cat.jpg"))
    find(page, "#caption-1").send_keys(caption)
    status = wait(page, lambda: page.execute_script(
        "const text = document.getElementById('status').textContent;"
        "return /^(Looking|Choose|Write|$)/.test(text) ? '' : text"
    ))  # fmt: skip
    if "needs" in status:
        pytest.skip(status)


def test_a_caption_is_tried(page: Any, server: Running) -> None:
    try_caption(page, server, "a red bus in the street")
    assert find(page, ".judged .verdict").text in ("wrong", "doubtful")
    assert "bus" in texts(page, ".judged .words .is-wrong")
    assert texts(page, ".judged .box")
    area = find(page, "#caption-1")
    area.clear()
    area.send_keys("a close up of the face of a cat")  # the marks follow the words
    wait(page, lambda: "cat" in texts(page, ".judged .words .is-right"))
    assert find(page, ".judged .verdict").text != "wrong"
    find(page, ".all-scores summary").click()
    assert "pac-s" in " ".join(texts(page, ".standing dt"))


def test_a_word_and_its_region_light_up_together(page: Any, server: Running) -> None:
    try_caption(page, server, "a close up of the face of a cat")
    word = next(node for node in page.find_elements("css selector", ".words [tabindex]") if node.text == "cat")
    page.execute_script("arguments[0].focus()", word)
    assert page.find_elements("css selector", ".box.lit")
    assert find(page, ".remark").text.startswith("cat")


def test_two_captions_side_by_side(page: Any, server: Running) -> None:
    try_caption(page, server, "a red bus in the street")
    find(page, "#add").click()
    press(page, "a close up of a cat")
    find(page, "#references").send_keys("a cat looks up\nthe face of a cat")
    wait(page, lambda: len(texts(page, ".judged")) == 2 and "rouge-l" in texts(page, ".votes tbody th"))
    assert find(page, "#votes .said").text.startswith("Caption 2: ")
    assert texts(page, ".judged h2 .verdict")[0] == "wrong"
    assert texts(page, ".judged h2 .verdict")[1] != "wrong"
    find(page, "[aria-label='Remove caption 2']").click()
    wait(page, lambda: len(texts(page, ".judged")) == 1 and not find(page, "#better").is_displayed())


def test_references_alone_are_enough_and_markup_stays_text(page: Any, server: Running) -> None:
    page.get(f"{server.address}/")
    find(page, "#caption-1").send_keys("a <b>cat</b> on a mat")
    wait(page, lambda: "Choose a picture" in find(page, "#status").text)
    find(page, "#references").send_keys("a <i>dog</i> on a mat")
    wait(page, lambda: texts(page, ".judged .words"))
    assert "<b>" in find(page, ".judged .words").text
    assert texts(page, ".cited li") == ["a <i>dog</i> on a mat"]
    assert not page.find_elements("css selector", ".judged b b, .cited i")


def test_what_is_no_picture_is_said(page: Any, server: Running, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jpg"
    wrong.write_text("no picture at all, and rather long for a file that says nothing", "utf-8")
    page.get(f"{server.address}/")
    find(page, "#file").send_keys(str(wrong))
    find(page, "#caption-1").send_keys("a cat")
    wait(page, lambda: "not a picture in a known format" in find(page, "#status").text)
    log = page.get_log("browser")  # the browser itself notes the answer 422, and that it cannot show the file
    assert all("422" in entry["message"] for entry in log)


def test_trying_by_keyboard_alone(page: Any, server: Running) -> None:
    page.get(f"{server.address}/")
    press(page, Keys.TAB)
    assert page.execute_script("return document.activeElement.className") == "skip"
    tab_to(page, "#file")
    tab_to(page, "#caption-1")
    press(page, "a cat on a mat")
    tab_to(page, "#add")
    press(page, Keys.ENTER, "a dog on a mat")
    tab_to(page, "#references")
    press(page, "a cat on a mat")
    page.switch_to.active_element.send_keys(Keys.CONTROL, Keys.ENTER)
    wait(page, lambda: len(texts(page, ".judged")) == 2)
    assert "Caption 1: " in find(page, "#votes .said").text
    tab_to(page, ".all-scores summary")
    press(page, Keys.ENTER)
    assert find(page, ".all-scores").get_attribute("open") is not None


def open_run(page: Any, server: Running, name: str) -> None:
    page.get(f"{server.address}/runs")
    link = wait(page, lambda: [node for node in page.find_elements("css selector", "#runs a") if node.text == name])
    link[0].click()
    wait(page, lambda: texts(page, "#list .id"))


def test_a_run_is_browsed(page: Any, server: Running) -> None:
    open_run(page, server, "plain")
    assert find(page, "h1").text == "plain"
    assert texts(page, ".metric h3") == ["bleu-1", "rouge-l", "meteor", "length"]
    assert find(page, "#count").text == "12 captions"
    find(page, "#words").send_keys("rocket")
    wait(page, lambda: texts(page, "#list .id") == ["rocket"])
    assert find(page, "#count").text == "1 of 12 captions"
    assert texts(page, "#list mark")
    find(page, ".why summary").click()
    wait(page, lambda: texts(page, ".why .words"))
    find(page, "#tools button[type=reset]").click()
    wait(page, lambda: len(texts(page, "#list .id")) == len(NAMES))
    find(page, ".bars button").click()  # the captions of a bar
    assert find(page, "#low").get_attribute("value") == "22.31"  # all are alike
    wait(page, lambda: len(texts(page, "#list .chosen")) == len(NAMES))


def test_verdicts_are_browsed(page: Any, server: Running) -> None:
    open_run(page, server, "verdicts")
    assert not find(page, "#metric").is_displayed()  # there are no scores to choose by
    assert not find(page, "#low").is_displayed()
    page.execute_script(
        "const show = document.getElementById('show'); show.value = 'wrong'; show.dispatchEvent(new Event('input'))"
    )
    wait(page, lambda: texts(page, "#list .id") == ["cat"])
    assert texts(page, "#list .verdict") == ["wrong"]


def test_a_comparison_of_nothing_leads_to_the_runs(page: Any, server: Running) -> None:
    page.get(f"{server.address}/compare")
    wait(page, lambda: find(page, "#status").text == "Choose two or more runs to compare them.")
    find(page, "#status a").click()
    wait(page, lambda: page.find_elements("css selector", "#runs input:enabled"))


def test_runs_are_compared_by_keyboard_alone(page: Any, server: Running) -> None:
    page.get(f"{server.address}/runs")
    wait(page, lambda: page.find_elements("css selector", "#runs input:enabled"))
    for name in ("plain", "wordy"):
        tab_to(page, f"[aria-label='Choose {name} to be compared']")
        press(page, Keys.SPACE)
    assert find(page, "#chosen").text == "2 runs chosen"
    tab_to(page, "#compare")
    press(page, Keys.ENTER)
    wait(page, lambda: texts(page, "#pairs li"))
    assert set(texts(page, "#leaderboard tbody a")) == {"plain", "wordy"}
    assert "p" in find(page, "#leaderboard .against").text or "baseline" in find(page, "#leaderboard .against").text
    tab_to(page, "#leaderboard th:last-child button")
    press(page, Keys.ENTER)
    assert texts(page, "#leaderboard tbody a") == ["wordy", "plain"]  # the longer captions first
    tab_to(page, "#view")
    press(page, "where the second")
    wait(page, lambda: "are better" in find(page, "#shown").text)


def rate_all(page: Any, keys: list[str]) -> None:
    for place in range(len(NAMES)):
        wait(page, lambda place=place: find(page, "#place").text == f"{place} of {len(NAMES)} done")  # type: ignore[misc]
        press(page, keys[place % len(keys)])
    wait(page, lambda: find(page, "#question").text.startswith("All done"))


def test_captions_are_rated_by_keyboard_alone(page: Any, server: Running) -> None:
    if weights.find("all-MiniLM-L6-v2") is None:
        pytest.skip("caplens weights fetch all-MiniLM-L6-v2")
    page.get(f"{server.address}/rate")
    wait(page, lambda: texts(page, "#first option"))
    tab_to(page, "#name")
    press(page, "by keyboard")
    tab_to(page, "#first")
    press(page, "plain")
    tab_to(page, "#new button")
    press(page, Keys.ENTER)
    wait(page, lambda: page.find_elements("css selector", "#rater"))
    tab_to(page, "#rater")
    press(page, "Ada", Keys.ENTER)
    wait(page, lambda: texts(page, "#answers button"))
    rate_all(page, ["1", "2", "3", "4", "5"])
    press(page, "u")  # undo
    wait(page, lambda: find(page, "#place").text == f"{len(NAMES) - 1} of {len(NAMES)} done")
    press(page, "3")
    wait(page, lambda: find(page, "#question").text.startswith("All done"))
    wait(page, lambda: f"Ada: {len(NAMES)} of {len(NAMES)}" in find(page, "#summary").text)
    tab_to(page, "#bench")
    press(page, Keys.ENTER)
    wait(page, lambda: texts(page, "#agreement tbody th"))
    assert "sent-sim" in texts(page, "#agreement tbody th")


def test_pairs_are_judged_and_two_raters_agree(page: Any, server: Running) -> None:
    page.get(f"{server.address}/rate")
    wait(page, lambda: texts(page, "#first option"))
    script = (
        "for (const [id, text] of [['first', 'plain'], ['second', 'wordy']]) {"
        "const select = document.getElementById(id);"
        "select.value = [...select.options].find((option) => option.textContent === text).value; }"
    )
    page.execute_script(script)
    find(page, "#name").send_keys("pairs")
    find(page, "#new button").click()
    for rater in ("Ada", "Bea"):
        wait(page, lambda: page.find_elements("css selector", "#rater"))
        find(page, "#rater").send_keys(rater, Keys.ENTER)
        wait(page, lambda: texts(page, "#texts h3") == ["Left", "Right"])
        for place in range(len(NAMES)):
            wait(page, lambda place=place: find(page, "#place").text.startswith(f"{place} of"))  # type: ignore[misc]
            longer = page.execute_script(
                "return [...document.querySelectorAll('#texts .candidate')].map(n => n.textContent.length)"
            )
            value = 0 if place == 0 else 1 if longer[0] > longer[1] else 2
            find(page, f"#answers [data-value='{value}']").click()
        wait(page, lambda: find(page, "#question").text.startswith("All done"))
        page.refresh()  # and the next person sits down
    wait(page, lambda: "Krippendorff’s α = " in find(page, "#summary").text)
    assert "over 12 items" in find(page, "#summary").text


def test_on_a_phone_nothing_is_wider_than_the_screen(page: Any, phone: Any, server: Running) -> None:
    page.get(f"{server.address}/")
    find(page, "#caption-1").send_keys("a dog on a very-long-word-" + "without-any-space-" * 6)
    find(page, "#references").send_keys("a dog")
    find(page, "#add").click()
    press(page, "a cat")
    wait(page, lambda: len(texts(page, ".judged")) == 2)
    assert narrow(page)
    open_run(page, server, "wordy")
    assert narrow(page)
    find(page, ".why summary").click()
    wait(page, lambda: texts(page, ".why .words"))
    assert narrow(page)
    page.get(f"{server.address}/runs")
    wait(page, lambda: texts(page, "#runs a"))
    assert narrow(page)
    for box in page.find_elements("css selector", "#runs input:enabled"):
        box.click()
    find(page, "#compare").click()
    wait(page, lambda: texts(page, "#pairs li"))
    assert narrow(page)
    page.get(f"{server.address}/rate")
    wait(page, lambda: texts(page, "#first option"))
    assert narrow(page)
    find(page, "#name").send_keys("on a phone")
    find(page, "#new button").click()
    wait(page, lambda: page.find_elements("css selector", "#rater"))
    find(page, "#rater").send_keys("Ada", Keys.ENTER)
    wait(page, lambda: texts(page, "#answers button"))
    find(page, "#answers button").click()
    wait(page, lambda: find(page, "#place").text.startswith("1 of"))
    assert narrow(page)


def test_the_token_is_asked_for_once(browser: Any, tmp_path: Path) -> None:
    with start(tmp_path, "--token", CAPLENS_TOKEN=TOKEN) as server:
        browser.get(f"{server.address}/runs")
        wait(browser, lambda: browser.find_elements("css selector", "#token"))
        find(browser, "#token").send_keys("wrong", Keys.ENTER)
        wait(browser, lambda: "wrong" in find(browser, "#problem").text)
        browser.get(f"{server.address}/login#{TOKEN}")  # as the server prints it
        wait(browser, lambda: browser.find_elements("css selector", "#caption-1"))
        assert TOKEN not in browser.current_url
        browser.get(f"{server.address}/runs")
        wait(browser, lambda: "No run is here yet" in find(browser, "#about").text)
    browser.get_log("browser")  # the browser notes the answer 401


def test_an_export_shows_the_same(page: Any, runs: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    written = export(Settings(runs=runs, folders=(IMAGES,), state=tmp_path), site, title="Our systems")
    assert (written.runs, written.captions, written.pictures) == (3, 36, 24)
    assert written.compared == ["plain", "wordy"]

    class Files(Handler, SimpleHTTPRequestHandler):
        pass

    with serve(partial(Files, directory=str(site))) as address:  # type: ignore[arg-type]
        page.get(f"{address}/")
        wait(page, lambda: texts(page, "#runs a"))
        assert find(page, "h1").text == "Our systems"
        next(node for node in page.find_elements("css selector", "#runs a") if node.text == "wordy").click()
        wait(page, lambda: len(texts(page, "#list .id")) == len(NAMES))
        wait(page, lambda: page.execute_script(
            "const image = document.querySelector('#list img'); return image.complete && image.naturalWidth > 0"
        ))  # fmt: skip
        find(page, "#words").send_keys("rocket")
        wait(page, lambda: texts(page, "#list .id") == ["rocket"])
        find(page, ".why summary").click()
        wait(page, lambda: texts(page, ".why .words"))
        page.get(f"{address}/")
        wait(page, lambda: find(page, "#compare").is_displayed())
        find(page, "#compare").click()
        wait(page, lambda: texts(page, "#pairs li"))
        assert set(texts(page, "#leaderboard tbody a")) == {"plain", "wordy"}
        page.get("about:blank")  # else pictures that still load miss the server, and the console says so
