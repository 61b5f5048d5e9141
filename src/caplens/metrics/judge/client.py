"""Asks an OpenAI-compatible server: with a budget, again where it is busy, and never twice for the same.

The key is read from the environment when a request is sent. It is in no option, signature, message or file.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, NoReturn
from urllib.parse import urlsplit

from caplens.core.errors import InputError, MissingData
from caplens.core.optional import require
from caplens.metrics.judge.answers import Token
from caplens.storage.cache import EntryCache, key_of
from caplens.storage.paths import cache_folder

KEY_VARIABLE = "CAPLENS_JUDGE_KEY"
BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Answers that may be another one a moment later."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds; every wait is twice the one before, unless the server says how long."""
HOPELESS = 5
"""So many refusals without a single answer end the run."""
MOST_BYTES = 8 * 1024 * 1024
"""Of an answer."""
OPTIONAL_FIELDS = {"response_format": ("response_format",), "logprobs": ("logprobs", "top_logprobs"), "seed": ("seed",)}
"""What some servers do not know, with the fields to leave out then."""
CHARACTERS_PER_TOKEN = 4  # of English text, about; for the estimate only


class NoAnswer(Exception):
    """One request came to nothing; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What the server said; the tokens where it tells their probabilities."""

    text: str
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Request:
    """One question: a key that stands for all of its content, and how to write it out."""

    key: bytes
    body: Callable[[], dict[str, Any]]
    characters: int
    has_picture: bool


class AnswerCache(EntryCache[Answer]):
    """Answers by the content of their questions."""

    def __init__(self) -> None:
        super().__init__(cache_folder() / "answers.sqlite")

    def encode(self, value: Answer) -> bytes:
        tokens = [[token.text, dict(token.alternatives)] for token in value.tokens]
        return json.dumps([value.text, tokens]).encode()

    def decode(self, data: bytes) -> Answer:
        text, tokens = json.loads(data)
        return Answer(text, tuple(Token(token, alternatives) for token, alternatives in tokens))


