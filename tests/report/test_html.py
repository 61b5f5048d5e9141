"""The page as text: self-contained, escaped, bounded in size. How it behaves is tested in a browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.toys import Blind, Overlap, Picky

import caplens
from caplens.report import sample, thumbnails
from caplens.report.histogram import bars
from caplens.report.html import render


def data_of(page: str) -> dict[str, Any]:
    """What the page's script reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def page_of(captions: list[str], **columns: Any) -> str:
    references = [["a cat sleeps"] for _ in captions]
    return render(caplens.evaluate(captions, references, metrics=[Overlap(), Picky(), Blind()], **columns), "title")


def test_the_page_needs_nothing_from_outside() -> None:
    page = page_of(["a cat", "broken", ""])
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert "@import" not in page
    assert "://" not in page


def test_markup_in_captions_ids_and_titles_stays_text(tmp_path: Path) -> None:
    evil = "</script><script>alert('x')</script><img src=x onerror=alert(1)> & \u2028"
    report = caplens.evaluate({evil: evil}, {evil: [evil]}, metrics=[Overlap()])
    report.errors[evil] = evil
    page = render(report, evil)
    assert data_of(page)["captions"] == [evil]
    assert len(re.findall(r"<script", page)) == 2
    assert "<img" not in page
    report.to_html(tmp_path / "page.html", title=evil)
    assert (tmp_path / "page.html").read_text("utf-8") == page


def test_scores_signatures_reasons_and_failures_are_all_there() -> None:
    page = page_of(["a cat", "broken"])
    assert "toy-overlap|floor:0.0|caplens:" in page
    assert "1 of 2" in page  # toy-picky scored one of the two
    assert "toy-blind looks at the image" in page
    picky = data_of(page)["metrics"][1]
    assert picky["scores"] == [0.05, None]
    assert picky["failures"] == {"1": "the <picture> cannot be read"}


@pytest.mark.parametrize("captions", [[], [""], ["\ud83d half a character"], ["猫が眠る 😀\u202e"]])
def test_odd_sets_give_a_page(captions: list[str], tmp_path: Path) -> None:
    page = page_of(captions)
    assert len(data_of(page)["ids"]) == len(captions)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")


def test_no_scores_at_all_give_a_page() -> None:
    page = render(caplens.evaluate(["broken"], metrics=[Picky()]), "nothing")
    assert "none" in page
    assert data_of(page)["metrics"][0]["scores"] == [None]


def test_a_large_set_keeps_the_extremes_and_says_so() -> None:
    captions = [f"a cat {'x' * (number % 997)}" for number in range(60_000)]
    captions[31_234] = "a " * 700
    captions[31_235] = "broken"
    page = page_of(captions)
    data = data_of(page)
    assert len(page) < 8_000_000
    assert len(data["ids"]) <= sample.MOST_ROWS
    assert {"31234", "31235"} <= set(data["ids"])
    assert f"keeps {len(data['ids']):,} of 60,000 captions" in page
    places = np.array([int(name) for name in data["ids"]])
    assert (np.histogram(places, bins=10, range=(0, 60_000))[0] > 50).all(), "the sample is not spread over the set"


def test_very_long_captions_do_not_make_a_very_large_page() -> None:
    page = render(caplens.evaluate(["word " * 1000] * 3000, metrics=[Picky()]), "long")
    assert len(page) < 8_000_000
    assert data_of(page)["captions"][0].endswith("…")


def test_one_row_with_huge_references_costs_no_other_row(monkeypatch: pytest.MonkeyPatch) -> None:
    captions = ["a cat"] * 999 + ["zebra " * 20_000]
    references = [["a cat on a mat"]] * 999 + [[f"{number} {'word ' * 400}" for number in range(2_000)]]
    data = data_of(render(caplens.evaluate(captions, references, metrics=[Overlap(), Picky()]), "huge"))
    assert len(data["ids"]) == 1_000
    assert data["references"][0] == ["a cat on a mat"]
    assert data["references"][-1][-1] == "… and 1,990 more"
    details = data["views"][0]["details"]
    assert len(details) == 1_000
    assert "too long for a page" in details["999"]["note"]


def test_a_browser_may_run_nothing_but_the_pages_own_script() -> None:
    page = page_of(["a cat"])
    policy = re.search('<meta http-equiv="Content-Security-Policy" content="([^"]+)">', page)
    scripts = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    assert policy is not None
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}';" in policy[1].replace("&#39;", "'")


