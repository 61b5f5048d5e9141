"""Token states of any encoder that transformers can load: in numpy where the layout is known, else through torch."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from caplens.core.optional import require
from caplens.core.types import Vectors
from caplens.encoders.bert import TOKENS_PER_BATCH, BertEncoder
from caplens.storage import weights
from caplens.text.ptb import well_formed
from caplens.text.sentences import surely_fits


class TokenEncoder(Protocol):
    """Texts to token ids, ids to states: one row per token, after a layer or, without one, after the last."""

    layers: int
    width: int
    longest: int
    """Tokens that it reads at once."""
    special: frozenset[int]
    """Ids of start and end tokens."""

    def tokenize(self, texts: list[str]) -> list[list[int]]: ...

    def fits(self, text: str) -> bool: ...

    def states(self, tokens: Sequence[Sequence[int]], layer: int | None = None) -> list[Vectors]: ...


class TransformersEncoder:
    """An encoder run by transformers and torch."""

    def __init__(self, folder: Path) -> None:
        purpose = f"the encoder in {folder}"
        self._torch: Any = require("torch", "transformers", purpose=purpose)
        self._tokenizer: Any = require("transformers:AutoTokenizer", purpose=purpose).from_pretrained(folder)
        model = require("transformers:AutoModel", purpose=purpose)
        self._model: Any = model.from_pretrained(folder, dtype=self._torch.float32).eval()
        self.layers, self.width = int(self._model.config.num_hidden_layers), int(self._model.config.hidden_size)
        special = (self._tokenizer.cls_token_id, self._tokenizer.sep_token_id)
        self.special = frozenset(token for token in special if token is not None)
        positions = getattr(self._model.config, "max_position_embeddings", 512)
        self.longest = int(min(self._tokenizer.model_max_length, positions))

    def tokenize(self, texts: list[str]) -> list[list[int]]:
        stripped = [well_formed(text.strip()) for text in texts]
        ids: list[list[int]] = self._tokenizer(stripped, truncation=True, max_length=self.longest)["input_ids"]
        return ids

    def fits(self, text: str) -> bool:
        """Whether the model reads the whole text."""
        if surely_fits(text, self.longest):
            return True
        return len(self._tokenizer(well_formed(text.strip()))["input_ids"]) <= self.longest

    def states(self, tokens: Sequence[Sequence[int]], layer: int | None = None) -> list[Vectors]:
        """Texts of one length are read together: no padding, so company changes nothing."""
        by_length: dict[int, list[int]] = {}
        for row, ids in enumerate(tokens):
            by_length.setdefault(len(ids), []).append(row)
        found: list[Vectors] = [np.empty(0, np.float32)] * len(tokens)
        for length, rows in by_length.items():
            size = max(1, TOKENS_PER_BATCH // max(1, length))
            for start in range(0, len(rows), size):
                chosen = rows[start : start + size]
                ids = self._torch.tensor([tokens[row] for row in chosen])
                with self._torch.inference_mode():
                    hidden = self._model(input_ids=ids, output_hidden_states=True).hidden_states
                states = hidden[self.layers if layer is None else layer].numpy().astype(np.float32)
                for row, own in zip(chosen, states, strict=True):
                    found[row] = own
        return found


def load_token_encoder(name_or_path: str | os.PathLike[str]) -> TokenEncoder:
    """The encoder of this name or folder, read again only when its files have changed."""
    return _load(weights.require(name_or_path), weights.model_digest(name_or_path))


@functools.lru_cache(maxsize=2)
def _load(folder: Path, _: str) -> TokenEncoder:
    return read_token_encoder(folder)


def read_token_encoder(folder: Path) -> TokenEncoder:
    """The encoder in a folder: without torch where it is a BERT or an MPNet."""
    has_all = all((folder / name).is_file() for name in ("config.json", "model.safetensors", "tokenizer.json"))
    if has_all and BertEncoder.reads(json.loads((folder / "config.json").read_text("utf-8"))):
        return BertEncoder(folder)
    return TransformersEncoder(folder)
