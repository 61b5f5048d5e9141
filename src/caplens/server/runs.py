"""The runs below the folder that the server was started with: which there are, and their indexes."""

from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caplens.core.errors import CaplensError, InputError, as_caplens_error
from caplens.core.progress import Progress, silent
from caplens.evaluation.stored_report import compare_stored
from caplens.server.models import CompareRunsRequest
from caplens.server.run_files import Kind, kind_of, stored_report
from caplens.server.run_index import LAYOUT, RunIndex, build_index
from caplens.server.settings import Settings
from caplens.storage.paths import cache_folder

LOG = logging.getLogger("caplens.server")
DEEPEST, MOST_FILES = 4, 20_000
"""How far below the folder runs are looked for, and how many files are looked at."""
LARGE = 8 * 1024 * 1024
"""Bytes of a run from which it is read in a process of its own."""


@dataclass(frozen=True)
class Run:
    """One run: a file that `--json` wrote, or a folder of scored shards."""

    path: Path
    name: str
    """Below the folder of runs, without the suffix."""
    kind: Kind

    @property
    def id(self) -> str:
        """What addresses call it."""
        return hashlib.sha256(self.name.encode("utf-8", "surrogateescape")).hexdigest()[:12]

    def files(self) -> list[Path]:
        """Return the files that it is made of."""
        return [self.path] if self.kind != "shards" else sorted(self.path.glob("*.parquet"))

    def version(self) -> tuple[str, int, float]:
        """Return what changes when the run does, its bytes, and when it was written."""
        found = [(file.name, file.stat()) for file in self.files()]
        text = repr([(name, status.st_size, status.st_mtime_ns) for name, status in found])
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        size = sum(status.st_size for _, status in found)
        return digest, size, max((status.st_mtime for _, status in found), default=0.0)


class Catalog:
    """All runs of a server; their indexes are made in the background, or when somebody asks for one."""

    def __init__(self, settings: Settings) -> None:
        self.folder = settings.runs
        self.cache = cache_folder() / "serve"
        self._found: dict[str, Run] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._failures: dict[tuple[str, str], CaplensError] = {}
        self._summaries: dict[tuple[str, str], dict[str, Any]] = {}
        self._guard = threading.Lock()

    def start(self) -> None:
        """Begin to index what is not yet."""
        threading.Thread(target=self._index_all, name="indexing", daemon=True).start()

    def runs(self) -> list[Run]:
        """Return all runs, by name."""
        found = sorted(find_runs(self.folder), key=lambda run: run.name) if self.folder is not None else []
        self._found = {run.id: run for run in found}
        return found

    def find(self, name: str) -> Run:
        """Return the run with this id; a `KeyError` if there is none."""
        if name not in self._found or not self._found[name].path.exists():
            self.runs()
        return self._found[name]

    def list(self) -> list[dict[str, Any]]:
        """Return what is known of every run without reading it now."""
        return [self._known(run) for run in self.runs()]

    def index(self, run: Run) -> RunIndex:
        """Return the index of a run, made now if it is not there; raises what is wrong with the run."""
        version, size, _ = run.version()
        target = self._place(run, version)
        with self._guard:
            lock = self._locks.setdefault(run.id, threading.Lock())
        with lock:
            if (run.id, version) in self._failures:
                raise self._failures[run.id, version]
            if not target.exists():
                try:
                    self._build(run, target, size)
                except Exception as error:
                    self._failures[run.id, version] = as_caplens_error(error)
                    raise self._failures[run.id, version] from None
                for old in self.cache.glob(f"{run.id}-{self._where()}-*.sqlite"):
                    if old != target:
                        old.unlink(missing_ok=True)
        return RunIndex(target)

    def _build(self, run: Run, target: Path, size: int) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if size < LARGE:
            build_index(run.path, run.kind, target)
            return
        command = [sys.executable, "-P", "-m", "caplens.server.run_index", str(run.path), run.kind, str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["its process ended early"])[-1]
            raise InputError(f"cannot be read ({last[:300]})", where=run.name)

    def _where(self) -> str:
        return hashlib.sha256(str(self.folder).encode("utf-8", "surrogateescape")).hexdigest()[:8]

    def _place(self, run: Run, version: str) -> Path:
        return self.cache / f"{run.id}-{self._where()}-{version}-{LAYOUT}.sqlite"

    def _known(self, run: Run) -> dict[str, Any]:
        version, size, written = run.version()
        known: dict[str, Any] = {"id": run.id, "name": run.name, "kind": run.kind, "bytes": size, "written": written}
        if (run.id, version) in self._failures:
            return {**known, "state": "failed", "error": str(self._failures[run.id, version])}
        target = self._place(run, version)
        if not target.exists():
            return {**known, "state": "reading"}
        if (run.id, version) not in self._summaries:
            self._summaries[run.id, version] = RunIndex(target).summary()
        summary = self._summaries[run.id, version]
        metrics = [{key: value for key, value in metric.items() if key != "histogram"} for metric in summary["metrics"]]
        return {**known, "state": "ready", **summary, "metrics": metrics}

    def _index_all(self) -> None:
        for run in self.runs():
            try:
                self.index(run)
            except Exception as error:  # the list says so
                LOG.info("a run cannot be shown: %s", error)


def find_runs(folder: Path) -> Iterator[Run]:
    """Yield the runs below a folder; links are not followed out of it."""
    waiting, looked_at = [(folder, 0)], 0
    while waiting:
        current, depth = waiting.pop()
        for path in sorted(current.iterdir()) if current.is_dir() else ():
            looked_at += 1
            if looked_at > MOST_FILES or path.name.startswith("."):
                continue
            if not path.resolve().is_relative_to(folder.resolve()):
                continue
            try:
                kind = kind_of(path)
            except OSError:
                continue
            if kind is not None:
                yield Run(path, path.relative_to(folder).with_suffix("").as_posix(), kind)
            elif path.is_dir() and depth < DEEPEST:
                waiting.append((path, depth + 1))


def compare_runs(request: CompareRunsRequest, settings: Settings, progress: Progress = silent) -> dict[str, Any]:
    """Return what `caplens compare --json` would print of these runs."""
    catalog = Catalog(settings)
    reports = {}
    for number, name in enumerate(request.runs):
        progress("reading runs", number, len(request.runs))
        run = catalog.find(name)
        reports[run.name] = stored_report(run.path, run.kind)
    if len(reports) < len(request.runs):
        raise InputError("a run was named twice")
    return compare_stored(reports, progress=progress).to_dict()
