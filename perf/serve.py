"""The server under load: 50 clients for a minute on loopback; latencies, answers by status, memory on the way.

    python -m perf.serve [CLIENTS] [SECONDS]

It has a cache of its own: pictures are looked at for the first time, and nobody else writes there.

Every client tries captions, explains, scores, searches a run of 100,000 captions, rates, and asks for jobs. A client
that is told to come back (503, 429) waits as long as it was told. Anything else but success is an error, and named.
"""

from __future__ import annotations

import asyncio
import base64
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import caplens
from caplens.core.plain_json import json_text

EXAMPLES = Path(caplens.__file__).parent / "cli" / "examples" / "images"
WORDS = ("a", "the", "man", "woman", "dog", "cat", "horse", "street", "grass", "red", "large", "runs", "sits", "with")
CAPTIONS = 100_000
BUSY = (429, 503)
MOST_GROWTH = 1.1
"""The mean memory of the last third against that of the first."""


def write_run(folder: Path) -> None:
    """A run of many captions, as `caplens score --json` writes it."""
    generator = random.Random(1)
    texts = [" ".join(generator.choices(WORDS, k=10)) for _ in range(CAPTIONS)]
    scores = [generator.random() for _ in texts]
    metric = {"label": "rouge-l", "shown_as_percent": True, "higher_is_better": True, "options": {}, "score": 0.5,
              "interval": None, "signature": "rouge-l", "scores": scores, "notes": [], "failures": {}}  # fmt: skip
    content = {"captions": CAPTIONS, "ids": [str(row) for row in range(CAPTIONS)], "candidates": texts,
               "metrics": {"rouge-l": metric}, "errors": {}}  # fmt: skip
    (folder / "large.json").write_text(json_text(content), "utf-8")


def memory(process: subprocess.Popen[str]) -> float:
    """MB that the server holds, without its children."""
    text = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


