"""Memory of scoring a ten-minute video: EMScore over all its frames, in a process of its own.

    python -m perf.video [MINUTES]

The encoder is a small one, so that what is measured is decoding and streaming: 25 frames a second, 320 × 240, and a few
seconds of 3840 × 2160, where what counts is how many frames wait.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from perf.measure import run_alone

WRITE = """
import av, numpy as np
with av.open({path!r}, "w") as film:
    stream = film.add_stream("mpeg4", rate=25)
    stream.width, stream.height, stream.pix_fmt = {width}, {height}, "yuv420p"
    x, y = np.meshgrid(np.arange({width}), np.arange({height}))
    for number in range({frames}):
        shade = np.stack([(x + number) % 256, (y + 2 * number) % 256, np.full_like(x, number % 256)], axis=2)
        film.mux(stream.encode(av.VideoFrame.from_ndarray(shade.astype(np.uint8))))
    film.mux(stream.encode())
"""
SCORE = """
import sys
sys.path.insert(0, {root!r})
import os
os.environ["CAPLENS_CACHE"] = {cache!r}
from tests.encoders.random_clip import random_encoder
import caplens
report = caplens.evaluate(["the cat"], videos=[{path!r}], metrics=["em-score"], frames={frames!r},
                          encoder=random_encoder())
print(report["em-score"].details[0]["frames"], "frames, score", report["em-score"].score, file=sys.stderr)
"""


def main(minutes: float = 10) -> None:
    root = str(Path(__file__).resolve().parents[1])
    for number, width, height in ((int(1500 * minutes), 320, 240), (100, 3840, 2160)):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "film.mp4")
            run_alone(WRITE.format(path=path, frames=number, width=width, height=height))
            print(f"{number:,} frames of {width} × {height}, {Path(path).stat().st_size / 2**20:.0f} MB", flush=True)
            for frames in ("all", "uniform-20"):
                used = run_alone(SCORE.format(root=root, cache=folder, path=path, frames=frames))
                verdict = "ok" if used["memory"] < 1024 else "ABOVE THE BAR"
                print(
                    f"{frames}: {used['memory']:.0f} MB at most (bar 1,024: {verdict}), {used['cpu']:.0f} CPU seconds",
                    flush=True,
                )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
