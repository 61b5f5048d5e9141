"""Ratings by people: blind, in random order, resumed, undone, agreed on, exported, measured."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.schemas import check_output
from tests.server.conftest import NAMES, SYSTEMS, wait_for_job

from caplens.bench.custom_ratings import OwnRatings
from caplens.bench.data import DataFolders
from caplens.core.errors import InputError
from caplens.server.ratings import Session, Sessions
from caplens.server.runs import Catalog
from caplens.server.settings import Settings


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path)


@pytest.fixture
def catalog(runs: Path, tmp_path: Path) -> Catalog:
    return Catalog(Settings(runs=runs, state=tmp_path))


def run_ids(catalog: Catalog) -> dict[str, str]:
    return {run.name: run.id for run in catalog.runs()}


def test_captions_are_rated_in_an_order_of_their_own(sessions: Sessions, catalog: Catalog) -> None:
    session = sessions.create("alt texts", [run_ids(catalog)["plain"]], 100, 1, catalog)
    seen = []
    for place in range(len(NAMES)):
        shown = session.next("Ada")
        assert (shown["kind"], shown["done"], shown["total"]) == ("rating", place, len(NAMES))
        seen.append(shown["item"]["item"])
        assert session.next("Ada") == shown  # asking again changes nothing
        session.rate("Ada", shown["item"]["item"], 1 + place % 5)
    assert session.next("Ada")["item"] is None
    assert sorted(seen) == list(range(len(NAMES)))
    assert seen != sorted(seen)
    assert seen != [session._order("Bea")[place] for place in range(len(NAMES))]


def test_a_pair_is_blind_and_the_choice_is_unblinded(sessions: Sessions, catalog: Catalog) -> None:
    ids = run_ids(catalog)
    session = sessions.create("pairs", [ids["plain"], ids["wordy"]], 100, 1, catalog)
    sides: Counter[bool] = Counter()
    for rater in ("Ada", "Bea", "Cy", "Dot"):
        while (item := session.next(rater)["item"]) is not None:
            name = session.items[item["item"]].id
            left = item["captions"].index(SYSTEMS["wordy"][name]) + 1  # whoever reads them prefers the longer
            sides[left == 1] += 1
            session.rate(rater, item["item"], left)
    assert {judgment.value for judgment in session.judgments()} == {2}  # the second run, wherever it was shown
    assert min(sides.values()) > 10
    assert session.summary()["alpha"] is None  # one value in all: nothing to tell apart


def test_the_latest_word_counts_and_can_be_taken_back(sessions: Sessions, catalog: Catalog) -> None:
    session = sessions.create("s", [run_ids(catalog)["plain"]], 3, 1, catalog)
    first = session.next("Ada")["item"]["item"]
    session.rate("Ada", first, 2)
    session.rate("Ada", first, 4)
    second = session.next("Ada")["item"]["item"]
    session.rate("Ada", second, 1)
    assert session.undo("Ada")["item"]["item"] == second
    assert [(said.item, said.value) for said in session.judgments()] == [(first, 4)]
    session.undo("Ada")
    assert session.undo("Ada")["done"] == 0  # nothing left to take back
    lines = (session.folder / "judgments.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 5  # nothing is ever removed from the file


def test_it_goes_on_after_a_restart_and_half_a_line_is_cut_off(sessions: Sessions, catalog: Catalog) -> None:
    session = sessions.create("s", [run_ids(catalog)["plain"]], 5, 1, catalog)
    item = session.next("Ada")["item"]["item"]
    session.rate("Ada", item, 5)
    with (session.folder / "judgments.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"rater": "Ada", "item": 1, "val')  # as a power cut would leave it
    again = Session(session.folder)
    assert again.judgments() == session.judgments()
    again.rate("Bea", item, 4)
    assert len(Session(session.folder).judgments()) == 2


def test_agreement_and_the_file_for_bench(sessions: Sessions, catalog: Catalog, tmp_path: Path) -> None:
    session = sessions.create("s", [run_ids(catalog)["wordy"]], 12, 1, catalog)
    for place in range(len(session.items)):
        for rater, value in (("Ada", 1 + place % 5), ("Bea", 1 + place % 5), ("Cy", 5 - place % 5)):
            session.rate(rater, place, value)
    summary = session.summary()
    assert summary["raters"] == {"Ada": 12, "Bea": 12, "Cy": 12}
    assert summary["shared"] == 12
    assert -0.5 < summary["alpha"] < 0.5
    ratings = tmp_path / "ratings.csv"
    ratings.write_text(session.to_csv(), "utf-8")
    captions = tmp_path / "captions.jsonl"
    lines = [json.dumps({"id": name, "caption": text}) for name, text in SYSTEMS["wordy"].items()]
    captions.write_text("\n".join(lines), "utf-8")
    task = OwnRatings(ratings, [captions]).load(DataFolders([]))
    assert task.signature == "ratings:36"


def test_what_is_no_answer_is_refused(sessions: Sessions, catalog: Catalog) -> None:
    ids = run_ids(catalog)
    session = sessions.create("s", [ids["plain"]], 3, 1, catalog)
    for item, value in ((0, 0), (0, 6), (3, 1)):
        with pytest.raises(InputError):
            session.rate("Ada", item, value)
    with pytest.raises(InputError, match="there is a session called 's' already"):
        sessions.create("s", [ids["plain"]], 3, 1, catalog)
    with pytest.raises(InputError, match="there is nothing to rate"):
        sessions.create("t", [ids["plain"], ids["plain"]], 3, 1, catalog)
    for name in ("../s", "s/../s", "", "nowhere"):
        with pytest.raises(KeyError):
            sessions.get(name)


def test_which_metric_agrees_with_them(client: Any) -> None:
    ids = {entry["name"]: entry["id"] for entry in client.get("/v1/runs").json()}
    made = client.post("/v1/sessions", json={"name": "Whom to trust?".replace("?", ""), "runs": [ids["wordy"]]})
    assert made.status_code == 201
    base = f"/v1/sessions/{made.json()['name']}"
    for _ in NAMES:
        item = client.get(f"{base}/next", params={"rater": "Ada"}).json()["item"]["item"]
        answer = client.post(f"{base}/ratings", json={"rater": "Ada", "item": item, "value": 1 + item % 5})
        assert answer.status_code == 200
    picture = client.get(f"{base}/pictures/0")
    assert picture.headers["content-type"] == "image/jpeg"
    table = client.get(f"{base}/ratings.csv")
    assert table.text.splitlines()[0] == "id,rating,rater"
    assert len(table.text.splitlines()) == 1 + len(NAMES)
    asked = {"kind": "bench", "request": {"session": made.json()["name"], "metrics": ["rouge-l", "length"]}}
    job = client.post("/v1/jobs", json=asked).json()["id"]
    ended = wait_for_job(client, job)
    assert ended["state"] == "done", ended
    found = check_output("bench", client.get(f"/v1/jobs/{job}/result").text)
    assert {row["metric"] for row in found["sets"][0]["figures"]} == {"rouge-l", "length"}
