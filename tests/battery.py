"""What every metric must keep, and the table of where one differs. A new metric is found by itself.

A metric that needs an option to be made, or differs from the rule, gets a row in one of the tables here.
"""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from tests.judge_server import fair_judge

from caplens import CaptionSet
from caplens.core.errors import CaplensWarning, MissingData
from caplens.core.workspace import Workspace
from caplens.metrics import known_metrics
from caplens.metrics._visual import VisualMetric
from caplens.metrics.base import Metric, Result
from caplens.metrics.judge.metric import JudgeMetric

NAMES = sorted({metric.name for metric in known_metrics().values()})

# Options without which a metric cannot be made here.
OPTIONS: dict[str, dict[str, Any]] = {
    name: {"encoder": "embedded"} for name in NAMES if issubclass(known_metrics()[name], VisualMetric)
}

JUDGES = [name for name in NAMES if issubclass(known_metrics()[name], JudgeMetric)]
OPTIONS |= {name: {"model": "toy", "base_url": f"{fair_judge().address}/v1", "smoothing": False} for name in JUDGES}
OPTIONS["judge"]["prompt"] = Path(inspect.getfile(JudgeMetric)).parent / "shipped" / "clair.txt"
OPTIONS["novel"] = {"training": ["a dog runs on the grass", "a red bus"]}

# A fixed corpus for idf, so that a caption's score does not depend on its neighbors.
ELSEWHERE = [["a dog runs on grass"], ["a man rides a red bike"], ["two cats on a mat"], ["a plate of food", "lunch"]]

# Options with which a caption's score does not depend on the other captions; None: there are no such options.
ALONE: dict[str, dict[str, Any] | None] = {
    name: {"idf": ELSEWHERE} for name in ("cider-d", "cider-plain", "cider-r", "self-cider", "spider")
}
ALONE |= {"mid": None, "vocabulary": None}  # they judge captions together
ALONE |= {name: {"idf": "none"} for name in ("em-score", "em-score-ref")}

# How far two computations of the same score may differ; learned metrics sum in another order in another batch.
TOLERANCE: dict[str, float] = {
    "caplens-score": 1e-5,
    **dict.fromkeys(OPTIONS, 1e-6),
    **{name: 1e-4 for name in OPTIONS if name.startswith("infometic")},  # a network of several layers in float32
    "bert-score": 1e-5,
    "sent-sim": 1e-5,
    "mid": 1e-3,
}
EXACT = 1e-12

# Options that change the number and therefore the signature.
CHANGES: dict[str, list[dict[str, Any]]] = {
    **{name: [{"tokenizer": "whitespace"}] for name in NAMES if "tokenizer" in known_metrics()[name].options()},
    "sent-sim": [{"against": "nearest"}, {"against": "centroid"}],
    "bert-score": [{"layer": 1}, {"idf": True}, {"part": "recall"}],
    **{name: [{"temperature": 0.5}, {"model": "other"}, {"max_tokens": 9}] for name in JUDGES},
    **{name: [{"prompt": "A photo depicts "}] for name in ("clip-s", "ref-clip-s", "pac-s", "ref-pac-s")},
    "mid": [{"ridge": 0.01}],
    **{name: [{"regions": "grid"}] for name in OPTIONS if name.startswith("info")},
    "cider-d": [{"tokenizer": "whitespace"}, {"idf": ELSEWHERE}, {"sigma": 3.0}],
    "cider-plain": [{"tokenizer": "whitespace"}, {"idf": ELSEWHERE}],
    "spice": [{"parser": "en_core_web_sm"}],
    "self-cider": [{"tokenizer": "whitespace"}, {"idf": ELSEWHERE}],
    "novel": [{"tokenizer": "whitespace"}, {"training": ["a red bus"]}],
    "spider": [{"idf": ELSEWHERE}],
    "cider-r": [{"tokenizer": "whitespace"}, {"idf": ELSEWHERE}, {"k_r": 0.5}, {"formula": "paper"}],
}

CAPTIONS = [
    ("a dog runs on the grass", ["a brown dog runs on grass", "the dog is running"]),
    ("a man rides a bike", ["a man is riding a red bike", "someone on a bike"]),
    ("two cats sleep on a mat", ["two cats on a mat", "cats sleeping"]),
    ("a plate of food on a table", ["a plate with food", "lunch is on the table"]),
    ("people walk on the beach", ["some people walking on a beach", "the beach is full"]),
    ("a red bus in the street", ["a bus drives down the street", "red bus"]),
]
UNICODE = [
    "Ein Hündchen läuft über grünes Gras 🐕",
    "猫が二匹、マットの上で寝ている。",
    "a\u00a0dog\u2003runs\u200b…",
    "\ud83d lone surrogate",
    "café crème — “quoted” ‘text’ ½ €5 ﷽",
    "\x00\x01 control \x1f\x85 characters",
]
# Few, because to a network each is as long as it takes.
LONG = ["dog " * 10_000, "x" * 100_000, " ".join(f"w{number}" for number in range(5_000))] * 2


def make(name: str, **options: Any) -> Metric:
    """A metric as the battery wants it."""
    return known_metrics()[name](**{**OPTIONS.get(name, {}), **options})


def alone(name: str) -> Metric:
    """The metric with options that make a caption's score its own."""
    options = ALONE.get(name, {})
    assert options is not None, f"{name} judges captions together"
    return make(name, **options)


@cache
def pictures(folder: Path) -> list[Path]:
    """Six small pictures that differ."""
    random = np.random.default_rng(0)
    paths = []
    for number in range(len(CAPTIONS)):
        path = folder / f"{number}.png"
        coarse = random.integers(0, 256, (4, 4, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((64, 48)).save(path)
        paths.append(path)
    return paths


@cache
def films(folder: Path) -> list[Path]:
    """The six pictures as videos of three frames."""
    av = pytest.importorskip("av")
    paths = []
    for picture in pictures(folder):
        path = picture.with_suffix(".mp4")
        with av.open(str(path), "w") as container:
            stream = container.add_stream("mpeg4", rate=10)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            for angle in (0, 3, 6):
                frame = av.VideoFrame.from_image(Image.open(picture).convert("RGB").rotate(angle))
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
        paths.append(path)
    return paths


def captions_for(
    metric: Metric, folder: Path, candidates: list[str] | None = None, references: list[list[str]] | None = None
) -> CaptionSet:
    """The battery's captions with the columns that the metric asks for."""
    only_videos = metric.needs & {"image", "video"} == {"video"}
    return CaptionSet.of(
        candidates or [candidate for candidate, _ in CAPTIONS],
        references=references or [texts for _, texts in CAPTIONS],
        images=[*pictures(folder)] if "image" in metric.needs else None,
        videos=[*films(folder)] if only_videos else None,
    )


def result(metric: Metric, captions: CaptionSet) -> Result:
    """Score, or skip with the reason if data, weights or a package are not here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CaplensWarning)
            return metric.compute(Workspace(captions))
    except MissingData as missing:
        pytest.skip(str(missing))


def assert_same(name: str, actual: NDArray[np.float64], expected: NDArray[np.float64]) -> None:
    tolerance = TOLERANCE.get(name, EXACT)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
