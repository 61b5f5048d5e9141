"""Long work: kept in SQLite from the moment it is accepted, run one after the other in a process of its own.

A job is queued, running, done, failed or canceled. A server that is killed finds its jobs again: those that were
running start anew. Requests are wiped as soon as a job has ended, so that nothing that was uploaded stays.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from caplens.core.errors import as_caplens_error
from caplens.core.plain_json import json_text
from caplens.server.settings import Settings
from caplens.server.worker import settings_json

LOG = logging.getLogger("caplens.server")
ENDED = ("done", "failed", "canceled")
MOST_STARTS = 3
"""A job that was running so often when the server died is given up: it may be what kills it."""
KEPT = 500
"""Ended jobs whose results are kept."""
_TABLE = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
    request TEXT, result TEXT, error TEXT, task TEXT NOT NULL DEFAULT '', done INTEGER NOT NULL DEFAULT 0,
    total INTEGER NOT NULL DEFAULT 0, starts INTEGER NOT NULL DEFAULT 0, submitted REAL NOT NULL, ended REAL
)"""
_SHOWN = "id, kind, state, error, task, done, total, submitted, ended"


class TooMany(Exception):
    """So many jobs wait already that no more are taken."""


class Jobs:
    """The jobs of one server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        settings.state.mkdir(parents=True, exist_ok=True)
        self.path = settings.state / "jobs.sqlite"
        self._wake = threading.Event()
        self._closing = False
        self._child: subprocess.Popen[str] | None = None
        self._running: str | None = None
        self._lock = threading.Lock()
        with self._open() as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute(_TABLE)
            database.execute(
                "UPDATE jobs SET state='failed', error='the server ended while it ran, three times', request=NULL, "
                "ended=? WHERE state='running' AND starts>=?",
                (time.time(), MOST_STARTS),
            )
            database.execute("UPDATE jobs SET state='queued', task='', done=0, total=0 WHERE state='running'")
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin to work through the queue."""
        self._thread.start()

    def close(self) -> None:
        """Stop; what is running is found again at the next start."""
        self._closing = True
        self._wake.set()
        with self._lock:
            if self._child is not None:
                self._child.kill()
        if self._thread.is_alive():
            self._thread.join(5)

    def submit(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        """Keep a job and return what is known of it; once this has returned, it is on disk."""
        name = secrets.token_urlsafe(12)
        with self._open() as database:
            database.execute("BEGIN IMMEDIATE")
            waiting = database.execute("SELECT count(*) FROM jobs WHERE state='queued'").fetchone()[0]
            if waiting >= self.settings.limits.jobs:
                raise TooMany
            database.execute(
                "INSERT INTO jobs (id, kind, state, request, submitted) VALUES (?, ?, 'queued', ?, ?)",
                (name, kind, json_text(request), time.time()),
            )
        self._wake.set()
        job = self.get(name)
        assert job is not None
        return job

    def get(self, name: str) -> dict[str, Any] | None:
        """Return what is known of a job, without its result."""
        with self._open() as database:
            row = database.execute(f"SELECT {_SHOWN} FROM jobs WHERE id=?", (name,)).fetchone()
        return None if row is None else dict(row)

    def list(self) -> list[dict[str, Any]]:
        """Return the latest jobs, the newest first."""
        with self._open() as database:
            rows = database.execute(f"SELECT {_SHOWN} FROM jobs ORDER BY number DESC LIMIT 100").fetchall()
        return [dict(row) for row in rows]

    def result(self, name: str) -> str | None:
        """Return the result as json, if the job is done."""
        with self._open() as database:
            row = database.execute("SELECT result FROM jobs WHERE id=?", (name,)).fetchone()
        return None if row is None else row["result"]

    def cancel(self, name: str) -> dict[str, Any] | None:
        """End a job that has not ended yet, and return what is known of it."""
        with self._open() as database:
            database.execute(
                "UPDATE jobs SET state='canceled', request=NULL, ended=? WHERE id=? AND state IN ('queued', 'running')",
                (time.time(), name),
            )
        self._tidy()
        with self._lock:
            if self._running == name and self._child is not None:
                self._child.kill()
        return self.get(name)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self.path, timeout=30)
        database.row_factory = sqlite3.Row
        database.execute("PRAGMA synchronous=FULL")  # what was acknowledged survives a power cut, too
        database.execute("PRAGMA secure_delete=ON")  # a request that was wiped is not to be found in the file
        try:
            with database:
                yield database
        finally:
            database.close()

    def _work(self) -> None:
        while not self._closing:
            try:
                job = self._take()
                if job is None:
                    self._wake.wait(1.0)
                    self._wake.clear()
                    continue
                try:
                    self._run(job)
                except Exception as error:
                    self._finish(job["id"], {"error": str(as_caplens_error(error))})
            except Exception as error:  # a full disk must not end the queue for good
                LOG.error("jobs cannot be kept: %s", as_caplens_error(error))
                time.sleep(1)

    def _take(self) -> sqlite3.Row | None:
        with self._open() as database:
            database.execute("BEGIN IMMEDIATE")
            job: sqlite3.Row | None = database.execute(
                "SELECT id, kind, request FROM jobs WHERE state='queued' ORDER BY number LIMIT 1"
            ).fetchone()
            if job is not None:
                database.execute("UPDATE jobs SET state='running', starts=starts+1 WHERE id=?", (job["id"],))
        return job

    def _run(self, job: sqlite3.Row) -> None:
        """Run a job in a child; it ends with us, as it reads the end of its input."""
        order = {"kind": job["kind"], "request": json.loads(job["request"]), "settings": settings_json(self.settings)}
        with self._lock:
            if self._closing:
                return
            self._child = child = subprocess.Popen(
                [sys.executable, "-P", "-m", "caplens.server.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                errors="replace",
            )
            self._running = job["id"]
        watchdog = threading.Timer(self.settings.limits.job_seconds, child.kill)
        watchdog.daemon = True
        watchdog.start()
        outcome: dict[str, Any] = {}
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            with suppress(BrokenPipeError):
                child.stdin.write(json.dumps(order) + "\n")
                child.stdin.flush()
            for line in child.stdout:
                said = json.loads(line)
                if "task" in said:
                    self._progress(job["id"], said)
                else:
                    outcome = said
            child.wait()
        finally:
            timed_out = not watchdog.is_alive()
            watchdog.cancel()
            with self._lock:
                self._child = self._running = None
            child.kill()
            with suppress(BrokenPipeError):
                child.stdin.close()
            child.stdout.close()
            child.wait()
        if self._closing and not outcome:
            return  # it is found as running at the next start
        if timed_out and not outcome:
            outcome = {"error": f"it took longer than {self.settings.limits.job_seconds / 3600:g} hours"}
        self._finish(job["id"], outcome or {"error": f"its process ended early ({child.returncode})"})

    def _progress(self, name: str, said: dict[str, Any]) -> None:
        with self._open() as database:
            database.execute(
                "UPDATE jobs SET task=?, done=?, total=? WHERE id=? AND state='running'",
                (said["task"], said["done"], said["total"], name),
            )

    def _finish(self, name: str, outcome: dict[str, Any]) -> None:
        state = "failed" if "error" in outcome else "done"
        result = json_text(outcome["result"]) if state == "done" else None
        with self._open() as database:  # one that was canceled meanwhile stays so
            database.execute(
                "UPDATE jobs SET state=?, result=?, error=?, request=NULL, ended=? WHERE id=? AND state='running'",
                (state, result, outcome.get("error"), time.time(), name),
            )
            database.execute(
                "DELETE FROM jobs WHERE ended IS NOT NULL AND number <= (SELECT max(number) FROM jobs) - ?", (KEPT,)
            )
        self._tidy()

    def _tidy(self) -> None:
        """Empty the journal, which still holds requests that were wiped."""
        with closing(sqlite3.connect(self.path, timeout=30)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
