"""CPU seconds SPICE takes for 1,000 pictures with five references each, cold (nothing parsed before) and warm.

The original cannot run without its CoreNLP models; it takes about 220 CPU seconds for the same
(docs/metrics/spice.md). With --jar it is run beside caplens.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from perf.coco import captions

ORIGINAL = 220.0  # CPU seconds per 1,000 pictures
RUN = """
import json, sys
import caplens
candidates, references, options = json.load(open(sys.argv[1]))
result = caplens.evaluate(candidates, references, metrics=["spice"], **options)["spice"]
print(result.score)
"""


def cpu_seconds(arguments: list[str], environment: dict[str, str]) -> tuple[float, str]:
    """User and system time of a process and its children, interpreter and imports included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout.strip()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--images", type=int, default=1000)
    options.add_argument("--parser", default="en_core_web_md")
    options.add_argument("--jar", help="spice-1.0.jar with its CoreNLP models")
    chosen = options.parse_args()

    from caplens.storage.weights import fetch

    parser, wordnet = fetch(chosen.parser), fetch("wordnet-3.0")
    groups = [texts[:5] for texts in list(captions().values())[: chosen.images + 1]]
    # The candidate of a picture is a caption of the next one: as new to the parser as a model's caption.
    candidates = [group[0] + " outside" for group in groups[1:]]
    references = groups[:-1]
    with tempfile.TemporaryDirectory() as folder:
        # An empty cache with the weights in it: nothing is parsed yet.
        for path in (parser, wordnet):
            target = Path(folder, "cache", "weights", path.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path, target_is_directory=True)
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment = {**os.environ, **threads, "CAPLENS_CACHE": str(Path(folder, "cache"))}
        ours = Path(folder, "ours.json")
        ours.write_text(json.dumps([candidates, references, {"parser": chosen.parser}]), "utf-8")
        for state in ("cold", "warm"):
            seconds, score = cpu_seconds([sys.executable, "-c", RUN, str(ours)], environment)
            per_thousand = seconds * 1000 / len(candidates)
            print(
                f"caplens, {state}: {seconds:.2f} CPU s for {len(candidates)} pictures, SPICE {float(score):.4f}; ",
                end="",
            )
            print(f"{ORIGINAL / per_thousand:.0f} times the original's {ORIGINAL:.0f} s per 1,000")
        if chosen.jar:
            theirs = Path(folder, "theirs.json")
            theirs.write_text(json.dumps([candidates, references, {"backend": "java", "jar": chosen.jar}]), "utf-8")
            seconds, score = cpu_seconds([sys.executable, "-c", RUN, str(theirs)], environment)
            print(f"original: {seconds:.2f} CPU s, SPICE {float(score):.4f}")


if __name__ == "__main__":
    main()
