"""The client against a scripted server: busy, broken, slow, cut, dear; and what it never tells."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.judge_server import JudgeServer, Reply, by_content, judge_server

import caplens
from caplens.core.errors import CaplensError, InputError, MissingData
from caplens.metrics.base import Result
from caplens.metrics.judge import client
from caplens.metrics.judge.client import KEY_VARIABLE, check_url

pytest.importorskip("httpx")

CAPTIONS = ["a dog runs", "a cat sleeps", "two people talk"]
REFERENCES = [["a running dog"], ["a sleeping cat", "cat"], ["people talking"]]
KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as judge:
        yield judge


def clair(server: JudgeServer, rows: int = 3, **options: Any) -> Result:
    report = caplens.evaluate(
        CAPTIONS[:rows], REFERENCES[:rows], metrics=["clair"], **{**server.options, "concurrency": 1, **options}
    )
    return report["clair"]


def test_a_second_run_sends_nothing(server: JudgeServer) -> None:
    server.answer = by_content
    first = clair(server)
    assert len(server.bodies) == 3
    second = clair(server)
    assert len(server.bodies) == 3
    np.testing.assert_array_equal(second.scores, first.scores)
    assert second.signature == first.signature
    clair(server, temperature=0.5)
    assert len(server.bodies) == 6  # another question


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(server: JudgeServer, status: int) -> None:
    server.replies = [Reply("busy", status), Reply("busy", status, {"retry-after": "0.02"}), Reply()]
    assert clair(server, 1).scores.tolist() == [0.5]
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    "fault",
    [Reply(cut=True), Reply(raw=b'{"choices": [{"mess'), Reply(raw=b"[]"), Reply(raw=b"<html>bad gateway</html>")],
    ids=["connection", "json", "other json", "page"],
)
def test_half_an_answer_is_asked_for_again(server: JudgeServer, fault: Reply) -> None:
    server.replies = [fault, Reply()]
    assert clair(server, 1).scores.tolist() == [0.5]
    assert len(server.bodies) == 2


def test_what_a_broken_server_costs_is_one_caption(server: JudgeServer) -> None:
    server.replies = [Reply(), Reply("broken", 500), Reply("broken", 500), Reply()]
    result = clair(server, retries=1)
    assert np.isnan(result.scores).tolist() == [False, True, False]
    assert "500: broken; asked 2 times" in result.failures[1]
    server.replies = [Reply()]
    assert not np.isnan(clair(server).scores).any()
    assert len(server.bodies) == 5  # the one that was missing


def test_a_slow_server_is_not_waited_for(server: JudgeServer) -> None:
    server.replies = [Reply(delay=1.0), Reply()]
    assert clair(server, 1, timeout=0.2).scores.tolist() == [0.5]


def test_a_server_that_is_not_there_is_said_once(server: JudgeServer) -> None:
    with pytest.raises(MissingData, match=r"no answer from the server.*asked 2 times at http://127\.0\.0\.1:9/v1"):
        clair(server, base_url="http://127.0.0.1:9/v1", retries=1)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_ends_the_run_at_once(server: JudgeServer, status: int) -> None:
    server.replies = [Reply("no such thing", status)]
    with pytest.raises(MissingData, match=f"{status}: no such thing.*{KEY_VARIABLE}"):
        clair(server)
    assert len(server.bodies) == 1


def test_a_caption_that_the_server_refuses_costs_itself_alone(server: JudgeServer) -> None:
    server.replies = [Reply("too long", 400), Reply()]
    result = clair(server)
    assert np.isnan(result.scores).tolist() == [True, False, False]
    assert "400: too long" in result.failures[0]
    assert len(server.bodies) == 3


def test_a_server_that_refuses_everything_ends_the_run(server: JudgeServer) -> None:
    server.replies = [Reply("cannot do that", 400)]
    texts = [f"caption {number}" for number in range(30)]
    with pytest.raises(MissingData, match="400: cannot do that"):
        caplens.evaluate(texts, [["x"]] * 30, metrics=["clair"], **server.options, concurrency=1)
    assert len(server.bodies) < 10


def test_what_a_server_does_not_know_is_left_out(server: JudgeServer) -> None:
    def picky(body: dict[str, Any]) -> Reply:
        for name in ("response_format", "logprobs"):
            if name in body:
                return Reply(f"unknown field {name}", 400)
        return Reply()

    server.answer = picky
    with pytest.warns(match="not smoothed"):
        result = clair(server, smoothing=True)
    assert result.scores.tolist() == [0.5] * 3
    assert len(server.bodies) == 5  # two complaints, then it is known


def test_json_mode_is_asked_for_and_an_answer_in_words_is_asked_for_again(server: JudgeServer) -> None:
    server.replies = [Reply("It is a very nice caption!"), Reply('{"score": 90, "reason": "nice"}')]
    assert clair(server, 1).scores.tolist() == [0.9]
    first, second = server.bodies
    assert first["response_format"] == {"type": "json_object"}
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]


def test_an_answer_that_cannot_be_read_twice_is_a_failure_that_shows_it(server: JudgeServer) -> None:
    server.replies = [Reply("no"), Reply("never"), Reply()]
    result = clair(server, 2)
    assert "no score from 0 to 100: 'never'" in result.failures[0]
    assert result.scores[1] == 0.5
    clair(server, 2)
    assert len(server.bodies) == 3  # it is kept all the same


def test_a_run_beyond_the_budget_is_refused_before_it_begins_with_what_it_takes(server: JudgeServer) -> None:
    with pytest.raises(InputError, match=r"3 requests with about \d+ tokens \(0 answers are kept.*--max-requests 3"):
        clair(server, max_requests=2)
    assert server.bodies == []
    clair(server, 1)
    with pytest.raises(InputError, match=r"2 requests .*\(1 answers are kept"):
        clair(server, max_requests=1)


def test_asking_again_counts_too(server: JudgeServer) -> None:
    server.replies = [Reply(), Reply("busy", 429), Reply()]
    result = clair(server, max_requests=3)
    assert len(server.bodies) == 3
    assert np.isnan(result.scores).tolist() == [False, False, True]
    assert "budget of requests is spent" in result.failures[2]


def test_no_more_at_a_time_than_allowed(server: JudgeServer) -> None:
    server.replies = [Reply(delay=0.05)]
    texts = [f"caption {number}" for number in range(8)]
    caplens.evaluate(texts, [["x"]] * 8, metrics=["clair"], **server.options, concurrency=3)
    assert 1 < server.at_once <= 3


def test_equal_questions_are_asked_once(server: JudgeServer) -> None:
    caplens.evaluate(["a dog"] * 5, [["x"]] * 5, metrics=["clair"], **server.options)
    assert len(server.bodies) == 1


def test_the_key_goes_to_the_server_and_nowhere_else(
    server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    caplog.set_level(logging.DEBUG)
    server.replies = [Reply(), Reply(f"your key {KEY} is over its limit", 400), Reply()]
    report = caplens.evaluate(CAPTIONS, REFERENCES, metrics=["clair"], **server.options, concurrency=1)
    assert server.keys == [f"Bearer {KEY}"] * 3
    report.to_json(tmp_path / "report.json")
    report.to_html(tmp_path / "report.html")
    assert "your key … is over its limit" in report["clair"].failures[1]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".sqlite" for path in files)
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []
    assert KEY not in caplog.text
    assert KEY not in repr(report["clair"].metric.identity())
    server.replies = [Reply(f"bad key {KEY}", 401)]
    with pytest.raises(MissingData) as refused:
        clair(server, temperature=1)
    assert KEY not in str(refused.value)


def test_a_key_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch, server: JudgeServer) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with pytest.raises(InputError, match="in the clear"):
        clair(server, base_url="http://judge.example/v1")
    assert server.bodies == []


@pytest.mark.parametrize(
    "url",
    ["localhost:8000", "ftp://host/v1", "http://", "http://user:word@host/v1", "http://host/v1?key=1", "file:///x"],
)
def test_an_address_that_is_none_or_that_holds_a_password_is_refused(url: str) -> None:
    with pytest.raises(InputError):
        check_url(url)


def test_a_damaged_cache_of_answers_is_asked_for_anew(server: JudgeServer, tmp_path: Path) -> None:
    clair(server)
    (path,) = tmp_path.rglob("answers.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET value = ?", (json.dumps(['{"score": 1}', []]).encode(),))
    with pytest.warns(match="damaged"):
        assert clair(server).scores.tolist() == [0.5] * 3


def test_an_endless_answer_is_not_read_to_its_end(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 1000)
    server.replies = [Reply("x" * 5000), Reply()]
    result = clair(server, 2)
    assert "larger than" in result.failures[0]
    assert result.scores[1] == 0.5


def test_without_a_model_it_says_what_to_name() -> None:
    with pytest.raises(CaplensError, match="-o model=NAME -o base_url="):
        caplens.evaluate(["a"], [["b"]], metrics=["clair"])