class Load:
    """What clients ask, and how it went."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.statuses: dict[str, Counter[int]] = defaultdict(Counter)
        self.errors: Counter[str] = Counter()
        self.pictures = [base64.b64encode(path.read_bytes()).decode() for path in sorted(EXAMPLES.glob("*.jpg"))]

    async def ask(self, client: httpx.AsyncClient, what: str, method: str, path: str, body: Any = None) -> None:
        began = time.perf_counter()
        try:
            answer = await client.request(method, path, json=body)
        except httpx.HTTPError as error:
            self.errors[f"{what}: {type(error).__name__}"] += 1
            return
        self.statuses[what][answer.status_code] += 1
        if answer.status_code in BUSY:
            await asyncio.sleep(float(answer.headers["retry-after"]))
        elif answer.is_success:
            self.seconds[what].append(time.perf_counter() - began)
        else:
            self.errors[f"{what}: {answer.status_code} {answer.text[:100]}"] += 1

    def requests(self, generator: random.Random, number: int) -> dict[str, tuple[str, str, Any]]:
        """What a client may ask next: method, path and body by what it is called."""

        def text() -> str:
            return " ".join(generator.choices(WORDS, k=8))

        scored = {"candidates": [text()], "references": [[text()]], "metrics": ["meteor", "rouge-l", "bleu"]}
        tried = {"captions": [text()], "image": {"data": generator.choice(self.pictures)}}
        rated = {"rater": f"rater {number}", "item": generator.randrange(50), "value": generator.randint(1, 5)}
        searched = f"/v1/runs/{self.run}/captions?metric=0&order=worst&words=horse+{generator.choice(WORDS)}"
        return {
            "health": ("GET", "/health", None),
            "metrics": ("GET", "/v1/metrics", None),
            "page": ("GET", "/", None),
            "search": ("GET", searched, None),
            "explain": ("POST", "/v1/explain", {"caption": text(), "references": [text()]}),
            "score": ("POST", "/v1/score", scored),
            "try": ("POST", "/v1/try", tried),
            "rate": ("POST", "/v1/sessions/load/ratings", rated),
            "jobs": ("GET", "/v1/jobs", None),
            "job": ("POST", "/v1/jobs", {"kind": "check", "request": {"texts": [text()]}}),
        }

    async def client(self, address: str, number: int, until: float) -> None:
        """One who asks, waits a little, and asks again; seldom for a job."""
        generator = random.Random(number)
        async with httpx.AsyncClient(base_url=address, timeout=120) as client:
            while time.monotonic() < until:
                possible = self.requests(generator, number)
                what = generator.choices(list(possible), weights=[20] * (len(possible) - 1) + [1])[0]
                await self.ask(client, what, *possible[what])
                await asyncio.sleep(generator.uniform(0, 0.2))

    def show(self) -> None:
        print(f"{'':10}{'answers':>9}{'p50 ms':>9}{'p95 ms':>9}{'max ms':>9}  by status")
        for what in sorted(self.statuses):
            found = 1000 * np.array(self.seconds[what] or [np.nan])
            figures = "".join(f"{value:9.0f}" for value in (*np.percentile(found, [50, 95]), found.max()))
            print(f"{what:10}{sum(self.statuses[what].values()):9,}{figures}  {dict(self.statuses[what])}")
        everything = 1000 * np.concatenate([np.array(found) for found in self.seconds.values()])
        print(f"p95 of all answers: {np.percentile(everything, 95):.0f} ms ({len(everything):,} answers)")
        refused = sum(counts[status] for counts in self.statuses.values() for status in BUSY)
        print(f"told to come back (429, 503): {refused:,}; errors: {sum(self.errors.values())} {dict(self.errors)}")


async def prepare(address: str) -> str:
    """Wait until models and run are there, make a session to rate in, and return the run."""
    async with httpx.AsyncClient(base_url=address, timeout=120) as client:
        picture = base64.b64encode((EXAMPLES / "cat.jpg").read_bytes()).decode()
        asked = {"captions": ["a cat"], "image": {"data": picture}, "references": ["a cat"]}
        await client.get("/")  # whoever opens the page has the models loaded
        while (await client.get("/health")).json()["models"] != "loaded":
            await asyncio.sleep(0.2)
        for _ in range(5):
            await client.post("/v1/try", json=asked)
        while (run := (await client.get("/v1/runs")).json()[0])["state"] != "ready":
            await asyncio.sleep(0.2)
        made = await client.post("/v1/sessions", json={"name": "load", "runs": [run["id"]], "count": 50})
        made.raise_for_status()
        return str(run["id"])


async def go(address: str, clients: int, seconds: float, process: subprocess.Popen[str]) -> None:
    load = Load(await prepare(address))
    began, before = time.monotonic(), memory(process)
    held: list[float] = []

    async def watch() -> None:
        while time.monotonic() < began + seconds:
            await asyncio.sleep(seconds / 60)
            held.append(memory(process))

    await asyncio.gather(watch(), *(load.client(address, number, began + seconds) for number in range(clients)))
    load.show()
    first, _, last = (float(part.mean()) for part in np.array_split(held, 3))
    verdict = "ok" if last <= MOST_GROWTH * first else "NOT FLAT"
    print(f"memory of the server: {before:.0f} MB at the start, {max(held):.0f} MB at most, {memory(process):.0f} MB")
    print(f"at the end; {first:.0f} MB in the first third, {last:.0f} MB in the last, {last / first:.2f}x: {verdict}")


def main(clients: int = 50, seconds: float = 60) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        runs.mkdir()
        write_run(runs)
        command = [sys.executable, "-m", "caplens", "serve", str(runs), "--port", "0", "--state", f"{folder}/state"]
        with open(f"{folder}/log", "w+", encoding="utf-8") as log:
            environment = {**os.environ, "CAPLENS_CACHE": f"{folder}/cache"}
            with subprocess.Popen(command, stderr=log, text=True, env=environment) as process:
                try:
                    while not (found := re.search(r"serves at (\S+?)/?\n", Path(log.name).read_text("utf-8"))):
                        time.sleep(0.1)
                    print(f"{clients} clients for {seconds:g} s")
                    asyncio.run(go(found[1], clients, seconds, process))
                finally:
                    process.terminate()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
