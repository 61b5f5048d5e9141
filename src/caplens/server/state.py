"""What a running server holds: models, jobs, runs, rating sessions."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from fastapi import Request
from filelock import FileLock, Timeout
from pydantic import BaseModel

from caplens.core.errors import InputError
from caplens.core.plain_json import json_text
from caplens.server.engine import Engine
from caplens.server.jobs import Jobs
from caplens.server.models import as_json
from caplens.server.ratings import Sessions
from caplens.server.run_index import RunIndex
from caplens.server.runs import Catalog, Run
from caplens.server.settings import Settings
from caplens.server.tasks import warm_up

LOG = logging.getLogger("caplens.server")


class State:
    """Everything that requests share; of servers with the same folder only one runs at a time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        settings.state.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(settings.state / ".server.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise InputError(
                "another server keeps its jobs and ratings there",
                where=str(settings.state),
                remedy="end it, or name another folder: --state DIR",
            ) from None
        self.engine = Engine(settings)
        self.jobs = Jobs(settings)
        self.catalog = Catalog(settings)
        self.sessions = Sessions(settings.state)
        self.listeners = 0
        self._indexing: dict[str, asyncio.Task[RunIndex]] = {}
        self.closing = False

    def start(self) -> None:
        """Begin with what is done in the background."""
        self.jobs.start()
        self.catalog.start()

    def prepare(self) -> None:
        """Load the models, as somebody is about to try a caption; who only looks at runs does without."""
        self.engine.prepare(partial(warm_up, self.settings))

    async def index(self, run: Run) -> RunIndex:
        """Return the index of a run; however many wait for it, one thread makes it."""
        if run.id not in self._indexing:
            task = self._indexing[run.id] = asyncio.create_task(asyncio.to_thread(self.catalog.index, run))
            task.add_done_callback(lambda _: self._indexing.pop(run.id, None))
        return await asyncio.shield(self._indexing[run.id])

    def close(self) -> None:
        """Stop everything; jobs are found again."""
        self.closing = True
        self.engine.close()
        self.jobs.close()
        self._lock.release()

    def log(self, request: Request, asked: BaseModel) -> None:
        """Log what was asked, if that was asked for; never the pictures."""
        if self.settings.log_captions:
            LOG.info("%s %s", request.url.path, json_text(_without_data(as_json(asked)))[:5000])


def _without_data(value: object) -> object:
    if isinstance(value, dict):
        return {key: "…" if key == "data" else _without_data(entry) for key, entry in value.items()}
    return [_without_data(entry) for entry in value] if isinstance(value, list) else value
