"""Texts and pictures through CLIP ViT-B/32 with random weights: caplens, a plain transformers loop, the raw encoder.

    python -m perf.encoders [TEXTS [PICTURES]]

The plain loop is CLIP's usual one: batches as they come, every text padded to 77 tokens. Texts are measured in CPU
seconds. Pictures are measured in seconds of the clock, the encoder on one thread: files are decoded on another core
meanwhile, so on a machine with one core, or a busy one, the ratio says nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from perf.coco import captions
from perf.measure import measure, show
from PIL import Image
from transformers import CLIPConfig, CLIPModel

from caplens.encoders.clip import ClipEncoder
from caplens.encoders.clip_tokens import ClipTokenizer
from caplens.encoders.embedder import Embedder
from caplens.storage.cache import EmbeddingCache

BATCH = 32
ROUNDS = 2


def plain_texts(encoder: ClipEncoder, texts: list[str]) -> np.ndarray:
    """A vector per text, as CLIP's own examples do it."""
    made = []
    for start in range(0, len(texts), BATCH):
        ids = [encoder.tokenize(text)[0] for text in texts[start : start + BATCH]]
        padded = torch.tensor([[*row, *[0] * (77 - len(row))] for row in ids])
        ends = torch.tensor([len(row) - 1 for row in ids])
        with torch.inference_mode():
            states = encoder.model.text_model(input_ids=padded).last_hidden_state
            made.append(encoder.model.text_projection(states[torch.arange(len(ids)), ends]).numpy())
    return np.concatenate(made)


def raw_pictures(encoder: ClipEncoder, pixels: np.ndarray, batch: int) -> None:
    """The image tower alone, on pixels that are in memory."""
    for start in range(0, len(pixels), batch):
        encoder.project_images(encoder.image_features(pixels[start : start + batch]))


def clock(work: Callable[[], object]) -> float:
    """Seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(texts: int = 512, pictures: int = 256) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    encoder = ClipEncoder(CLIPModel(CLIPConfig()), ClipTokenizer.published(), "clip-random", "0")
    chosen = list(dict.fromkeys(text for each in captions().values() for text in each))[:texts]
    encoder.encode_texts(chosen[:BATCH])  # warm
    slow, expected = measure(lambda: plain_texts(encoder, chosen))
    fast, found = measure(lambda: encoder.encode_texts(chosen))
    np.testing.assert_allclose(found, expected, atol=2e-5)
    show(f"{len(chosen)} texts, CPU seconds", slow, fast, 3)

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jpg" for number in range(pictures)]
        for path in paths:  # 640 × 480, about as hard to decode as a photo
            noise = Image.fromarray(rng.integers(0, 255, (60, 80, 3), np.uint8))
            noise.resize((640, 480), Image.Resampling.BICUBIC).save(path, quality=90)
        pixels = np.stack([encoder.pixels(Image.open(path).convert("RGB")) for path in paths])

        def embed(cache: EmbeddingCache) -> object:
            return Embedder(encoder, cache).images(paths)

        raw, first, again = [], [], []
        for turn in range(ROUNDS):  # by turns, so that both meet the machine in the same moods
            cache = EmbeddingCache(Path(folder) / f"{turn}.sqlite")
            raw.append(clock(lambda: raw_pictures(encoder, pixels, encoder.image_batch)))
            first.append(clock(partial(embed, cache)))
            again.append(clock(partial(embed, cache)))
            raw.append(clock(lambda: raw_pictures(encoder, pixels, BATCH)))
        print("raw encoder, batches of", encoder.image_batch, "and", BATCH, *(f"{each:.1f}" for each in raw), "s")
        show(f"{pictures} pictures, clock; peer: raw encoder", min(raw), min(first), 0.95)
        show(f"{pictures} pictures again, clock; peer: first run", min(first), min(again), 50)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
