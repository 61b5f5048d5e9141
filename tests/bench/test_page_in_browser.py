"""The bench page in a real browser: every plot is drawn, and nothing stands outside of it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from caplens.bench.base import find_sets
from caplens.bench.data import DataFolders
from caplens.bench.run import run
from caplens.metrics import load_metrics

pytestmark = pytest.mark.browser

METRICS = ["bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l", "length"]


@pytest.fixture
def page(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pascal-50S with two categories: the metrics over references meet at 100 in the last one."""
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    same, other = "a dog runs on the grass", "two cats sleep"
    pairs = [
        {
            "image": f"{number}.jpg",
            "category": category,
            "caption_a": same,
            "caption_b": other,
            "pair_votes": [vote],
            "consensus_label": 0,
        }
        for number, (category, vote) in enumerate([("HC", 1), ("HC", -1), ("MM", 1), ("MM", 1), ("MM", 1)])
    ]
    references = {pair["image"]: [same] * 50 for pair in pairs}
    (tmp_path / "pascal50s.json").write_text(json.dumps({"pairs": pairs, "references": references}))
    chosen, data = find_sets(["pascal-50s-pairs"]), DataFolders([tmp_path])
    report = run(chosen, load_metrics(METRICS, {}), data, resamples=20, permutations=20)
    report.to_html(tmp_path / "bench.html")
    browser.get((tmp_path / "bench.html").as_uri())
    return browser


def test_every_plot_is_drawn_and_no_label_is_cut_off(page: Any) -> None:
    page.execute_script("for (const node of document.querySelectorAll('details')) node.open = true")
    outside = page.execute_script(
        """
        return [...document.querySelectorAll('svg')].flatMap((svg) => {
          const frame = svg.viewBox.baseVal;
          return [...svg.querySelectorAll('text')].filter((text) => {
            const box = text.getBBox();
            return Math.min(box.x, box.y) < -1 || box.x + box.width > frame.width + 1
              || box.y + box.height > frame.height + 1;
          }).map((text) => `${svg.getAttribute('aria-label')}: ${text.textContent}`);
        });
        """
    )
    assert outside == []
    sizes = page.execute_script(
        "return [...document.querySelectorAll('svg')].map(n => [n.getBoundingClientRect().width, n.childElementCount])"
    )
    assert len(sizes) == 4  # mean, two categories, and the line over categories
    assert all(width > 300 and parts > 10 for width, parts in sizes)
    labels = page.find_elements("css selector", "svg text.label")
    assert sorted(label.text for label in labels) == sorted(METRICS)
    heights = sorted(label.rect["y"] for label in labels)
    assert all(lower - upper > 8 for upper, lower in itertools.pairwise(heights))
    assert page.get_log("browser") == []


def test_the_overview_says_its_intervals_and_leads_to_the_set(page: Any) -> None:
    cell = page.find_element("css selector", ".summary td")
    assert " to " in cell.get_attribute("title")
    page.find_element("css selector", ".summary th a").click()
    assert page.current_url.endswith("#pascal-50s-pairs")
    assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
