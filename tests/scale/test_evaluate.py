"""Scores of shards: those of the whole file, resumed after any end, and nothing lost when something is wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.scale.conftest import make_rows, write_lines, write_shards

import caplens
from caplens.core.errors import InputError
from caplens.metrics import load_metric
from caplens.scale.engines import LocalEngine, WorkerDied
from caplens.scale.evaluate import evaluate_shards
from caplens.scale.results import ShardReport
from caplens.scale.shards import Shard

METRICS = ["bleu", "rouge-l", "cider-d", "cider-r", "length"]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.mark.parametrize("workers", [1, 2])
def test_shards_score_as_the_whole_file_does(whole: Path, folder: Path, tmp_path: Path, workers: int) -> None:
    alone = caplens.evaluate(caplens.read(whole), metrics=METRICS)
    report = evaluate_shards(folder, METRICS, output=tmp_path / "out", workers=workers)
    assert list(report.totals) == [result.name for result in alone]
    for result in alone:
        total = report[result.name]
        assert total.score == result.score  # to the last bit
        assert total.signature == result.signature
        assert np.concatenate(list(report.scores(result.name))).tobytes() == result.scores.tobytes()
        assert report.intervals[result.name] == pytest.approx(alone.intervals()[result.name], abs=1e-12)
    assert [name for shard in report.shards for name in shard.texts("id")] == alone.captions.ids


def test_a_second_run_computes_nothing_and_the_folder_is_enough_for_a_report(folder: Path, tmp_path: Path) -> None:
    first = evaluate_shards(folder, METRICS, output=tmp_path / "out", workers=1)
    before = content(tmp_path / "out")
    again = evaluate_shards(folder, METRICS, output=tmp_path / "out", workers=1)
    assert (first.fresh, again.fresh) == (5, 0)
    assert content(tmp_path / "out") == before
    stored = ShardReport.open(tmp_path / "out")
    assert {name: total.score for name, total in stored.totals.items()} == {
        name: total.score for name, total in first.totals.items()
    }
    stored.to_json(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["captions"] == 120


def test_a_shard_that_changed_is_scored_again(folder: Path, tmp_path: Path) -> None:
    evaluate_shards(folder, ["rouge-l"], output=tmp_path / "out", workers=1)
    write_lines(folder / "part-001.jsonl", make_rows(7, seed=1))
    report = evaluate_shards(folder, ["rouge-l"], output=tmp_path / "out", workers=1)
    assert (report.fresh, len(report)) == (1, 120 - 24 + 7)


def test_killed_at_any_moment_and_resumed_gives_the_same_bytes(tmp_path: Path) -> None:
    data = write_shards(tmp_path / "data", make_rows(3000), 6)
    evaluate_shards(data, ["rouge-l", "cider-d"], output=tmp_path / "straight", workers=2)
    expected = content(tmp_path / "straight")
    command = [sys.executable, "-m", "caplens", "score", str(data), "-m", "rouge-l,cider-d"]
    command += ["--output", str(tmp_path / "out"), "--workers", "2"]
    for moment in (0.9, 1.6, 2.3):
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            run.wait(moment)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found = {name: data for name, data in content(tmp_path / "out").items() if not name.endswith(".part")}
    assert found == expected


def test_output_of_another_run_is_named_and_stays(folder: Path, tmp_path: Path) -> None:
    evaluate_shards(folder, ["cider-r"], output=tmp_path / "out", workers=1)
    before = content(tmp_path / "out")
    with pytest.raises(InputError, match=r"part-000\.parquet: holds results of another run.*k_r:0\.8"):
        evaluate_shards(folder, ["cider-r"], output=tmp_path / "out", workers=1, k_r=0.5)
    with pytest.raises(InputError, match=r"another run \(of cider-r\)"):
        evaluate_shards(folder, ["rouge-l"], output=tmp_path / "out", workers=1)
    assert content(tmp_path / "out") == before


def test_a_broken_shard_is_named_and_the_others_are_scored(folder: Path, tmp_path: Path) -> None:
    (folder / "part-002.jsonl").write_text('{"id": "x", "caption": ')
    report = evaluate_shards(folder, ["rouge-l"], output=tmp_path / "out", workers=1)
    assert list(report.errors) == [str(folder / "part-002.jsonl")]
    assert "part-002.jsonl, row 1" in report.errors[str(folder / "part-002.jsonl")]
    assert len(report) == 96
    # idf without it would be another idf: nothing is scored.
    with pytest.raises(InputError, match=r"part-002\.jsonl"):
        evaluate_shards(folder, ["cider-d"], output=tmp_path / "cider", workers=1)
    assert not list((tmp_path / "cider").glob("*.parquet"))


def test_ids_of_two_shards_are_named(tmp_path: Path) -> None:
    data = write_shards(tmp_path / "data", make_rows(10) + make_rows(3, seed=2), 2)
    report = evaluate_shards(data, ["length"], output=tmp_path / "out", workers=1)
    (note,) = report.notes()
    assert note.startswith("3 ids stand in more than one row")
    assert "part-000.jsonl and" in note


def test_a_metric_of_the_whole_set_says_so(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mid needs all captions at once"):
        evaluate_shards(folder, ["mid"], output=tmp_path / "out", workers=1)
    with pytest.raises(InputError, match="vocabulary needs all captions at once"):
        evaluate_shards(folder, ["vocabulary"], output=tmp_path / "out", workers=1)
    assert load_metric("em-score").whole_set()
    assert not load_metric("em-score", idf="none").whole_set()
    assert load_metric("bert-score", idf=True).whole_set()


def test_pac_s_needs_all_captions_of_videos_only(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.encoders.random_clip import random_encoder

    metric = load_metric("pac-s", encoder=random_encoder())
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    for name, column in (("pictures", "image"), ("films", "video")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "1", "caption": "a cat", column: "a.png"}) + "\n")
    report = evaluate_shards(tmp_path / "pictures.jsonl", [metric], output=tmp_path / "out", workers=1)
    assert np.isfinite(report["pac-s"].score)
    with pytest.raises(InputError, match=r"films\.jsonl: pac-s needs all captions at once"):
        evaluate_shards(tmp_path / "films.jsonl", [metric], output=tmp_path / "films", workers=1)


def test_a_disk_that_is_full_is_said_of_the_results(folder: Path, tmp_path: Path) -> None:
    code = (
        "import resource, sys\nfrom caplens.scale.evaluate import evaluate_shards\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "evaluate_shards(sys.argv[1], ['length'], output=sys.argv[2], workers=1)\n"
    )
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", code, str(folder), str(out)], capture_output=True, text=True)
    assert re.search(r"InputError: .*out/part-000\.parquet: cannot be written .*; make room", done.stderr)
    assert len(evaluate_shards(folder, ["length"], output=out, workers=1)) == 120


def test_parts_of_an_array_job_fill_one_folder(folder: Path, tmp_path: Path, whole: Path) -> None:
    with pytest.raises(InputError, match="caplens idf build"):
        evaluate_shards(folder, ["cider-d"], output=tmp_path / "out", part="1/2", workers=1)
    for part in ("1/2", "2/2"):
        evaluate_shards(folder, ["rouge-l"], output=tmp_path / "out", part=part, workers=1)
    alone = caplens.evaluate(caplens.read(whole), metrics=["rouge-l"])
    assert ShardReport.open(tmp_path / "out")["rouge-l"].score == alone["rouge-l"].score


def test_shards_from_an_address(folder: Path, tmp_path: Path, whole: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in folder.iterdir():
        memory.pipe(f"/bucket/{path.name}", path.read_bytes())
    report = evaluate_shards(
        "memory://bucket/part-*.jsonl", ["rouge-l"], output=tmp_path / "out", workers=1, allow_urls=True
    )
    alone = caplens.evaluate(caplens.read(whole), metrics=["rouge-l"])
    assert report["rouge-l"].score == alone["rouge-l"].score
    assert (
        evaluate_shards(
            "memory://bucket/part-*.jsonl", ["rouge-l"], output=tmp_path / "out", workers=1, allow_urls=True
        ).fresh
        == 0
    )
    memory.pipe("/bucket/part-000.jsonl", b"{")
    broken = evaluate_shards(
        "memory://bucket/part-*.jsonl", ["rouge-l"], output=tmp_path / "out", workers=1, allow_urls=True
    )
    (reason,) = broken.errors.values()
    assert reason.startswith("memory:///bucket/part-000.jsonl, row 1")


@pytest.mark.skipif(os.name != "posix", reason="not on Windows: it has no limit on the size of files")
def test_a_full_disk_is_named_and_what_was_written_stays(folder: Path, tmp_path: Path) -> None:
    code = (
        "import resource, sys; from caplens.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        f"main(['score', {str(folder)!r}, '-m', 'rouge-l', '--workers', '1', '--output', {str(tmp_path / 'out')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "part-000" in done.stderr
    assert "File too large" in done.stderr
    assert not list((tmp_path / "out").iterdir())


class DieOnce:
    """Kills its worker at the first task, and not again."""

    def __init__(self, mark: Path, always: bool = False) -> None:
        self.mark, self.always = mark, always

    def __call__(self, task: int) -> int:
        if self.always or (task == 3 and not self.mark.exists()):
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return task * task


@pytest.mark.skipif(os.name != "posix", reason="not on Windows: it has no SIGKILL")
def test_a_worker_that_dies_loses_no_task(tmp_path: Path) -> None:
    with LocalEngine(2).start(6) as pool:
        assert sorted(pool.map(DieOnce(tmp_path / "mark"), range(6))) == [0, 1, 4, 9, 16, 25]
        assert (tmp_path / "mark").exists()
        with pytest.raises(WorkerDied, match="died 3 times"):
            list(pool.map(DieOnce(tmp_path / "mark", always=True), [1, 2]))
        assert sorted(pool.map(DieOnce(tmp_path / "mark"), range(3))) == [0, 1, 4]  # others have taken over


@dataclass(frozen=True)
class Whose:
    """Says which process has worked, and waits until the other one has a task, too."""

    folder: Path

    def __call__(self, task: int) -> int:
        (self.folder / str(task)).touch()
        while len(list(self.folder.iterdir())) < 2:
            time.sleep(0.01)
        return os.getpid()


@pytest.mark.skipif(os.name != "posix", reason="not on Windows: a signal there would end the process")
def test_workers_stay_from_one_map_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with LocalEngine(2).start(2) as pool:
        first = set(pool.map(Whose(tmp_path / "a"), [1, 2]))
        assert len(first) == 2
        assert set(pool.map(Whose(tmp_path / "b"), [1, 2])) == first
        results = pool.map(Whose(tmp_path / "b"), [1, 2])
        next(results)
        assert isinstance(results, Generator)
        results.close()  # whoever leaves early leaves nothing behind
        assert set(pool.map(Whose(tmp_path / "b"), [1, 2])).isdisjoint(first)
    for process in first:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def fail(task: Shard) -> Any:
    raise ValueError("a bug")


def test_a_bug_in_a_worker_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="a bug"), LocalEngine(2).start(2) as pool:
        list(pool.map(fail, [Shard("a", "a"), Shard("b", "b")]))


def test_intervals_of_many_captions_are_as_wide_as_those_of_single_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_shards(tmp_path / "data", make_rows(4500), 3)
    report = evaluate_shards(data, ["bleu-4", "rouge-l"], output=tmp_path / "out", workers=1)
    single = report.intervals
    monkeypatch.setattr("caplens.scale.results.MANY", 10)
    grouped = ShardReport.open(tmp_path / "out").intervals
    for name, (low, high) in single.items():
        width = high - low
        assert grouped[name] == pytest.approx((low, high), abs=0.25 * width)
