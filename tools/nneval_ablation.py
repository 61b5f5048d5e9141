"""What each of NNEval's eight features is worth, over seeds: the ablation table of docs/research/nneval.md.

    python tools/learned_pools.py DATA POOLS
    python tools/nneval_ablation.py POOLS --output DIR [--seeds 3] [--no-page]

Trains with everything and with each feature left out, for every seed; trainings are stored and go on where they were.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from caplens.metrics.nneval import FEATURES
from caplens.readers import read_references
from caplens.storage.atomic import write_atomically
from caplens.training.nneval import NNEvalConfig, read_rated_captions, train

PAGE = Path(__file__).parents[1] / "docs" / "research" / "nneval.md"
START, END = "<!-- written by tools/nneval_ablation.py -->", "<!-- end of the table -->"
EPOCHS = 25


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("pools", type=Path)
    arguments.add_argument("--output", type=Path, required=True)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--no-page", action="store_true", help="print only")
    given = arguments.parse_args()
    human, machine = (read_references(given.pools / f"{name}.json") for name in ("human", "machine"))
    rated = read_rated_captions(given.pools / "rated.jsonl")
    found: dict[str, list[float]] = {name: [] for name in ("none", *FEATURES)}
    for seed in range(1, given.seeds + 1):
        config = NNEvalConfig(learning_rate=0.002, decay=0.03, epochs=EPOCHS, patience=EPOCHS, seed=seed)
        for name, values in found.items():
            folder = given.output / f"without-{name.replace('/', '-')}-{seed}"
            kept = folder / "result.json"
            if not kept.exists():
                left_out = () if name == "none" else (name,)
                result = train(human, machine, rated, folder, config, leave_out=left_out)
                write_atomically(kept, json.dumps(float(result["kendall"])))
            values.append(float(json.loads(kept.read_text())))
            print(seed, name, values[-1], flush=True)
    table = _table(found)
    print(table)
    if not given.no_page:
        page = PAGE.read_text("utf-8")
        write_atomically(PAGE, f"{page.split(START)[0]}{START}\n\n{table}\n\n{END}{page.split(END)[1]}")


def _table(found: dict[str, list[float]]) -> str:
    """Mean and spread over seeds of the best τ on the validation set, and what leaving out changes for each seed."""
    lines = ["| left out | best Kendall τ on Flickr8k-Expert | difference, seed by seed |", "|---|---|---|"]
    for name, values in found.items():
        differences = ", ".join(f"{one - all_in:+.3f}" for one, all_in in zip(values, found["none"], strict=True))
        shown = "" if name == "none" else differences
        lines.append(f"| {name} | {np.mean(values):.3f} ± {np.std(values):.3f} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
