"""The leaderboard page: what it keeps, and what it escapes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import caplens


def page(tmp_path: Path, systems: dict[str, list[str]], references: list[list[str]]) -> tuple[str, dict[str, Any]]:
    target = tmp_path / "board.html"
    caplens.compare(systems, references, metrics=["rouge-l", "bleu-1"]).to_html(target, title="A <b> title")
    text = target.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data"[^>]*>(.*?)</script>', text, re.S)
    assert found is not None
    return text, json.loads(found.group(1))


def test_scores_captions_and_ranks_are_on_the_page(tmp_path: Path) -> None:
    systems = {"good": ["a cat sits", "a dog runs"] * 10, "bad": ["a bus", "a train"] * 10}
    text, data = page(tmp_path, systems, [["a cat sits"], ["a dog runs"]] * 10)
    assert "A &lt;b&gt; title" in text
    assert data["systems"] == ["good", "bad"]
    assert [metric["name"] for metric in data["metrics"]] == ["rouge-l", "bleu-1"]
    assert data["metrics"][0]["scores"][0] == [1.0] * 20
    assert data["captions"][1][:2] == ["a bus", "a train"]
    assert "100.00<sub>1</sub>" in text
    assert "<sub>2</sub>" in text


def test_a_caption_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    text, data = page(tmp_path, {evil: [evil, "b"], "other": ["a", "b"]}, [["a"], ["b"]])
    assert evil not in text
    assert data["captions"][0][0] == evil


def test_a_large_comparison_keeps_the_hardest_and_the_most_different(tmp_path: Path) -> None:
    count = 3000
    references = [["a cat sits on the mat"]] * count
    good = ["a cat sits on the mat"] * count
    bad = list(good)
    bad[1234], good[77], bad[77] = "nothing at all", "zzz", "zzz"
    _, data = page(tmp_path, {"good": good, "bad": bad}, references)
    assert {"1234", "77"} <= set(data["ids"])
    assert len(data["ids"]) < 500
