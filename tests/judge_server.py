"""A server that speaks as OpenAI's does and says what a test wants, faults included."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import ThreadingHTTPServer
from typing import Any

from tests.serving import Handler, serve

Distribution = dict[str, float]


@dataclass
class Reply:
    """One answer of the server."""

    text: str = '{"score": 50, "reason": "so so"}'
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    tokens: Sequence[tuple[str, Distribution]] | None = None
    """Tokens of the text with the probabilities of what could have stood there."""
    raw: bytes | None = None
    """The whole answer, instead of a chat's."""
    delay: float = 0.0
    cut: bool = False
    """Whether the connection breaks in the middle."""

    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.status != 200:
            return json.dumps({"error": {"message": self.text}}).encode()
        choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": self.text}}
        if self.tokens is not None:
            choice["logprobs"] = {
                "content": [
                    {
                        "token": token,
                        "logprob": math.log(others.get(token, 1.0)),
                        "top_logprobs": [{"token": one, "logprob": math.log(p)} for one, p in others.items()],
                    }
                    for token, others in self.tokens
                ]
            }
        return json.dumps({"object": "chat.completion", "choices": [choice]}).encode()


@dataclass
class JudgeServer:
    """What was asked, and what is answered: the replies in their order, the last one for ever after."""

    address: str = ""
    replies: list[Reply] = field(default_factory=list)
    answer: Callable[[dict[str, Any]], Reply] | None = None
    """Or a function of the request."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    at_once: int = 0
    _busy: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def options(self) -> dict[str, Any]:
        """What a metric has to know."""
        return {"model": "toy", "base_url": f"{self.address}/v1"}

    def reply(self, body: dict[str, Any], key: str | None) -> Reply:
        with self._lock:
            self.bodies.append(body)
            self.keys.append(key)
            if self.answer is not None:
                return self.answer(body)
            return self.replies.pop(0) if len(self.replies) > 1 else (self.replies or [Reply()])[0]

    def handler(self) -> type[Handler]:
        judge = self

        class Chat(Handler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with judge._lock:
                    judge._busy += 1
                    judge.at_once = max(judge.at_once, judge._busy)
                reply = judge.reply(body, self.headers.get("authorization"))
                time.sleep(reply.delay)
                with judge._lock:
                    judge._busy -= 1
                content = reply.content()
                self.send_response(reply.status if self.path == "/v1/chat/completions" else 404)
                for name, value in {**reply.headers, "content-length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if reply.cut else content)
                self.close_connection = True

        return Chat


@contextmanager
def judge_server() -> Iterator[JudgeServer]:
    """A server for one test."""
    judge = JudgeServer()
    with serve(judge.handler()) as address:
        judge.address = address
        yield judge


def by_content(body: dict[str, Any]) -> Reply:
    """A judge that gives equal scores to equal questions: 0 to 99, or 0.00 to 0.99 where it is asked so."""
    asked = json.dumps(body["messages"])
    number = int(hashlib.sha256(asked.encode()).hexdigest(), 16) % 100
    score = f"0.{number:02d}" if "from 0.0 to 1.0" in asked else str(number)
    return Reply(f'{{"score": {score}, "reason": "by content"}}')


@cache
def fair_judge() -> JudgeServer:
    """One server for all tests of a process that only want some judge."""
    judge = JudgeServer(answer=by_content)
    listening = ThreadingHTTPServer(("127.0.0.1", 0), judge.handler())
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    judge.address = f"http://127.0.0.1:{listening.server_port}"
    return judge
