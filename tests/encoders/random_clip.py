"""A small CLIP with random weights and a small vocabulary, as an encoder."""

from __future__ import annotations

from tests.encoders.plain_clip import random_clip

from caplens.encoders.clip import ClipEncoder, build, config_of
from caplens.encoders.clip_layouts import to_hub
from caplens.encoders.clip_tokens import END, START, ClipTokenizer, byte_letters

MERGES = [("t", "h"), ("th", "e</w>"), ("c", "a"), ("ca", "t</w>"), ("d", "o"), ("do", "g</w>"), ("o", "n</w>")]
_LETTERS = list(byte_letters().values())
VOCABULARY = {
    entry: number
    for number, entry in enumerate(
        [*_LETTERS, *(letter + "</w>" for letter in _LETTERS), *("".join(pair) for pair in MERGES), START, END]
    )
}


def tokenizer(context: int = 20) -> ClipTokenizer:
    return ClipTokenizer(VOCABULARY, MERGES, context)


def random_encoder(seed: int = 0) -> ClipEncoder:
    state = to_hub(dict(random_clip(len(VOCABULARY), seed).state_dict()))
    return ClipEncoder(build(state, config_of(state, "quick_gelu")), tokenizer(), f"clip-random-{seed}", str(seed))
