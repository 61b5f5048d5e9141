"""Count captions that the tokenizer and the jar of coco-caption cut differently: real ones and random nasty ones.

Run from the repository: ``python -m tools.tokenizer_parity [--data FOLDER] [--nasty 100000] [--seed 1]``. Needs Java.
With ``--file-order``, instead: COCO's captions as lines of one file, and CIDEr-D as pycocoevalcap makes it of them.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from perf.coco import SPLITS, captions, workload
from tests.text.ptb_oracle import captions_in, expected, in_file_order, long_line, nasty

from caplens.compat.pycocoevalcap import Cider
from caplens.text.ptb import tokenize, tokenize_in_file_order

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
    ours = tokenize([caption.replace("\n", " ") for caption in captions])
    report(name, captions, ours, expected(captions), show)


def report(name: str, captions: Sequence[str], tokens: list[str], expected_tokens: list[str], show: int) -> None:
    pairs = zip(captions, tokens, expected_tokens, strict=True)
    different = [row for row in pairs if row[1] != row[2]]
    print(f"{name}: {len(different):,} of {len(captions):,} captions differ")
    for caption, ours, theirs in sorted(different, key=lambda row: len(row[0]))[:show]:
        print(f"  {caption!r}\n    caplens {ours!r}\n    jar     {theirs!r}")


def compare_file_order(show: int) -> None:
    """COCO's captions in the order of the file, then every CIDEr-D of val2014 with the first caption as candidate."""
    from pycocoevalcap.cider.cider import Cider as OfficialCider

    for split in SPLITS:
        texts = [text for texts in captions(split).values() for text in texts]
        report(f"{split} in file order", texts, tokenize_in_file_order(texts), in_file_order(texts), show)
    candidates, references = workload()
    lines = [text for texts in references for text in texts]

    def by_image(tokens: list[str], each: Sequence[int]) -> dict[int, list[str]]:
        left = iter(tokens)
        return {image: [next(left) for _ in range(count)] for image, count in enumerate(each)}

    counts, single = [len(texts) for texts in references], [1] * len(candidates)
    _, theirs = OfficialCider().compute_score(
        by_image(in_file_order(lines), counts), by_image(in_file_order(candidates), single)
    )
    for name, cut in (("compat", tokenize_in_file_order), ("one caption at a time", tokenize)):
        _, ours = Cider().compute_score(by_image(cut(lines), counts), by_image(cut(candidates), single))
        off = abs(ours - theirs)
        print(f"CIDEr-D, {name}: {(off > 1e-9).sum():,} of {len(off):,} captions differ, by at most {off.max():.1g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--nasty", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--show", type=int, default=20)
    parser.add_argument("--file-order", action="store_true")
    options = parser.parse_args()
    if options.file_order:
        compare_file_order(options.show)
        return
    print(f"seed {options.seed}")
    compare("nasty", draw(nasty, options.nasty, options.seed), options.show)
    compare("nasty lines of a thousand words", draw(long_line, LONG, options.seed), options.show)
    compare("real", captions_in(options.data), options.show)


if __name__ == "__main__":
    main()
