"""The engine for many machines, on a real Ray: two processors, then two nodes of which one is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from caplens.core.errors import InputError
from caplens.scale.evaluate import evaluate_shards
from caplens.scale.ray_engine import RayEngine

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
STORE = 80_000_000
TASKS = 8


@pytest.fixture
def local() -> Iterator[None]:
    ray.init(num_cpus=2, object_store_memory=STORE, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_ray_writes_the_same_bytes_and_goes_on(folder: Path, tmp_path: Path, local: None) -> None:
    metrics = ["bleu-4", "cider-d"]
    evaluate_shards(folder, metrics, output=tmp_path / "local", workers=1)
    first = evaluate_shards(folder, metrics, output=tmp_path / "ray", engine="ray")
    assert first.fresh == 5
    for path in (tmp_path / "local").iterdir():
        assert (tmp_path / "ray" / path.name).read_bytes() == path.read_bytes()
    (tmp_path / "ray" / "part-003.parquet").unlink()
    assert evaluate_shards(folder, metrics, output=tmp_path / "ray", engine="ray").fresh == 1
    with pytest.raises(InputError, match="the Ray cluster has 0 GPUs and a worker wants 1"):
        list(RayEngine(gpus_per_worker=1).map(str, [1]))


@dataclass(frozen=True)
class Slow:
    """Says on which node a task ran; the second half of the tasks waits until a node has been killed."""

    killed: Path

    def __call__(self, task: int) -> tuple[int, str]:
        time.sleep(0.5)
        end = time.monotonic() + 60
        while task >= TASKS / 2 and not self.killed.exists() and time.monotonic() < end:
            time.sleep(0.1)
        return task, ray.get_runtime_context().get_node_id()


def test_a_node_that_is_killed_loses_no_task(tmp_path: Path) -> None:
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    quick = {"health_check_period_ms": 1000, "health_check_failure_threshold": 2}  # who is gone is missed soon
    head = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False, "_system_config": quick}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    try:
        first = cluster.add_node(num_cpus=2, object_store_memory=STORE)  # the head has no processor: all begins here
        ray.init(address=cluster.address, log_to_driver=False)
        done: list[tuple[int, str]] = []
        for task, node in RayEngine().map(Slow(tmp_path / "killed"), range(TASKS)):
            if not done:
                cluster.add_node(num_cpus=2, object_store_memory=STORE)
                cluster.remove_node(first, allow_graceful=False)
                (tmp_path / "killed").touch()
            done.append((task, node))
        assert sorted(task for task, _ in done) == list(range(TASKS))
        assert len({node for _, node in done}) == 2, "the work did not move to the other node"
    finally:
        ray.shutdown()
        cluster.shutdown()
