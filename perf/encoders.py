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
from pathlib import Path

import numpy as np
import torch
from perf.coco import captions
from perf.measure import measure, show
from perf.pictures import BAR, time_pictures, write_pictures
from transformers import CLIPConfig, CLIPModel

from caplens.encoders.clip import ClipEncoder
from caplens.encoders.clip_tokens import ClipTokenizer

BATCH = 32


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

    with tempfile.TemporaryDirectory() as folder:
        paths = write_pictures(Path(folder), pictures)
        taken = time_pictures(encoder, paths, Path(folder), (encoder.image_batch, BATCH))
    print("raw encoder:", ", ".join(f"{seconds:.1f} s in batches of {batch}" for batch, seconds in taken.raw.items()))
    show(f"{pictures} pictures, clock; peer: raw encoder", min(taken.raw.values()), taken.first, BAR)
    show(f"{pictures} pictures again, clock; peer: first run", taken.first, taken.again, 50)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
