"""BERT and MPNet encoders in plain numpy: token states from a folder of published weights, without torch.

Texts of any length share the products of a batch, and attention stays within each text: no padding, no mask, and a
text's states do not depend on its company.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.core.layers import attend, gelu, layer_norm, product
from caplens.core.optional import require
from caplens.core.types import Vectors
from caplens.storage.tensors import read_tensors
from caplens.text.ptb import well_formed
from caplens.text.sentences import surely_fits

Ids = NDArray[np.int64]

# A batch of about this many tokens keeps the widest activation (tokens × 4·width floats) within a core's cache.
TOKENS_PER_BATCH = 1024


class BertEncoder:
    """An encoder with the layout of `BertModel` or `MPNetModel`, read from its folder."""

    def __init__(self, folder: Path, additions: Mapping[str, Vectors] | None = None) -> None:
        """Read a model; `additions` of low rank, such as ``3.query.up`` times ``3.query.down``, change its layers."""
        self.folder = folder
        try:
            config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        except FileNotFoundError:
            raise InputError(f"{folder} has no config.json", remedy="give the folder of a transformers model") from None
        kind = config["model_type"]
        if kind not in {"bert", "mpnet"} or config.get("hidden_act", "gelu") != "gelu":
            raise InputError(
                f"{folder} holds a {kind} model", remedy="bert and mpnet run without torch; others need it"
            )
        self.heads: int = config["num_attention_heads"]
        self.layers: int = config["num_hidden_layers"]
        self.width: int = config["hidden_size"]
        self.epsilon: float = config["layer_norm_eps"]
        self.longest: int = _longest(folder, config)
        self._tokenizer = _load_tokenizer(folder, self.longest)
        self.special = frozenset(self.tokenize([""])[0])
        tensors, _ = read_tensors(folder / "model.safetensors", "weights of a language model")
        scale = (self.width // self.heads) ** -0.5
        self._weights = BertWeights(tensors, kind, scale, additions)

    @staticmethod
    def reads(config: Mapping[str, Any]) -> bool:
        """Whether a model with this configuration is one of ours."""
        plain = config.get("position_embedding_type", "absolute") == "absolute" and not config.get("is_decoder")
        return plain and config.get("hidden_act", "gelu") == "gelu" and config.get("model_type") in {"bert", "mpnet"}

    def tokenize(self, texts: list[str]) -> list[list[int]]:
        """Ids of every text, start and end tokens included, cut at the longest the model was made for."""
        return [
            encoding.ids for encoding in self._tokenizer.encode_batch([well_formed(text.strip()) for text in texts])
        ]

    def tokenize_one(self, text: str) -> tuple[list[int], bool]:
        """Ids of one text, and whether it was cut."""
        encoding = self._tokenizer.encode(text.strip())
        return list(encoding.ids), bool(encoding.overflowing)

    def fits(self, text: str) -> bool:
        """Whether the model reads the whole text."""
        return surely_fits(text, self.longest) or not self.tokenize_one(well_formed(text))[1]

    def layer_arrays(self, number: int, name: str) -> tuple[Vectors, Vectors]:
        """Weight (outputs, inputs) and bias of one product or norm of a layer."""
        return self._weights.part(number, name)

    def states(self, tokens: Sequence[Sequence[int]], layer: int | None = None) -> list[Vectors]:
        """Hidden states (length, width) of every text after a layer; 0 is the embedding, None the last layer."""
        layers = [self._weights.layer(number) for number in range(self.layers if layer is None else layer)]
        batches = list(_batches(tokens))
        made = [self._states([tokens[row] for row in rows], layers) for rows in batches]
        found: list[Vectors] = [np.empty(0, np.float32)] * len(tokens)
        for row, states in zip(chain(*batches), chain(*made), strict=True):
            found[row] = states
        return found

    def _states(self, tokens: Sequence[Sequence[int]], layers: Sequence[dict[str, Vectors]]) -> list[Vectors]:
        """The states of some texts, which stand in order of length."""
        lengths = list(map(len, tokens))
        runs, start = list[_Run](), 0
        for length, group in groupby(lengths):
            runs.append(_Run(start, texts := sum(1 for _ in group), length))
            start += texts * length
        ids = np.array(list(chain(*tokens)), dtype=np.int64)
        hidden = self._weights.embed(ids, np.concatenate([np.arange(length) for length in lengths]))
        hidden = layer_norm(hidden, *self._weights.pair("embeddings.LayerNorm"), self.epsilon)
        for weights in layers:
            hidden = self._layer(weights, hidden, runs)
        return np.split(hidden, np.cumsum(lengths)[:-1])

    def _attend(self, mixed: Vectors, run: _Run) -> Vectors:
        """What the tokens of some texts of one length read of each other, given queries, keys and values in a row."""
        # (3, texts, heads, length, width of a head)
        shape = (run.texts, run.length, 3, self.heads, self.width // self.heads)
        rows = mixed[run.start : run.start + run.texts * run.length]
        query, key, value = rows.reshape(shape).transpose(2, 0, 3, 1, 4)
        return attend(query, key, value, self._weights.position_bias(run.length)).reshape(-1, self.width)

    def _layer(self, weights: dict[str, Vectors], flat: Vectors, runs: Sequence[_Run]) -> Vectors:
        mixed = product(flat, weights["qkv.weight"])
        mixed += weights["qkv.bias"]
        mixed = product(np.concatenate([self._attend(mixed, run) for run in runs]), weights["out.weight"])
        mixed += weights["out.bias"]
        mixed += flat
        flat = layer_norm(mixed, weights["norm1.weight"], weights["norm1.bias"], self.epsilon)
        wide = product(flat, weights["up.weight"])
        wide += weights["up.bias"]
        narrow = product(gelu(wide), weights["down.weight"])
        narrow += weights["down.bias"]
        narrow += flat
        return layer_norm(narrow, weights["norm2.weight"], weights["norm2.bias"], self.epsilon)


class _Run(NamedTuple):
    """Texts of one length that follow each other in a batch, from a token on."""

    start: int
    texts: int
    length: int


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Which texts are read together, from the shortest on; every text once."""
    batch, size = list[int](), 0
    for row in sorted(range(len(tokens)), key=lambda row: len(tokens[row])):
        if batch and size + len(tokens[row]) > TOKENS_PER_BATCH:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += len(tokens[row])
    if batch:
        yield batch


