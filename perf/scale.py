"""Shards against the single file, and pictures against a plain loop and against clip-retrieval's design.

python -m perf.scale text
    8 shards of 25,000 COCO captions: equal bytes, captions/s and memory against in-memory
python -m perf.scale kill [COUNT]
    the same run killed with -9 at 20 random moments and resumed: equal bytes
python -m perf.scale pictures FOLDER [COUNT]
    pictures/s and captions/s of pac-s over photos, 128 of a folder of jpg
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from perf.coco import captions
from perf.measure import show

from caplens.core.threads import threads_here
from caplens.evaluation.evaluate import evaluate
from caplens.scale.results import ShardReport

SHARDS, ROWS = 8, 25_000
METRICS = "bleu,rouge-l,meteor,cider-d,cider-r"
SHARE_OF_SPEED, MOST_MEGABYTES = 0.9, 500


def make_workload(folder: Path) -> None:
    """200,000 captions of COCO, each against the other four of its image, as one file and as shards."""
    rows = []
    for split in ("val2014", "train2014"):
        for image, texts in captions(split).items():
            rows += [
                {"id": f"{image}-{place}", "caption": texts[place], "references": texts[:place] + texts[place + 1 : 5]}
                for place in range(2)
            ]
    lines = [json.dumps(row) + "\n" for row in rows[: SHARDS * ROWS]]
    (folder / "data").mkdir()
    (folder / "whole.jsonl").write_text("".join(lines))
    for number in range(SHARDS):
        part = "".join(lines[number * ROWS : (number + 1) * ROWS])
        (folder / "data" / f"part-{number:03d}.jsonl").write_text(part)


def tree_megabytes(root: int) -> float:
    """Memory of a process and its descendants, shared pages counted once."""
    pending, total = [root], 0
    while pending:
        process = pending.pop()
        try:
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                total += int(line.split()[1]) if line.startswith("Pss:") else 0
            for task in Path(f"/proc/{process}/task").iterdir():
                pending += map(int, (task / "children").read_text().split())
        except (OSError, ValueError):  # it has just ended
            continue
    return total / 1024


def watch(command: Sequence[str]) -> tuple[float, float]:
    """Wall seconds and peak memory in MB of a command with all its workers."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, tree_megabytes(process.pid))
        time.sleep(0.05)
    assert process.returncode == 0, f"exit code {process.returncode}"
    return time.perf_counter() - start, peak


def score(source: Path, *rest: str) -> list[str]:
    return [sys.executable, "-m", "caplens", "score", str(source), "-m", METRICS, *rest]


def text(folder: Path) -> None:
    """Equality, speed and memory."""
    watch(score(folder / "whole.jsonl", "--json", str(folder / "whole.json")))  # json has details, too: not timed
    alone, memory = watch(score(folder / "whole.jsonl"))
    shards, peak = watch(score(folder / "data", "--output", str(folder / "out")))
    single = json.loads((folder / "whole.json").read_text())["metrics"]
    report = ShardReport.open(folder / "out")
    for name, entry in single.items():
        stored = np.concatenate(list(report.scores(name)))
        assert stored.tobytes() == np.array(entry["scores"], np.float64).tobytes(), f"{name}: other bytes"
        assert abs(report[name].score - entry["score"]) <= 1e-12, f"{name}: another corpus score"
        assert report[name].signature == entry["signature"]
    count = SHARDS * ROWS
    print(f"{count:,} captions, {METRICS}: every score equal, corpus scores to 1e-12, {threads_here()} processors")
    print(f"in memory   {count / alone:9,.0f} captions/s   {alone:6.1f} s   {memory:6.0f} MB")
    print(f"{SHARDS} shards    {count / shards:9,.0f} captions/s   {shards:6.1f} s   {peak:6.0f} MB")
    show("speed of shards against in memory", alone, shards, SHARE_OF_SPEED)
    print(f"memory: {peak:.0f} MB of at most {MOST_MEGABYTES}: {'ok' if peak < MOST_MEGABYTES else 'ABOVE THE BAR'}")


def kill(folder: Path, kills: int = 20) -> None:
    """The run, killed at random moments of its length and started again, each time with a fresh folder."""
    straight, out = folder / "straight", folder / "killed"
    seconds, _ = watch(score(folder / "data", "--output", str(straight)))
    expected = {path.name: path.read_bytes() for path in straight.iterdir()}
    draw = random.Random(1)
    for number in range(1, kills + 1):
        shutil.rmtree(out, ignore_errors=True)
        moment = draw.uniform(0.3, seconds)
        process = subprocess.Popen(score(folder / "data", "--output", str(out)), stdout=subprocess.DEVNULL)
        threading.Timer(moment, lambda process=process: process.send_signal(signal.SIGKILL)).start()
        process.wait()
        done = len(list(out.glob("part-*.parquet"))) if out.is_dir() else 0
        subprocess.run(score(folder / "data", "--output", str(out)), check=True, stdout=subprocess.DEVNULL)
        found = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file() and path.name[0] != "."}
        assert found == expected, f"other bytes after a kill at {moment:.1f} s"
        print(f"{number:2d}: killed after {moment:5.1f} s with {done} of {SHARDS} shards done; resumed to equal bytes")


def pictures(photos: Path, count: int = 128) -> None:
    """pac-s over photos: caplens, a plain loop over the same encoder, and decode, encode and write in portions."""
    from PIL import Image

    from caplens.encoders.load import load_encoder

    encoder = load_encoder("embedded", heads="pac")
    paths = [str(path) for path in sorted(photos.glob("*.jpg"))[:count]]
    texts = [f"a picture called {Path(path).stem}" for path in paths]

    encoder.encode_images([Image.new("RGB", (64, 64))])  # models are loaded when they are first asked
    encoder.encode_texts(["a wall"])

    def plain() -> None:
        """One picture and one text at a time."""
        for path, words in zip(paths, texts, strict=True):
            encoder.encode_images([Image.open(path).convert("RGB")])
            encoder.encode_texts([words])

    def retrieval() -> None:
        """clip-retrieval's design: a loader that decodes, batches through both towers, files of vectors."""
        with tempfile.TemporaryDirectory() as folder:
            for start in range(0, len(paths), 256):
                images = (Image.open(path).convert("RGB") for path in paths[start : start + 256])
                np.save(Path(folder) / f"image-{start}.npy", encoder.encode_images(images))
                np.save(Path(folder) / f"text-{start}.npy", encoder.encode_texts(texts[start : start + 256]))

    def ours() -> None:
        with tempfile.TemporaryDirectory() as cache:  # nothing is known from before
            os.environ["CAPLENS_CACHE"] = cache
            evaluate(texts, images=paths, metrics=["pac-s"], encoder="embedded")

    seconds = {}
    for name, run in (("plain loop", plain), ("decode, encode, write", retrieval), ("caplens", ours)):
        start = time.perf_counter()
        run()
        seconds[name] = time.perf_counter() - start
        print(f"{name:24} {len(paths) / seconds[name]:7.1f} pictures and captions/s")
    for peer in ("plain loop", "decode, encode, write"):
        show(f"caplens against {peer}", seconds[peer], seconds["caplens"], 1.0)


if __name__ == "__main__":
    task = sys.argv[1] if len(sys.argv) > 1 else "text"
    if task == "pictures":
        pictures(Path(sys.argv[2]), *map(int, sys.argv[3:4]))
    else:
        with tempfile.TemporaryDirectory(prefix="caplens-scale-") as made:
            make_workload(Path(made))
            if task == "kill":
                kill(Path(made), *map(int, sys.argv[2:3]))
            else:
                text(Path(made))
