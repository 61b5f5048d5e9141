"""The models, kept loaded: one thread computes, a short queue waits, and whoever comes then is told to come back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

from caplens.server.network import refusal
from caplens.server.settings import Settings

T = TypeVar("T")
LOOK = 0.5
"""Seconds after which it is looked whether the client still waits: whoever types has asked anew by then."""


class Engine:
    """Computes what is answered at once.

    One thread: the models use all cores already, and two callers at a time would only be slower side by side.
    """

    def __init__(self, settings: Settings) -> None:
        self.limits = settings.limits
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="models")
        self.waiting = 0
        self.models: Literal["not loaded", "loading", "loaded"] = "not loaded"

    async def run(self, work: Callable[[], T], gone: Callable[[], Awaitable[bool]]) -> T:
        """Return what the work returns; a refusal if too many wait, if it takes too long, or if the client is gone."""
        if self.waiting >= self.limits.waiting:
            raise refusal(503, "the server is busy: come back in a moment", retry_after="2")
        self.waiting += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(lambda _: self._left())
        until = time.monotonic() + self.limits.answer_seconds
        while not (await asyncio.wait({future}, timeout=LOOK))[0]:
            left = await gone()
            if left or time.monotonic() > until:
                future.cancel()  # if it has not begun; what has begun is bounded by the limits on requests
                problem = "nobody waits" if left else "this took too long to be answered at once: submit it to /v1/jobs"
                raise refusal(503, problem, retry_after="30")
        return future.result()

    def prepare(self, work: Callable[[], object]) -> None:
        """Load the models before anybody asks; once."""
        if self.models == "not loaded":
            self.models = "loading"
            self._pool.submit(work).add_done_callback(self._loaded)

    def _loaded(self, _: object) -> None:
        self.models = "loaded"

    def _left(self) -> None:
        self.waiting -= 1

    def close(self) -> None:
        """Stop; what waits is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)