def test_details_are_kept_for_the_extremes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    captions = [f"{'a cat ' * 20}{'x ' * number}" for number in range(40)]
    size = len(json.dumps(data_of(page_of(captions[:1]))["views"][0]["details"]["0"]))
    monkeypatch.setattr("caplens.report.html.DETAILS_BUDGET", 10 * size)
    page = page_of(captions)
    kept = data_of(page)["views"][0]["details"]
    assert 4 <= len(kept) <= 10
    assert f"Explanations by toy-overlap are kept for {len(kept)} of these" in page
    assert "are kept for" not in page_of(captions[:3])
    assert {"0", "39"} <= set(kept)


def test_the_references_explain_where_a_metric_aligned_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    captions = ["a cat flies", "", "😀"]
    report = caplens.evaluate(captions, [["a cat sleeps"]] * 3, metrics=[Overlap(), Picky()])
    assert [view["name"] for view in data_of(render(report, "title"))["views"]] == ["toy-overlap"]
    monkeypatch.setattr("caplens.report.html.ALIGNING", frozenset({"toy-overlap"}))
    views = data_of(render(report, "title"))["views"]
    assert [view["name"] for view in views] == ["the references", "toy-overlap"]
    cat, empty, emoji = (views[0]["details"][str(row)] for row in range(3))
    assert [word.get("status") for word in cat["words"]] == [None, "exact", "wrong"]
    assert cat["missing"][0]["text"] == "sleeps"
    assert "no word of the caption" in empty["note"]
    assert emoji["precision"] is None


def test_details_of_another_shape_do_not_cost_the_page() -> None:
    report = caplens.evaluate(["a cat"], metrics=[Picky()])
    report.add(replace(report["toy-picky"], details=[{"words": ["a", "cat"]}]))
    [view] = data_of(render(report, "title"))["views"]
    assert view["details"]["0"]["note"].startswith("cannot be drawn: words[0]: ")


def picture(folder: Path, name: str, size: tuple[int, int], mode: str = "RGB") -> str:
    path = folder / name
    random = np.random.default_rng(0).integers(0, 255, (size[1], size[0], len(mode)), dtype=np.uint8)
    Image.fromarray(random).save(path)
    return str(path)


def test_pictures_become_small_and_unreadable_ones_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"not a picture")
    images = [
        picture(tmp_path, "wide.png", (900, 300)),
        picture(tmp_path, "clear.png", (40, 60), "RGBA"),
        str(tmp_path / "bad.jpg"),
        str(tmp_path / "absent.jpg"),
        "https://example.org/never-fetched.jpg",
        None,
    ]
    data = data_of(page_of(["a cat"] * 6, images=images))
    assert sorted(data["pictures"]) == ["0", "1"]
    address = data["pictures"]["0"]
    small = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
    assert (small.format, small.size) == ("JPEG", (360, 120))


def test_a_video_is_shown_by_its_middle_frame(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    path = tmp_path / "film.mp4"
    with av.open(str(path), "w") as film:
        stream = film.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for shade in (0, 0, 200, 0, 0):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), shade, np.uint8), format="rgb24")
            film.mux(stream.encode(frame))
        film.mux(stream.encode())
    data = data_of(page_of(["a cat", "a dog"], videos=[path, tmp_path / "absent.mp4"]))
    assert list(data["pictures"]) == ["0"]
    small = Image.open(io.BytesIO(base64.b64decode(data["pictures"]["0"].partition(",")[2])))
    assert small.size == (64, 48)
    assert np.asarray(small).mean() > 150, "the bright frame is in the middle"


def test_pictures_stop_when_the_budget_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = picture(tmp_path, "one.png", (64, 64))
    size = len(thumbnails.thumbnail(Image.open(image), 360))
    monkeypatch.setattr(thumbnails, "BYTE_BUDGET", 3 * size)
    data = data_of(page_of([f"a cat {'x' * number}" for number in range(9)], images=[image] * 9))
    assert len(data["pictures"]) == 3
    assert "8" in data["pictures"], "the extremes come first"


def test_bars_hold_every_score_once() -> None:
    scores = np.random.default_rng(1).normal(size=500)
    drawn = bars(np.append(scores, np.nan))
    assert sum(bar.count for bar in drawn) == 500
    assert (drawn[0].low, drawn[-1].high) == (scores.min(), scores.max())
    assert bars(np.array([np.nan])) == []
    assert [(bar.count, bar.low, bar.high) for bar in bars(np.array([0.3, 0.3]))] == [(2, 0.3, 0.3)]
