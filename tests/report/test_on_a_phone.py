"""Every page on a phone: nothing is wider than the screen, and the console stays empty."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.toys import Overlap, Picky

import caplens
from caplens.bench.custom_ratings import OwnRatings
from caplens.bench.data import DataFolders
from caplens.bench.run import run
from caplens.core.captions import CaptionSet
from caplens.evaluation.check import check
from caplens.metrics import load_metrics

pytestmark = pytest.mark.browser

LONG = "a-system-with-quite-a-long-name-and-no-space-in-it-at-all"
TEXTS = {str(number): f"a {'very ' * number}long caption number {number}" for number in range(6)}
REFERENCES = {key: [f"a caption number {key}", "a long caption of some length"] for key in TEXTS}


def leaderboard(path: Path) -> None:
    systems = {"one": TEXTS, LONG: {key: text[::-1] for key, text in TEXTS.items()}}
    metrics = ["bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l", "cider-d"]
    caplens.compare(systems, REFERENCES, metrics=metrics, resamples=10).to_html(path)


def checked(path: Path) -> None:
    check(CaptionSet.of({LONG: "IMG_" + "1" * 200 + ".jpg", "2": "a red bus"})).to_html(path)


def several(path: Path) -> None:
    report = caplens.evaluate(
        list(TEXTS.values()), {"a": ["a"], "b": ["b"]}, groups=list("ababab"), metrics=[Overlap(), Picky(), "cider-d"]
    )
    report.to_html(path)


def bench(path: Path) -> None:
    folder = path.parent
    (folder / "captions.json").write_text(json.dumps(TEXTS))
    (folder / "references.json").write_text(json.dumps(REFERENCES))
    (folder / "ratings.csv").write_text("id,rating\n" + "".join(f"{key},{key}\n" for key in TEXTS))
    ratings = OwnRatings(folder / "ratings.csv", [folder / "captions.json"], folder / "references.json")
    metrics = load_metrics(["length", "bleu", "rouge-l", "cider-d", "cider-r"], {})
    run([ratings], metrics, DataFolders([]), resamples=10, permutations=10).to_html(path)


@pytest.mark.parametrize("write", [leaderboard, checked, several, bench])
def test_nothing_is_wider_than_a_phone(write: Callable[[Path], None], browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write(path)
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get(path.as_uri())
        wide = browser.execute_script(
            "const scrolls = (n) => n && (getComputedStyle(n).overflowX !== 'visible' || scrolls(n.parentElement));"
            "return [...document.body.querySelectorAll('*')].filter(n => n.getBoundingClientRect().right > 391"
            " && !scrolls(n.parentElement)).map(n => n.outerHTML.slice(0, 90))"
        )
        assert wide == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert browser.get_log("browser") == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
