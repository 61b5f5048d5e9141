"""Runs: found, indexed, paged, searched, compared; the index says what a slow look at the file says."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.server.conftest import NAMES, SYSTEMS

from caplens.core.errors import InputError
from caplens.evaluation.evaluate import evaluate
from caplens.evaluation.stored_report import compare_stored
from caplens.scale.evaluate import evaluate_shards
from caplens.server.run_files import stored_report
from caplens.server.run_index import Order, Query, RunIndex, build_index
from caplens.server.runs import Catalog, Run
from caplens.server.settings import Settings

WORDS = ["cat", "dog", "horse", "grass", "sofa", "Straße", "café", "漢字", "man's", "50%", '"quoted"']


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunIndex, list[dict[str, Any]]]:
    """The index of a run of random captions, and its rows as they are in the file."""
    generator = random.Random(1)
    captions = {str(row): " ".join(generator.choices(WORDS, k=generator.randint(0, 5))) for row in range(300)}
    references = {row: [" ".join(generator.choices(WORDS, k=4))] for row in captions}
    report = evaluate(captions, references, metrics=["rouge-l", "length"])
    folder = tmp_path_factory.mktemp("many")
    report.to_json(folder / "run.json")
    build_index(folder / "run.json", "score", folder / "index.sqlite")
    rows = [
        {"row": row, "id": name, "caption": captions[name], "references": references[name],
         "scores": [float(report[metric].scores[row]) for metric in ("rouge-l", "length")]}
        for row, name in enumerate(captions)
    ]  # fmt: skip
    return RunIndex(folder / "index.sqlite"), rows


@pytest.mark.parametrize(
    "words", ["", "cat", "CAT dog", "straße", "STRASSE", "ca", "漢字", "caf", '"quo', "50%", "zebra", "'"]
)
@pytest.mark.parametrize("order", get_args(Order))
def test_pages_are_as_a_slow_look_says(many: Any, words: str, order: Order) -> None:
    index, rows = many
    wanted = [
        row
        for row in rows
        if all(
            word in "\n".join([row["id"], row["caption"], *row["references"]]).casefold()
            for word in words.casefold().split()
        )
        and 0.1 <= row["scores"][0] <= 0.9
    ]
    if order != "file":
        wanted.sort(key=lambda row: (row["scores"][0] if order == "worst" else -row["scores"][0], row["row"]))
    found: list[int] = []
    total = None
    while total is None or len(found) < total:
        page = index.page(Query(words, 0, order, 0.1, 0.9, offset=len(found), limit=7))
        total = page["total"]
        assert page["rows"] or len(found) == total
        found += [row["row"] for row in page["rows"]]
    assert found == [row["row"] for row in wanted]


def test_a_caption_comes_with_everything(many: Any) -> None:
    index, rows = many
    [shown] = index.rows([17])
    assert {key: shown[key] for key in rows[17]} == rows[17]
    assert index.summary()["counts"]["empty"] == sum(not row["caption"] for row in rows)
    assert sum(count for _, _, count in index.summary()["metrics"][0]["histogram"]) == 300
    assert index.rows([10_000]) == []
    with pytest.raises(InputError, match="no metric number 2"):
        index.page(Query(metric=2))


def test_runs_are_found_and_listed(client: Any) -> None:
    listed = {entry["name"]: entry for entry in client.get("/v1/runs").json()}
    assert set(listed) == {"plain", "wordy", "verdicts"}
    run = client.get(f"/v1/runs/{listed['plain']['id']}").json()
    assert [metric["name"] for metric in run["metrics"]] == ["bleu-1", "rouge-l", "meteor", "length"]
    assert run["pictures"] == len(NAMES)
    base = f"/v1/runs/{listed['plain']['id']}"
    page = client.get(f"{base}/captions", params={"words": "rocket", "metric": 1, "order": "worst"}).json()
    assert [row["caption"] for row in page["rows"]] == ["a rocket"]
    row = page["rows"][0]
    assert row["details"]["meteor"]["words"]
    picture = client.get(f"{base}/pictures/{row['row']}", params={"width": 64})
    assert picture.content[:2] == b"\xff\xd8"
    assert client.get(f"{base}/pictures/9999").status_code == 404


def test_verdicts_are_filtered(client: Any) -> None:
    listed = {entry["name"]: entry for entry in client.get("/v1/runs").json()}
    run = listed["verdicts"]
    assert run["counts"]["wrong"] == 1
    page = client.get(f"/v1/runs/{run['id']}/captions", params={"show": "wrong"}).json()
    assert [row["id"] for row in page["rows"]] == ["cat"]
    assert page["rows"][0]["reasons"][0]["verdict"] == "wrong"


def test_where_two_runs_differ_most(client: Any) -> None:
    ids = {entry["name"]: entry["id"] for entry in client.get("/v1/runs").json()}
    asked = {"first": ids["wordy"], "second": ids["plain"], "metric": "rouge-l"}
    page = client.get("/v1/differences", params=asked).json()
    gaps = [abs(pair["gap"]) for pair in page["pairs"]]
    assert gaps == sorted(gaps, reverse=True)
    for pair in page["pairs"]:
        assert pair["first"]["caption"] == SYSTEMS["wordy"][pair["first"]["id"]]
        assert pair["second"]["caption"] == SYSTEMS["plain"][pair["second"]["id"]]
        assert pair["gap"] == pytest.approx(pair["first"]["scores"][1] - pair["second"]["scores"][1])
    better = client.get("/v1/differences", params={**asked, "view": "first"}).json()["total"]
    worse = client.get("/v1/differences", params={**asked, "view": "second"}).json()["total"]
    assert better + worse == page["total"] > 0
    assert client.get("/v1/differences", params={**asked, "metric": "spice"}).status_code == 422


def test_shards_are_a_run(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for part in range(2):
        lines = [{"id": f"{part}-{row}", "caption": "a cat " * (row + 1)} for row in range(5)]
        (tmp_path / f"{part}.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    for name in ("one", "two"):
        evaluate_shards(str(tmp_path / "*.jsonl"), "length", output=tmp_path / "runs" / name, workers=1)
    catalog = Catalog(Settings(runs=tmp_path / "runs", state=tmp_path / "state"))
    first, second = catalog.runs()
    assert (first.name, first.kind) == ("one", "shards")
    index = catalog.index(first)
    assert index.summary()["captions"] == 10
    page = index.page(Query(metric=0, order="best", limit=2))
    assert [row["id"] for row in page["rows"]] == ["0-4", "1-4"]
    reports = {run.name: stored_report(run.path, run.kind) for run in (first, second)}
    found = compare_stored(reports)
    assert found["length"].systems[1].difference is not None
    assert found["length"].systems[1].difference.verdict == "same"


def test_captions_may_come_alone(tmp_path: Path) -> None:
    evaluate(["a cat", "two dogs"], metrics=["length"]).to_json(tmp_path / "run.json")
    build_index(tmp_path / "run.json", "score", tmp_path / "index.sqlite")
    page = RunIndex(tmp_path / "index.sqlite").page(Query(metric=0, order="best"))
    assert [(row["caption"], row["references"], row["picture"]) for row in page["rows"]] == [
        ("a cat", [], False),
        ("two dogs", [], False),
    ]


def test_a_run_that_changes_is_read_again_and_a_broken_one_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    evaluate(["a cat"], [["a cat"]], metrics=["rouge-l"]).to_json(folder / "run.json")
    catalog = Catalog(Settings(runs=folder, state=tmp_path / "state"))
    [run] = catalog.runs()
    assert catalog.index(run).summary()["captions"] == 1
    evaluate(["a cat", "a dog"], [["a cat"], ["a dog"]], metrics=["rouge-l"]).to_json(folder / "run.json")
    assert catalog.index(run).summary()["captions"] == 2
    (folder / "broken.json").write_text('{"captions": 1, "ids": ["a"], "candidates": [1', "utf-8")
    (folder / "other.json").write_text('{"hello": "world"}', "utf-8")
    (folder / "old.json").write_text('{"captions": 1, "ids": ["a"], "metrics": {}, "errors": {}}', "utf-8")
    listed = {run.name: run for run in catalog.runs()}
    assert set(listed) == {"run", "broken", "old"}
    with pytest.raises(InputError, match=r"broken\.json: is not json"):
        catalog.index(listed["broken"])
    with pytest.raises(InputError, match=r"old\.json: is not what `caplens score` or"):
        catalog.index(listed["old"])
    states = {entry["name"]: entry["state"] for entry in catalog.list()}
    assert states == {"broken": "failed", "old": "failed", "run": "ready"}


def test_a_large_run_is_read_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caplens.server.runs.LARGE", 0)
    evaluate(["a cat"], [["a cat"]], metrics=["rouge-l"]).to_json(tmp_path / "run.json")
    (tmp_path / "broken.json").write_text('{"captions": 1, "ids": [', "utf-8")
    catalog = Catalog(Settings(runs=tmp_path, state=tmp_path / "state"))
    broken, run = catalog.runs()
    assert catalog.index(run).summary()["captions"] == 1
    with pytest.raises(InputError, match="is not json"):
        catalog.index(broken)


def test_links_lead_nowhere_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    evaluate(["a cat"], [["a cat"]], metrics=["rouge-l"]).to_json(outside)
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "link.json").symlink_to(outside)
    assert Catalog(Settings(runs=folder, state=tmp_path)).runs() == []
    assert Run(outside, "outside", "score").files() == [outside]
