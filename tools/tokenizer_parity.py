"""Count captions that the tokenizer and the jar of coco-caption cut differently: real ones and random nasty ones.

Run from the repository: ``python -m tools.tokenizer_parity [--data FOLDER] [--nasty 100000] [--seed 1]``. Needs Java.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from tests.text.ptb_oracle import captions_in, expected, long_line, nasty

from caplens.text.ptb import tokenize

LONG = 200  # lines of a thousand words among the nasty captions


def draw(strategy: SearchStrategy[str], count: int, start: int) -> list[str]:
    """That many texts of a strategy, the same for the same start."""
    drawn: list[str] = []

    @seed(start)
    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(text: str) -> None:
        drawn.append(text)

    collect()
    return drawn


def compare(name: str, captions: list[str], show: int) -> None:
    pairs = zip(
        captions, tokenize([caption.replace("\n", " ") for caption in captions]), expected(captions), strict=True
    )
    different = [row for row in pairs if row[1] != row[2]]
    print(f"{name}: {len(different):,} of {len(captions):,} captions differ")
    for caption, ours, theirs in sorted(different, key=lambda row: len(row[0]))[:show]:
        print(f"  {caption!r}\n    caplens {ours!r}\n    jar     {theirs!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--nasty", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    compare("nasty", draw(nasty, options.nasty, options.seed), options.show)
    compare("nasty lines of a thousand words", draw(long_line, LONG, options.seed), options.show)
    compare("real", captions_in(options.data), options.show)


if __name__ == "__main__":
    main()
