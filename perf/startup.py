"""How long until caplens answers: importing it, and `caplens score` on 5,000 captions with four metrics."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from perf.coco import workload
from perf.measure import cpu_seconds


def least(command: list[str], runs: int = 7) -> tuple[float, float]:
    """Least wall and CPU seconds of some runs."""
    walls, cpus = [], []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), cpu_seconds()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        walls.append(time.perf_counter() - wall)
        cpus.append(cpu_seconds() - cpu)
    return min(walls), min(cpus)


def main() -> None:
    bare, bare_cpu = least([sys.executable, "-c", "pass"])
    wall, cpu = least([sys.executable, "-c", "import caplens"])
    print(f"python alone      {bare:.3f} s wall  {bare_cpu:.3f} s CPU")
    print(f"import caplens    {wall - bare:.3f} s wall  {cpu - bare_cpu:.3f} s CPU  beyond that  (bar 0.3 s)")
    candidates, references = workload(5000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "captions.jsonl"
        rows = enumerate(zip(candidates, references, strict=True))
        lines = [json.dumps({"id": row, "caption": text, "references": texts}) for row, (text, texts) in rows]
        path.write_text("\n".join(lines))
        command = [sys.executable, "-m", "caplens", "score", str(path), "--metrics", "bleu,rouge-l,cider-d,cider-r"]
        wall, cpu = least(command)
    print(f"caplens score     {wall:.3f} s wall  {cpu:.3f} s CPU  5,000 captions, four metrics  (bar 1.5 s wall)")


if __name__ == "__main__":
    main()
