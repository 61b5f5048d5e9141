"""What the API answers: the same as `--json`, within its limits; jobs from the queue to their result."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.schemas import check_output
from tests.server.conftest import IMAGES, NAMES, REFERENCES, SYSTEMS, Running, wait_for_job

from caplens.evaluation.compare import compare
from caplens.evaluation.evaluate import evaluate
from caplens.evaluation.explain import explain
from caplens.server import tasks
from caplens.server.models import TryRequest
from caplens.server.settings import Settings


def picture(name: str = "cat") -> dict[str, str]:
    return {"data": base64.b64encode((IMAGES / f"{name}.jpg").read_bytes()).decode(), "name": name}


def skip_without_weights(answer: Any) -> None:
    if answer.status_code == 422 and "needs" in answer.json()["error"]:
        pytest.skip(answer.json()["error"])


def test_scores_are_those_of_the_library(client: Any) -> None:
    captions, references = list(SYSTEMS["wordy"].values()), [REFERENCES[name] for name in NAMES]
    asked = {"candidates": captions, "references": references, "ids": NAMES, "metrics": ["bleu-4", "rouge-l"]}
    answer = check_output("score", client.post("/v1/score", json=asked).text)
    expected = evaluate(captions, references, ids=NAMES, metrics=["bleu-4", "rouge-l"]).to_dict()
    assert answer == json.loads(json.dumps(expected))


def test_an_explanation_by_references(client: Any) -> None:
    answer = client.post("/v1/explain", json={"caption": "a cat on a mat", "references": ["a dog on a mat"]})
    found = check_output("explain", answer.text)
    expected = explain("a cat on a mat", references=["a dog on a mat"]).to_dict()
    assert found == json.loads(json.dumps(expected))


def test_an_explanation_by_a_picture(client: Any) -> None:
    for image in (picture(), {"path": "cat.jpg"}):
        answer = client.post("/v1/explain", json={"caption": "a close up of a cat", "image": image})
        skip_without_weights(answer)
        found = check_output("explain", answer.text)
        expected = explain("a close up of a cat", IMAGES / "cat.jpg").to_dict()
        assert found["explanations"] == json.loads(json.dumps(expected))["explanations"]


def test_verdicts(client: Any) -> None:
    found = check_output("check", client.post("/v1/check", json={"texts": ["a cat", "IMG_2041.jpg"]}).text)
    assert [row["verdict"] for row in found["rows"]] == ["fine", "wrong"]


def test_systems_are_compared(client: Any) -> None:
    systems = {name: list(captions.values()) for name, captions in SYSTEMS.items()}
    references = [REFERENCES[name] for name in NAMES]
    asked = {"systems": systems, "references": references, "metrics": ["rouge-l"], "resamples": 50}
    found = check_output("compare", client.post("/v1/compare", json=asked).text)
    expected = compare(systems, references, metrics=["rouge-l"], resamples=50).to_dict()
    assert found == json.loads(json.dumps(expected))


def test_metrics_and_limits_are_listed(client: Any) -> None:
    assert "cider-d" in {entry["name"] for entry in check_output("metrics", client.get("/v1/metrics").text)}
    assert client.get("/v1/limits").json()["captions"] == 64


def test_trying_says_everything_at_once(client: Any) -> None:
    asked = {"captions": ["a close up of a cat", "a red bus"], "image": picture(), "references": ["a cat looks up"]}
    answer = client.post("/v1/try", json=asked)
    skip_without_weights(answer)
    found = answer.json()
    check_output("score", json.dumps(found["scores"]))
    check_output("check", json.dumps(found["check"]))
    for explanation in found["explanations"]:
        check_output("explain", json.dumps(explanation))
        assert [*explanation["explanations"]] == ["picture", "references"]
    assert found["better"]["votes"]["rouge-l"] == 0
    assert found["better"]["votes"]["infometic"] == 0
    for shares in found["standing"].values():
        assert all(share is None or 0 <= share <= 1 for share in shares)
    alone = explain("a red bus", IMAGES / "cat.jpg").to_dict()
    tried = found["explanations"][1]["explanations"]["picture"]
    assert tried["words"] == json.loads(json.dumps(alone))["explanations"]["picture"]["words"]


def test_a_video_is_tried(client: Any, tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    with av.open(tmp_path / "clip.mp4", "w") as container:
        stream = container.add_stream("mpeg4", rate=4)
        stream.width = stream.height = 64
        for level in (0, 80, 160, 240):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((64, 64, 3), level, np.uint8))))
        container.mux(stream.encode())
    video = {"data": base64.b64encode((tmp_path / "clip.mp4").read_bytes()).decode()}
    answer = client.post("/v1/try", json={"captions": ["a gray wall"], "video": video})
    skip_without_weights(answer)
    found = answer.json()
    assert found["frame"].startswith("data:image/jpeg;base64,")
    assert "the frame in the middle" in found["notes"][0]
    assert {"em-score", "pac-s"} <= {*found["scores"]["metrics"], *found["scores"]["errors"]}


@pytest.mark.parametrize(
    ("path", "asked", "status", "problem"),
    [
        ("explain", {"caption": "a cat"}, 422, "there is nothing to compare the caption with"),
        ("explain", {"caption": "a" * 5001, "references": ["a"]}, 422, "at most 5000 characters"),
        ("explain", {"caption": "a", "references": ["a"] * 101}, 422, "references: List should have at most 100"),
        ("explain", {"caption": "a", "colour": "red"}, 422, "colour: Extra inputs"),
        ("explain", {"caption": "a", "image": {"data": "§"}}, 422, "is not base64"),
        ("explain", {"caption": "a", "image": {"data": "AAAA"}}, 422, "the picture: is damaged"),
        ("explain", {"caption": "a", "image": {"data": "A" * 400}}, 422, "is not a picture in a known format"),
        ("explain", {"caption": "a", "image": {}}, 422, "give one of data, path and url"),
        ("score", {"candidates": ["a"] * 65, "references": [["a"]] * 65}, 413, "submit them to /v1/jobs"),
        ("score", {"candidates": ["a"], "metrics": ["./evil.py:Evil"]}, 422, "metrics[0]: String should match"),
        (
            "score",
            {"candidates": ["a"], "metrics": ["judge"], "references": [["a"]]},
            422,
            "not computed by this server",
        ),
        ("score", {"candidates": ["a"], "metrics": ["rouge-l"]}, 422, "rouge-l compares with references"),
        ("score", {"candidates": ["a", "b"], "references": [["a"]], "metrics": ["rouge-l"]}, 422, "1 references for 2"),
        ("compare", {"systems": {"one": ["a"]}}, 422, "systems: Dictionary should have at least 2"),
        ("try", {"captions": ["a"]}, 422, "there is nothing to compare the caption with"),
        ("try", {"captions": ["a"], "image": {"path": "x"}, "video": {"path": "x"}}, 422, "one of the two"),
    ],
)
def test_what_cannot_be_answered_is_said(client: Any, path: str, asked: Any, status: int, problem: str) -> None:
    answer = client.post(f"/v1/{path}", json=asked)
    assert (answer.status_code, problem in answer.json()["error"]) == (status, True), answer.text


def test_a_picture_of_too_many_pixels_is_not_decoded(client: Any) -> None:
    stored = io.BytesIO()
    Image.new("1", (10_000, 5_001)).save(stored, "PNG")  # a few kilobytes
    data = base64.b64encode(stored.getvalue()).decode()
    answer = client.post("/v1/explain", json={"caption": "a wall", "image": {"data": data}})
    assert answer.status_code == 422
    assert "has 50,010,000 pixels; send one of at most 50,000,000" in answer.json()["error"]


def test_broken_json_and_unknown_paths(client: Any) -> None:
    kind = {"content-type": "application/json"}
    assert client.post("/v1/explain", content=b"{", headers=kind).status_code == 400
    assert client.post("/v1/explain", content=b'"\xff"', headers=kind).status_code == 400
    assert client.get("/v1/nowhere").json() == {"error": "Not Found"}
    assert client.get("/v1/runs/000000000000").status_code == 404
    assert client.get("/v1/jobs/aaaaaaaaaaaaaaaa").status_code == 404


def test_a_job_is_followed_to_its_result(client: Any) -> None:
    captions, references = list(SYSTEMS["plain"].values()), [REFERENCES[name] for name in NAMES]
    asked = {"candidates": captions, "references": references, "metrics": ["rouge-l", "bleu-1"]}
    answer = client.post("/v1/jobs", json={"kind": "score", "request": asked})
    assert answer.status_code == 202
    job = answer.json()["id"]
    events: list[tuple[str, dict[str, Any]]] = []
    with client.stream("GET", f"/v1/jobs/{job}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        kind = ""
        for line in stream.iter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                events.append((kind, json.loads(value)))
    assert [kind for kind, _ in events][-1] == "end"
    assert events[-1][1]["state"] == "done"
    assert {event["state"] for _, event in events} <= {"queued", "running", "done"}
    found = check_output("score", client.get(f"/v1/jobs/{job}/result").text)
    expected = evaluate(captions, references, metrics=["rouge-l", "bleu-1"]).to_dict()
    assert found["metrics"] == json.loads(json.dumps(expected))["metrics"]
    assert job in {entry["id"] for entry in client.get("/v1/jobs").json()}


def test_a_job_that_fails_says_why(client: Any) -> None:
    asked = {"kind": "score", "request": {"candidates": ["a cat"], "metrics": ["rouge-l"]}}
    job = client.post("/v1/jobs", json=asked).json()["id"]
    ended = wait_for_job(client, job)
    assert ended["state"] == "failed"
    assert "rouge-l compares with references" in str(ended["error"])
    answer = client.get(f"/v1/jobs/{job}/result")
    assert answer.status_code == 404
    assert "the job is failed: rouge-l compares" in answer.json()["error"]


def test_nothing_of_a_request_stays_when_its_job_has_ended(client: Any, server: Running) -> None:
    asked = {"kind": "score", "request": {"candidates": ["an unmistakable quokka"], "metrics": ["rouge-l"]}}
    wait_for_job(client, client.post("/v1/jobs", json=asked).json()["id"])
    files = [path for path in server.state.rglob("*") if path.is_file()]
    assert any(path.name == "jobs.sqlite" for path in files)
    assert not [path for path in files if b"quokka" in path.read_bytes()]


def test_jobs_are_canceled_waiting_or_running(client: Any) -> None:
    long = {"candidates": ["a cat sat on a mat"] * 20_000, "references": [["a cat on a mat"] * 5] * 20_000}
    asked = {"kind": "score", "request": {**long, "metrics": ["spice", "meteor"]}}
    running, waiting = (client.post("/v1/jobs", json=asked).json()["id"] for _ in range(2))
    assert client.delete(f"/v1/jobs/{waiting}").json()["state"] == "canceled"
    assert client.delete(f"/v1/jobs/{running}").json()["state"] == "canceled"
    quick = {"kind": "check", "request": {"texts": ["a cat"]}}
    after = client.post("/v1/jobs", json=quick).json()["id"]
    assert wait_for_job(client, after)["state"] == "done"  # the queue goes on
    assert client.get(f"/v1/jobs/{running}").json()["state"] == "canceled"
    assert client.delete(f"/v1/jobs/{after}").json()["state"] == "done"  # what has ended stays as it is


def test_runs_are_compared_as_a_job(client: Any) -> None:
    ids = {entry["name"]: entry["id"] for entry in client.get("/v1/runs").json()}
    asked = {"kind": "compare-runs", "request": {"runs": [ids["plain"], ids["wordy"]]}}
    job = client.post("/v1/jobs", json=asked).json()["id"]
    assert wait_for_job(client, job)["state"] == "done"
    found = check_output("compare", client.get(f"/v1/jobs/{job}/result").text)
    assert found["systems"] == ["plain", "wordy"]
    assert found["metrics"]["length"]["systems"][1]["difference"]["verdict"] == "better"
    wrong = {"kind": "compare-runs", "request": {"runs": [ids["plain"], ids["verdicts"]]}}
    job = client.post("/v1/jobs", json=wrong).json()["id"]
    assert "verdicts are not compared" in str(wait_for_job(client, job)["error"])


def test_every_warm_up_is_new_to_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[TryRequest] = []
    monkeypatch.setattr(tasks, "try_captions", lambda request, settings: asked.append(request))
    for _ in range(2):
        tasks.warm_up(Settings())
    first, second = asked
    assert first.image != second.image
    assert not {*first.captions, *first.references} & {*second.captions, *second.references}