# Our name → (BERT's, MPNet's) within one layer.
_NAMES = {
    "query": ("attention.self.query", "attention.attn.q"),
    "key": ("attention.self.key", "attention.attn.k"),
    "value": ("attention.self.value", "attention.attn.v"),
    "out": ("attention.output.dense", "attention.attn.o"),
    "norm1": ("attention.output.LayerNorm", "attention.LayerNorm"),
    "up": ("intermediate.dense", "intermediate.dense"),
    "down": ("output.dense", "output.dense"),
    "norm2": ("output.LayerNorm", "output.LayerNorm"),
}
PRODUCTS = ("query", "key", "value", "out", "up", "down")


class BertWeights:
    """The arrays of a model, laid out for row vectors times matrices, layers prepared on first use."""

    def __init__(
        self,
        tensors: Mapping[str, NDArray[Any]],
        kind: str,
        scale: float,
        additions: Mapping[str, Vectors] | None = None,
    ) -> None:
        self.kind = kind
        self._additions = additions or {}
        self._arrays: dict[str, Vectors] = {
            name.removeprefix(f"{kind}."): tensor for name, tensor in tensors.items() if tensor.dtype.kind == "f"
        }
        self._layers: dict[int, dict[str, Vectors]] = {}
        self._biases: dict[int, Vectors] = {}
        self._scale = scale

    def pair(self, name: str) -> tuple[Vectors, Vectors]:
        return self._arrays[f"{name}.weight"], self._arrays[f"{name}.bias"]

    def embed(self, ids: Ids, places: Ids) -> Vectors:
        """One row per token, given with its place in its text."""
        words = self.word_vectors(ids)
        positions = self._arrays["embeddings.position_embeddings.weight"]
        if self.kind == "mpnet":  # positions count from 2, after the padding index
            words += positions[places + 2]
            return words
        words += positions[places]
        words += self._arrays["embeddings.token_type_embeddings.weight"][0]
        return words

    def word_vectors(self, ids: Ids) -> Vectors:
        """What stands for each token before its place is added; a copy."""
        return self._arrays["embeddings.word_embeddings.weight"][ids]

    def layer(self, number: int) -> dict[str, Vectors]:
        if number not in self._layers:
            self._layers[number] = self._prepare(number)
        return self._layers[number]

    def part(self, number: int, name: str) -> tuple[Vectors, Vectors]:
        weight, bias = self.pair(f"encoder.layer.{number}.{_NAMES[name][self.kind == 'mpnet']}")
        if f"{number}.{name}.up" in self._additions:
            weight = weight + self._additions[f"{number}.{name}.up"] @ self._additions[f"{number}.{name}.down"]
        return weight, bias

    def _prepare(self, number: int) -> dict[str, Vectors]:
        parts = {name: self.part(number, name) for name in _NAMES}
        scale = np.float32(self._scale)  # 1/√d goes into the query once instead of into every score
        tensors = {
            "qkv.weight": np.concatenate([parts["query"][0] * scale, parts["key"][0], parts["value"][0]]).T.copy(),
            "qkv.bias": np.concatenate([parts["query"][1] * scale, parts["key"][1], parts["value"][1]]),
        }
        for name in ("out", "up", "down"):
            tensors[f"{name}.weight"], tensors[f"{name}.bias"] = parts[name][0].T.copy(), parts[name][1]
        for name in ("norm1", "norm2"):
            tensors[f"{name}.weight"], tensors[f"{name}.bias"] = parts[name]
        return tensors

    def position_bias(self, length: int) -> Vectors | None:
        """MPNet's relative-position bias (heads, length, length), shared by its layers; BERT has none."""
        if self.kind == "bert":
            return None
        if length not in self._biases:
            table = self._arrays["encoder.relative_attention_bias.weight"]
            places = np.arange(length)
            bucket = _relative_bucket(places[None, :] - places[:, None], len(table))
            self._biases[length] = np.ascontiguousarray(table[bucket].transpose(2, 0, 1))
        return self._biases[length]


