"""The models, kept loaded: one thread computes, a short queue waits, and whoever comes then is told to come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from caplens.server.network import refusal
from caplens.server.settings import Settings

T = TypeVar("T")


class Engine:
    """Computes what is answered at once.

    One thread: the models use all cores already, and two callers at a time would only be slower side by side.
    """

    def __init__(self, settings: Settings) -> None:
        self.limits = settings.limits
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="models")
        self.waiting = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Return what the work returns; a refusal if too many wait, or if it takes too long."""
        if self.waiting >= self.limits.waiting:
            raise refusal(503, "the server is busy: come back in a moment", retry_after="2")
        self.waiting += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(lambda _: self._left())
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.limits.answer_seconds)
        except TimeoutError:
            future.cancel()  # if it has not begun; what has begun is bounded by the limits on requests
            raise refusal(
                503, "this took too long to be answered at once: submit it to /v1/jobs", retry_after="30"
            ) from None

    def prepare(self, work: Callable[[], object]) -> None:
        """Do something before anybody asks."""
        self._pool.submit(work)

    def _left(self) -> None:
        self.waiting -= 1

    def close(self) -> None:
        """Stop; what waits is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)
