"""The engine for many machines: shards through Ray Data, one actor per worker, what it loads loaded once.

Ray starts a dead actor again, on another node if its own is gone, and gives it the shard that it had. A shard is
written whole or not at all and a finished one is left alone, so that no row is lost and none is there twice.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from caplens.core.errors import InputError
from caplens.core.optional import require

T = TypeVar("T")
R = TypeVar("R")

CPUS_PER_WORKER = 1


class _Actor:
    """A worker of Ray: the work, unpickled once."""

    def __init__(self, work: bytes) -> None:
        self._work = pickle.loads(work)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        return {"result": [pickle.dumps(self._work(pickle.loads(task))) for task in batch["task"]]}


@dataclass(frozen=True)
class RayEngine:
    """Ray Data: on the cluster this process belongs to (RAY_ADDRESS, `ray job submit`), else on this machine."""

    workers: int | None = None
    gpus_per_worker: float = 0

    def start(self, most: int) -> AbstractContextManager[RayEngine]:
        """Return itself: every map has actors of its own, which Ray starts and ends as there is work."""
        return nullcontext(self)

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Yield what becomes of every task."""
        ray = require("ray", purpose="--engine ray")
        data = require("ray.data", purpose="--engine ray")
        logging.getLogger("ray.data").setLevel(logging.WARNING)  # the run has a progress bar of its own
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level="warning")
        data.DataContext.get_current().enable_progress_bars = False
        shards = data.from_items(
            [{"task": pickle.dumps(task)} for task in tasks], override_num_blocks=max(1, len(tasks))
        )
        most = min(self.workers or self._room(ray), len(tasks))
        results = shards.map_batches(
            _Actor,
            fn_constructor_args=(pickle.dumps(work),),
            batch_size=1,
            compute=data.ActorPoolStrategy(min_size=1, max_size=most),
            num_cpus=CPUS_PER_WORKER,
            num_gpus=self.gpus_per_worker or None,
        )
        for row in results.iter_rows():
            yield pickle.loads(row["result"])

    def _room(self, ray: Any) -> int:
        """How many workers there is room for: one processor stays free, or Ray's own tasks would wait for ever."""
        resources = ray.cluster_resources()
        room = int(resources.get("CPU", 1)) - 1
        if self.gpus_per_worker:
            gpus = resources.get("GPU", 0)
            if gpus < self.gpus_per_worker:
                raise InputError(
                    f"the Ray cluster has {gpus:g} GPUs and a worker wants {self.gpus_per_worker:g}",
                    remedy="lower --gpus-per-worker, or add nodes with GPUs",
                )
            room = min(room, int(gpus / self.gpus_per_worker))
        return max(1, room)