def _relative_bucket(distance: NDArray[np.int64], buckets: int, furthest: int = 128) -> NDArray[np.int64]:
    """T5's buckets, as MPNet uses them: exact for near tokens, logarithmic for far ones, one half per direction.

    >>> _relative_bucket(np.array([-200, -1, 0, 1, 8, 200]), 32).tolist()
    [15, 1, 0, 17, 24, 31]
    """
    half = buckets // 2
    exact = half // 2
    size = np.abs(distance)
    with np.errstate(divide="ignore"):
        far = exact + (np.log(size / exact) / np.log(furthest / exact) * (half - exact))
    far = np.minimum(np.where(size < exact, 0, far), half - 1).astype(np.int64)
    return np.where(distance > 0, half, 0) + np.where(size < exact, size, far)


def _longest(folder: Path, config: dict[str, Any]) -> int:
    """How many tokens the model was made for: what its makers set for sentences, else its table of positions."""
    positions = int(config["max_position_embeddings"]) - (2 if config["model_type"] == "mpnet" else 0)
    sentences = folder / "sentence_bert_config.json"
    if sentences.is_file():
        return min(positions, int(json.loads(sentences.read_text("utf-8"))["max_seq_length"]))
    return positions


def _load_tokenizer(folder: Path, longest: int) -> Any:
    tokenizer = require("tokenizers:Tokenizer", purpose="the sentence encoder").from_file(
        str(folder / "tokenizer.json")
    )
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    return tokenizer
