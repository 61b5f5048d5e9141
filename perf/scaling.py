"""Does time grow linearly to a million captions? Tokenizing and four metrics on captions recombined from COCO."""

from __future__ import annotations

import random

from perf.coco import captions
from perf.measure import measure, run_alone

import caplens

SIZES = (62_500, 125_000, 250_000, 500_000, 1_000_000)
METRICS = ["bleu", "rouge-l", "cider-d", "cider-r"]


def recombined(count: int) -> tuple[list[str], list[list[str]]]:
    """Captions and one reference each, made of the halves of two captions of one image."""
    source = [texts for split in ("val2014", "train2014") for texts in captions(split).values()]
    draw = random.Random(0)

    def one(texts: list[str]) -> str:
        first, second = draw.choice(texts).split(), draw.choice(texts).split()
        return " ".join(first[: len(first) // 2] + second[len(second) // 2 :])

    images = [draw.choice(source) for _ in range(count)]
    return [one(texts) for texts in images], [[one(texts)] for texts in images]


def main() -> None:
    first = 0.0
    for size in SIZES:
        candidates, references = recombined(size)
        seconds, _ = measure(lambda: caplens.evaluate(candidates, references, metrics=METRICS))  # noqa: B023
        first = first or seconds / size
        print(
            f"{size:9,} captions  {seconds:7.2f} CPU s  {1e6 * seconds / size:6.2f} us per caption"
            f"  ({seconds / size / first:.2f} times the smallest)"
        )
    load = "import scaling; data = scaling.recombined(1_000_000)"
    score = f"{load}\nimport caplens; caplens.evaluate(*data, metrics=scaling.METRICS)"
    whole, text = run_alone(score)["memory"], run_alone(load)["memory"]
    print(f"peak memory at 1,000,000: {whole:.0f} MB, {text:.0f} MB of it the text")


if __name__ == "__main__":
    main()
