"""Running metrics on sets: the store, what is skipped and why, comparison with print, own ratings, the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.toys import Blind, Overlap, Picky

from caplens.bench import agreement
from caplens.bench.agreement import Estimate
from caplens.bench.base import find_sets
from caplens.bench.custom_ratings import OwnRatings
from caplens.bench.data import DataFolders
from caplens.bench.published import Comparison, Published, compare, look_up
from caplens.bench.results import BenchReport, Measurement
from caplens.bench.run import run
from caplens.bench.statistics import RatingStatistic
from caplens.core.errors import CaplensError, InputError, UnexpectedError
from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric, Statistics


class Counting(Metric):
    """The words of a caption; counts how often it is asked and may fail."""

    name = "toy-counting"
    needs = frozenset({"references"})
    paper = "Nobody, never"
    summary = "Words of the caption."
    calls = 0
    broken_at = -1

    def statistics(self, work: Workspace) -> Statistics:
        if type(self).calls == self.broken_at:
            raise KeyboardInterrupt
        type(self).calls += 1
        return Statistics(np.array([[float(len(text.split()))] for text in work.captions.candidates]))


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Counting, "calls", 0)


@pytest.fixture
def data(tmp_path: Path) -> DataFolders:
    """Twelve photos of Flickr8k-Expert, where longer captions are rated better and share more words."""
    folder = tmp_path / "data"
    folder.mkdir()
    content = {}
    for photo in range(12):
        judgments = [
            {
                "image_path": f"{photo}.jpg",
                "caption": " ".join(["dog"] * rating + ["zebra"] * (photo % 2)),
                "rating": float(rating),
            }
            for rating in (1, 2, 3, 4)
        ]
        content[str(photo)] = {"ground_truth": ["dog dog dog dog", "a dog"], "human_judgement": judgments}
    (folder / "flickr8k.json").write_text(json.dumps(content))
    return DataFolders([folder])


def measure(data: DataFolders, *metrics: Metric, **options: Any) -> BenchReport:
    return run(find_sets(["flickr8k-expert"]), metrics, data, **{"resamples": 50, "permutations": 50, **options})


def test_figures_intervals_clusters_and_p_values(data: DataFolders) -> None:
    report = measure(data, Counting(), Overlap())["flickr8k-expert"]
    rows = report.of("tau-c")
    assert [row.metric for row in rows] == ["toy-counting", "toy-overlap"]
    assert rows[0].estimate.low <= rows[0].estimate.value <= rows[0].estimate.high
    assert [row.cluster for row in rows] == [1, 2]
    assert report.p_values["tau-c", "toy-counting", "toy-overlap"] < 0.05
    assert all(row.status == "not published" for row in rows)
    assert report.value("tau-c", "toy-counting") > 80


def test_the_plot_has_a_panel_per_headline_figure(data: DataFolders) -> None:
    pytest.importorskip("matplotlib")
    report = measure(data, Picky(), Counting())
    headlines = [figure for figure in report.sets[0].task.figures if figure.headline]
    figure = report.plot()
    assert len(figure.axes) == len(headlines) > 0
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [row.metric for row in report.sets[0].of(headlines[0].key) if np.isfinite(row.estimate.value)]
    assert report._repr_html_().count("<tr>") == 1 + len(report.sets[0].measured)


def test_no_interval_is_shown_where_nothing_was_resampled(data: DataFolders) -> None:
    (with_one,) = measure(data, Counting())["flickr8k-expert"].of("tau-c")
    (without,) = measure(data, Counting(), resamples=0)["flickr8k-expert"].of("tau-c")
    assert " to " in with_one.interval
    assert without.interval == ""
    assert without.shown(without.estimate.value) == with_one.shown(with_one.estimate.value)


def test_a_second_run_computes_nothing(data: DataFolders) -> None:
    first = measure(data, Counting())
    assert Counting.calls == 1
    second = measure(data, Counting())
    assert Counting.calls == 1
    assert first.to_dict() == second.to_dict()


def test_a_second_run_computes_no_figure_either(data: DataFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    first = measure(data, Counting(), Overlap())

    def refuse(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(agreement, "correlate_swapped", refuse)
    second = measure(data, Counting(), Overlap())
    assert first.to_dict() == second.to_dict()
    with pytest.raises(UnexpectedError, match="computed again"):
        measure(data, Counting(), Overlap(), seed=2)


def test_changed_captions_are_scored_again(data: DataFolders, tmp_path: Path) -> None:
    measure(data, Counting())
    path = tmp_path / "data" / "flickr8k.json"
    path.write_text(path.read_text().replace("a dog", "some dog"))
    measure(data, Counting())
    assert Counting.calls == 2


def test_a_metric_without_references_shares_its_scores_between_draws(tmp_path: Path) -> None:
    pair = {"image": "a.jpg", "category": "HC", "caption_a": "long one", "caption_b": "x", "pair_votes": [1],
            "consensus_label": 0}  # fmt: skip
    content = {"pairs": [pair], "references": {"a.jpg": [f"reference {number}" for number in range(50)]}}
    (tmp_path / "pascal50s.json").write_text(json.dumps(content))
    report = run(find_sets(["pascal50s"]), [Picky(), Counting()], DataFolders([tmp_path]), resamples=0, permutations=0)
    stored = [path.name.rsplit("-", 1)[0] for path in (tmp_path / "cache" / "bench").glob("*.npz")]
    assert stored.count("toy-picky") == 1
    assert stored.count("toy-counting") == 5
    assert report["pascal-50s-pairs"].value("HC", "toy-picky") == 100


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"image": "s.png", "caption_b": "one", "caption_c": "one two", "votes": [1] * 48}
    entry["references"] = [f"reference {number}" for number in range(48)]
    (tmp_path / "abstract50s.json").write_text(json.dumps([entry]))
    chosen, folders = find_sets(["abstract-50s"]), DataFolders([tmp_path])
    monkeypatch.setattr(Counting, "broken_at", 3)
    with pytest.raises(KeyboardInterrupt):
        run(chosen, [Counting()], folders)
    assert Counting.calls == 3
    monkeypatch.setattr(Counting, "broken_at", -1)
    run(chosen, [Counting()], folders)
    assert Counting.calls == 5


def test_a_damaged_store_is_computed_again(data: DataFolders, tmp_path: Path) -> None:
    measure(data, Counting())
    for stored in (tmp_path / "cache" / "bench").rglob("*.np*"):
        stored.write_bytes(stored.read_bytes()[:100])
    measure(data, Counting())
    assert Counting.calls == 2


def test_what_cannot_be_measured_is_listed_with_the_reason(data: DataFolders) -> None:
    report = run(find_sets(["flickr8k-expert", "thumb"]), [Blind(), Counting()], data, resamples=0, permutations=0)
    assert "--data" in report["flickr8k-expert"].skipped["toy-blind"]
    assert "mscoco_THumB-1.0.jsonl" in report.missing["thumb"]
    with pytest.raises(KeyError, match="THumB"):
        report["thumb"]


def test_no_metric_is_refused(data: DataFolders) -> None:
    with pytest.raises(InputError, match="metric"):
        measure(data)


def test_a_caption_that_cannot_be_scored_is_left_out_and_counted(data: DataFolders, tmp_path: Path) -> None:
    path = tmp_path / "data" / "flickr8k.json"
    path.write_text(path.read_text().replace('"dog dog zebra"', '"broken dog"'))
    row = measure(DataFolders([tmp_path / "data"]), Picky())["flickr8k-expert"].of("tau-c")[0]
    assert row.used == 42
    assert row.figure.count == 48


def test_published_values_cite_paper_and_table_and_know_the_tolerance() -> None:
    near = compare("flickr8k-expert", "tau-c", "", "cider-d", "cider-d|…", 0.4389)
    assert [comparison.status for comparison in near] == ["reproduced", "reproduced"]
    assert "PAC-S" in near[0].published.source
    assert "Table 1" in near[0].published.source
    far = compare("flickr8k-expert", "tau-c", "", "cider-d", "cider-d|…", 0.40)
    assert far[0].status == "not reproduced"
    assert far[0].difference == pytest.approx(-3.9)
    assert compare("flickr8k-expert", "tau-c", "", "length", "length|…", 0.4) == []


def test_a_figure_that_is_not_the_printed_one_gets_a_reason(data: DataFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "name", "spice")  # toy captions under names that are in print
    monkeypatch.setattr(Overlap, "name", "meteor")
    lines = measure(data, Counting(), Overlap())["flickr8k-expert"].differences()
    assert any(line.startswith("spice, Sarto") and "docs/metrics/spice.md" in line for line in lines)
    assert any(line.startswith("meteor, Sarto") and "one decimal" in line for line in lines)


def test_other_weights_or_another_protocol_have_nothing_in_print() -> None:
    assert look_up("flickr8k-expert", "tau-c", "", "clip-s", "clip-s|encoder:embedded") == []
    assert look_up("flickr8k-expert", "tau-c", "", "clip-s", "clip-s|encoder:ViT-B-32")
    assert look_up("foil", "accuracy, 4 references", "source:valse", "cider-d", "") == []
    assert look_up("foil", "accuracy, 4 references", "source:foilv1.0", "cider-d", "")


def test_json_and_page_hold_every_figure(data: DataFolders, tmp_path: Path) -> None:
    report = measure(data, Counting(), Overlap())
    report.to_json(tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    assert {row["figure"] for row in content["sets"][0]["figures"]} == {"tau-c", "tau-b"}
    assert content["sets"][0]["figures"][0]["status"] == "not published"
    report.to_html(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert page.count("<svg") == 4  # a forest plot per figure, a rating plot per metric
    for words in ("Flickr8k-Expert", "toy-counting", "Hodosh", "rows:one-per-expert"):
        assert words in page
    assert "<script" not in page
    assert "://" not in page.replace("http://www.w3.org", "")


def test_a_page_with_nothing_measured_still_says_why(data: DataFolders, tmp_path: Path) -> None:
    report = run(find_sets(["flickr8k-expert", "thumb"]), [Blind()], data, resamples=5, permutations=5)
    report.to_html(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert "toy-blind" in page
    assert "THumB" in page


def captions_file(folder: Path, name: str, texts: dict[str, str]) -> Path:
    path = folder / name
    rows = [{"id": key, "caption": text, "references": ["dog dog dog"]} for key, text in texts.items()]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def own(*arguments: Any) -> BenchReport:
    return run([OwnRatings(*arguments)], [Overlap()], DataFolders([]), resamples=20, permutations=0)


def test_own_ratings_may_rate_a_caption_several_times(tmp_path: Path) -> None:
    captions = captions_file(tmp_path, "captions.jsonl", {"a": "dog", "b": "dog cat", "c": "cat"})
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("id,rating\na,5\na,4\nb,3\nc,1\n")
    report = own(ratings, [captions])["own"]
    assert report.of("tau-b")[0].used == 4
    assert report.value("spearman", "toy-overlap") > 90


def test_own_ratings_with_the_captions_in_the_same_file(tmp_path: Path) -> None:
    ratings = tmp_path / "ratings.csv"
    ratings.write_text(
        'id,caption,references,rating\na,dog,"[""dog""]",5\nb,cat,"[""dog""]",1\nc,cat dog,"[""dog""]",3\n'
    )
    assert own(ratings)["own"].value("tau-b", "toy-overlap") == pytest.approx(100)


def test_own_preferences_between_two_files(tmp_path: Path) -> None:
    first = captions_file(tmp_path, "a.jsonl", {"x": "dog", "y": "cat", "z": "dog"})
    second = captions_file(tmp_path, "b.jsonl", {"x": "cat", "y": "dog", "z": "dog"})
    preferences = tmp_path / "preferences.csv"
    preferences.write_text("id,preference\nx,1\ny,2\nz,0\n")
    row = own(preferences, [first, second])["own"].of("accuracy")[0]
    assert row.used == 2
    assert row.estimate.value == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("id,rating\nnobody,3\n", r"row 1 \(line 2\), id 'nobody'"),
        ("id,rating\na,good\n", "'good'"),
        ("id,score\na,1\n", "'rating' nor 'preference'"),
        ("name,rating\na,1\n", "column 'id'"),
        ("id,rating\n", "no row"),
        ("id,preference\na,1\n", "two files"),
    ],
)
def test_bad_ratings_are_refused_by_row(tmp_path: Path, content: str, words: str) -> None:
    captions = captions_file(tmp_path, "captions.jsonl", {"a": "dog"})
    ratings = tmp_path / "ratings.csv"
    ratings.write_text(content)
    with pytest.raises(CaplensError, match=words):
        own(ratings, [captions])


def test_the_figure_in_print_is_on_the_scale_of_the_column() -> None:
    """τb 30.07 was shown beside 0.279 of a paper that prints shares, though another prints 30.0 (in points)."""
    points = Published(30.0, "one", 0.1, "", 100, "")
    shares = Published(0.279, "two", 0.02, "", 1, "")
    rows = np.zeros(1, np.int64)
    figure = RatingStatistic(
        key="tau-b", kind="tau-b", rows=rows, ratings=np.zeros(1), units=np.zeros(1, np.int32), scale=100
    )
    row = Measurement(
        figure=figure,
        metric="rouge-l",
        label="rouge-l",
        estimate=Estimate(0.3007, float("nan"), float("nan")),
        used=1,
        comparisons=(Comparison(shares, 0.0217), Comparison(points, 0.07)),
    )
    assert (row.in_print, row.remark) == ("30.00", "reproduced")
    far = replace(row, comparisons=(Comparison(shares, 0.0217),))
    assert (far.in_print, far.remark) == ("27.90", "not reproduced (+2.17)")
