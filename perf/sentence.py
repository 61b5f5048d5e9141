"""The numpy sentence encoder against transformers on torch, same weights, same texts, one thread each.

`OPENBLAS_NUM_THREADS=1 python -m perf.sentence [TEXTS]` prints CPU seconds of both and the largest difference.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from perf.coco import captions
from perf.measure import show
from transformers import AutoModel, AutoTokenizer

from caplens.encoders.bert import BertEncoder
from caplens.storage import weights


def with_torch(model: torch.nn.Module, tokenizer: object, texts: list[str]) -> np.ndarray:
    """As sentence-transformers does it: sorted by length, padded to the longest of 32, mean over the mask."""
    made = np.empty((len(texts), 384), np.float32)
    order = np.argsort([-len(text) for text in texts])
    with torch.inference_mode():
        for start in range(0, len(order), 32):
            rows = order[start : start + 32]
            batch = tokenizer([texts[row] for row in rows], padding=True, truncation=True, return_tensors="pt")  # type: ignore[operator]
            mask = batch["attention_mask"][..., None]
            states = model(**batch).last_hidden_state
            made[rows] = ((states * mask).sum(1) / mask.sum(1)).numpy()
    return made


def main(count: int) -> None:
    torch.set_num_threads(1)
    folder = weights.require("all-MiniLM-L6-v2")
    texts = list(dict.fromkeys(text for each in captions().values() for text in each))[:count]
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    encoder = BertEncoder(folder)
    with_torch(model, tokenizer, texts[:64])
    encoder.states(encoder.tokenize(["a warm-up"]))
    start = time.process_time()
    theirs = with_torch(model, tokenizer, texts)
    middle = time.process_time()
    ours = np.stack([states.mean(axis=0) for states in encoder.states(encoder.tokenize(texts))])
    end = time.process_time()
    show(f"{len(texts)} texts, numpy against torch", middle - start, end - middle, 1.0)
    print(f"largest difference {np.abs(ours - theirs).max():.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