class JudgeClient:
    """One server for one run."""

    def __init__(
        self, base_url: str, *, timeout: float, retries: int, concurrency: int, readable: Callable[[str], bool]
    ) -> None:
        self.base_url = base_url
        self.timeout, self.retries, self.concurrency = timeout, retries, concurrency
        self.readable = readable
        self.failures: dict[bytes, str] = {}
        self._left = 0
        self._answered = False
        self._refused = 0
        self._stop = threading.Event()
        self._unknown: set[str] = set()
        self._lock = threading.Lock()
        self._httpx = require("httpx", purpose="asking a language model")
        key = os.environ.get(KEY_VARIABLE, "")
        if key and not _is_private(base_url):
            raise InputError(
                "a key would be sent in the clear", where=base_url, remedy=f"use https, or unset {KEY_VARIABLE}"
            )

    def ask_all(
        self, requests: Sequence[Request], max_requests: int, progress: Callable[[int, int], None]
    ) -> dict[bytes, Answer]:
        """Return the answers, those that are kept and those that are asked for now; `failures` has the rest."""
        by_key = {request.key: request for request in requests}

        def ask_missing(keys: list[bytes]) -> Iterator[Mapping[bytes, Answer]]:
            missing = [by_key[key] for key in keys]
            check_budget(missing, len(by_key), max_requests)
            self._left = max_requests
            yield from self._ask_each(missing, progress)

        return AnswerCache().get_or_make(by_key, ask_missing)

    def _ask_each(
        self, requests: Sequence[Request], progress: Callable[[int, int], None]
    ) -> Iterator[Mapping[bytes, Answer]]:
        with self._httpx.Client(timeout=self.timeout) as http, ThreadPoolExecutor(self.concurrency) as pool:
            running = {pool.submit(self._ask, http, request): request.key for request in requests}
            try:
                for done, future in enumerate(as_completed(running), 1):
                    try:
                        yield {running[future]: future.result()}
                    except NoAnswer as error:
                        self.failures[running[future]] = str(error)
                    progress(done, len(running))
            finally:
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, http: Any, request: Request) -> Answer:
        """Ask until the answer can be read, at most twice; an answer that cannot is kept, and said to be so."""
        try:
            return self._ask_twice(http, request.body())
        except MissingData:
            self._stop.set()  # at once: the next request must not go out before the run is ended
            raise

    def _ask_twice(self, http: Any, body: dict[str, Any]) -> Answer:
        answer = self._send(http, body)
        if not self.readable(answer.text):
            again = [
                {"role": "assistant", "content": answer.text},
                {"role": "user", "content": "That cannot be read. Answer again, in the form that was asked for."},
            ]
            answer = self._send(http, {**body, "messages": [*body["messages"], *again]})
        return answer

    def _send(self, http: Any, body: dict[str, Any]) -> Answer:
        reason = ""
        for attempt in range(self.retries + 1):
            self._spend()
            wait = FIRST_WAIT * 2**attempt
            try:
                status, headers, text = self._post(http, self._known(body))
            except (self._httpx.TransportError, TimeoutError) as error:
                reason = f"no answer from the server ({_first_line(error)})"
            else:
                answer = _read_answer(text) if status == 200 else None
                if answer is not None:
                    self._answered = True
                    return answer
                reason = f"the server answers {status}: {self._message(text)}"
                if status in (400, 422) and self._leave_out(reason):
                    continue
                if status != 200 and status not in BUSY:
                    self._refuse(status, reason)
                wait = _seconds(headers.get("retry-after", "")) or wait
            if attempt < self.retries and self._stop.wait(min(wait, LONGEST_WAIT)):
                break
        if not self._answered:  # nobody is there: the other captions need not wait for the same
            raise MissingData(f"{reason}; asked {self.retries + 1} times at {self.base_url}")
        raise NoAnswer(f"{reason}; asked {self.retries + 1} times")

    def _refuse(self, status: int, reason: str) -> NoReturn:
        """Give up one request; or the run, where it is clear that no other will fare better."""
        with self._lock:
            self._refused += 1
            hopeless = not self._answered and self._refused >= HOPELESS
        if status in (401, 403, 404) or hopeless:
            raise MissingData(f"{reason} (check base_url, model, and the key in {KEY_VARIABLE})")
        raise NoAnswer(reason)

    def _post(self, http: Any, body: dict[str, Any]) -> tuple[int, Mapping[str, str], str]:
        """Status, headers and text; the time limit is for all of the answer, and so is that on its size."""
        key = os.environ.get(KEY_VARIABLE, "")
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        stop = time.monotonic() + self.timeout
        data = bytearray()
        content = json.dumps(body).encode()
        with http.stream("POST", f"{self.base_url}/chat/completions", content=content, headers=headers) as response:
            for block in response.iter_bytes():
                data += block
                if len(data) > MOST_BYTES:
                    raise NoAnswer(f"the answer is larger than {MOST_BYTES // 2**20} MB")
                if time.monotonic() > stop:
                    raise TimeoutError(f"not finished after {self.timeout:g} seconds")
            return response.status_code, response.headers, data.decode("utf-8", "replace")

    def _known(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body without what this server does not know."""
        with self._lock:
            dropped = {field for name in self._unknown for field in OPTIONAL_FIELDS[name]}
        return {name: value for name, value in body.items() if name not in dropped}

    def _leave_out(self, reason: str) -> bool:
        """Note what the server complains of, if we can do without; say whether there is something new."""
        with self._lock:
            named = {name for name in OPTIONAL_FIELDS if name in reason} - self._unknown
            self._unknown |= named
        return bool(named)

    def _spend(self) -> None:
        if self._stop.is_set():
            raise NoAnswer("the run was ended")
        with self._lock:
            if self._left <= 0:
                raise NoAnswer("the budget of requests is spent; run again, answers are kept (--max-requests)")
            self._left -= 1

    def _message(self, text: str) -> str:
        """What the server says of an error, in one short line, without the key should it repeat it."""
        try:
            content = json.loads(text)
            error = content.get("error", content) if isinstance(content, dict) else content
            said = str(error.get("message", error) if isinstance(error, dict) else error)
        except (ValueError, RecursionError):
            said = text
        key = os.environ.get(KEY_VARIABLE, "")
        said = said.replace(key, "…") if key else said
        return " ".join(said.split())[:200] or "nothing more"


def check_url(url: str) -> str:
    """Return an address without a slash at its end; one that is none, or that carries a password, is refused."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(f"base_url is {url!r:.80}", remedy="write it like http://localhost:8000/v1")
    if parts.username is not None or parts.password is not None:
        raise InputError("base_url carries a password", remedy=f"put the key into {KEY_VARIABLE} instead")
    return url.rstrip("/")


def check_budget(requests: Sequence[Request], answers: int, max_requests: int) -> None:
    """Refuse what costs more than was allowed, before anything is sent; the message is the estimate."""
    if len(requests) <= max_requests:
        return
    tokens = sum(request.characters for request in requests) // CHARACTERS_PER_TOKEN
    pictures = sum(request.has_picture for request in requests)
    shown = f" and {pictures:,} pictures" if pictures else ""
    raise InputError(
        f"this takes {len(requests):,} requests with about {tokens:,} tokens{shown} "
        f"({answers - len(requests):,} answers are kept from before), and {max_requests:,} are allowed",
        remedy=f"allow them with --max-requests {len(requests)} (max_requests=), or judge fewer captions",
    )


def answer_key(base_url: str, content: object) -> bytes:
    """Return what an answer is kept under: the server, and everything that was asked."""
    return key_of(base_url, "answer", json.dumps(content, sort_keys=True))


def _read_answer(text: str) -> Answer | None:
    """What the model said; None where this is not the answer of a chat, or half of it."""
    try:
        (choice, *_) = json.loads(text)["choices"]
        said = choice["message"]["content"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Answer(said, _read_tokens(choice)) if isinstance(said, str) else None


def _read_tokens(choice: Mapping[str, Any]) -> tuple[Token, ...]:
    """The tokens with their probabilities; nothing where the server does not tell, or not as it should."""
    try:
        entries = (choice.get("logprobs") or {}).get("content") or ()
        return tuple(
            Token(entry["token"], {other["token"]: math.exp(other["logprob"]) for other in entry["top_logprobs"]})
            for entry in entries
        )
    except (KeyError, TypeError, AttributeError, OverflowError):
        return ()


def _is_private(url: str) -> bool:
    """Whether nobody on the way can read along."""
    parts = urlsplit(url)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:  # a date, which few servers send
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:160]
