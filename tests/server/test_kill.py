"""The server is killed in the middle of everything: nothing that was acknowledged is lost."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import start, wait_for_job

httpx = pytest.importorskip("httpx")

pytestmark = pytest.mark.skipif("sys.platform == 'win32'", reason="not on Windows")

TEXTS = ["a cat sat on a mat", "two dogs run over the grass"]


def test_jobs_survive(tmp_path: Path, runs: Path) -> None:
    long = {"candidates": TEXTS * 300, "references": [TEXTS] * 600, "metrics": ["meteor", "spice", "rouge-l"]}
    accepted: list[str] = []
    with start(tmp_path / "state", runs) as server:
        with server.client() as client:
            accepted.append(client.post("/v1/jobs", json={"kind": "score", "request": long}).json()["id"])
            ended = client.post("/v1/jobs", json={"kind": "check", "request": {"texts": TEXTS}}).json()["id"]
            accepted.append(ended)
        submitting = threading.Thread(target=_submit, args=(server, accepted))
        submitting.start()
        while len(accepted) < 10:
            time.sleep(0.01)
        server.kill()
        submitting.join()
    assert len(accepted) >= 10
    with start(tmp_path / "state", runs) as server, server.client() as client:
        for job in accepted:
            assert wait_for_job(client, job, 300)["state"] == "done"
            assert client.get(f"/v1/jobs/{job}/result").status_code == 200
        assert client.get(f"/v1/jobs/{accepted[0]}/result").json()["captions"] == 600


def _submit(server: Any, accepted: list[str]) -> None:
    """Submit jobs until the server is gone; what was answered with 202 counts as accepted."""
    with server.client() as client:
        try:
            for _ in range(60):
                answer = client.post("/v1/jobs", json={"kind": "check", "request": {"texts": ["a cat"]}})
                if answer.status_code == 202:
                    accepted.append(answer.json()["id"])
        except httpx.HTTPError:
            return


def test_a_job_that_keeps_killing_the_server_is_given_up(tmp_path: Path) -> None:
    from caplens.server.jobs import MOST_STARTS, Jobs
    from caplens.server.settings import Settings

    settings = Settings(state=tmp_path)
    job = Jobs(settings).submit("check", {"texts": ["a cat"]})["id"]
    for _ in range(MOST_STARTS):
        jobs = Jobs(settings)  # started, and gone while it ran
        assert jobs._take() is not None
    found = Jobs(settings).get(job)
    assert found is not None
    assert (found["state"], found["error"]) == ("failed", "the server ended while it ran, three times")


def test_ratings_survive(tmp_path: Path, runs: Path) -> None:
    acknowledged: list[tuple[str, int, int]] = []
    with start(tmp_path / "state", runs) as server:
        with server.client() as client:
            run = next(entry["id"] for entry in client.get("/v1/runs").json() if entry["name"] == "plain")
            assert client.post("/v1/sessions", json={"name": "s", "runs": [run]}).status_code == 201
        raters = [threading.Thread(target=_rate, args=(server, f"rater {number}", acknowledged)) for number in range(4)]
        for thread in raters:
            thread.start()
        while len(acknowledged) < 40:
            time.sleep(0.01)
        server.kill()
        for thread in raters:
            thread.join()
    known = set(acknowledged)
    with start(tmp_path / "state", runs) as server, server.client() as client:
        session = client.get("/v1/sessions/s").json()
        assert session["judgments"] == len({(rater, item) for rater, item, _ in _kept(server.state)})
    kept = set(_kept(tmp_path / "state"))
    assert known <= kept
    assert len(kept - known) <= len(raters)  # written, and killed before it was acknowledged


def _rate(server: Any, rater: str, acknowledged: list[tuple[str, int, int]]) -> None:
    """Rate and rate again until the server is gone."""
    with server.client() as client:
        try:
            for number in range(10_000):
                item, value = number % 12, 1 + number % 5
                body = {"rater": f"{rater}, {number // 12}", "item": item, "value": value}
                if client.post("/v1/sessions/s/ratings", json=body).status_code == 200:
                    acknowledged.append((body["rater"], item, value))  # type: ignore[arg-type]
        except httpx.HTTPError:
            return


def _kept(state: Path) -> list[tuple[str, int, int]]:
    lines = (state / "ratings" / "s" / "judgments.jsonl").read_text("utf-8").splitlines()
    return [(said["rater"], said["item"], said["value"]) for said in map(json.loads, lines)]


def test_a_job_ends_with_its_server(tmp_path: Path, runs: Path) -> None:
    """No process is left behind by a kill: the child reads the end of its input."""
    psutil = pytest.importorskip("psutil")
    long = {"candidates": TEXTS * 2000, "references": [TEXTS] * 4000, "metrics": ["spice"]}
    with start(tmp_path / "state", runs) as server:
        with server.client() as client:
            client.post("/v1/jobs", json={"kind": "score", "request": long})
            children: list[Any] = []
            while not children:
                children = psutil.Process(server.process.pid).children(recursive=True)
        server.kill()
        gone, alive = psutil.wait_procs(children, timeout=30)
        assert not alive
        assert gone
