"""AoANet: attention on attention for image captioning (Huang et al., ICCV 2019), the captioner of the CIDEr-R paper.

It runs in numpy; `caplens.training.captioner_network` is the same network in torch, to be trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caplens.core.layers import attend, check_shapes, layer_norm, linear, sigmoid, split_heads
from caplens.core.types import Vectors

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class AoANetConfig:
    """Sizes; the paper's are width 1024, 8 heads, 6 refining layers."""

    features: int
    vocabulary: int
    width: int = 512
    heads: int = 8
    refining_layers: int = 3
    dropout: float = 0.3

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor of a network of these sizes."""
        width = self.width
        outputs_and_inputs = {
            "embed_regions.0": (width, self.features),
            "keys_and_values": (2 * width, width),
            "query": (width, width),
            "on_attention.information_and_gate": (2 * width, 2 * width),
            "predict": (self.vocabulary, width),
        }
        shapes: dict[str, tuple[int, ...]] = {"embed_words.weight": (self.vocabulary, width)}
        shapes |= {"lstm.weight_ih": (4 * width, 2 * width), "lstm.weight_hh": (4 * width, width)}
        shapes |= dict.fromkeys(("lstm.bias_ih", "lstm.bias_hh"), (4 * width,))
        shapes |= dict.fromkeys(("norm.weight", "norm.bias"), (width,))
        for layer in range(self.refining_layers):
            outputs_and_inputs[f"refine.{layer}.query_key_value"] = (3 * width, width)
            outputs_and_inputs[f"refine.{layer}.on_attention.information_and_gate"] = (2 * width, 2 * width)
            shapes |= dict.fromkeys((f"refine.{layer}.norm.weight", f"refine.{layer}.norm.bias"), (width,))
        for name, (outputs, inputs) in outputs_and_inputs.items():
            shapes |= {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
        return shapes


class Memory(NamedTuple):
    """What the decoder looks at: the refined pictures, projected once for all words."""

    keys: Vectors
    values: Vectors
    mean: Vectors


class State(NamedTuple):
    """What the decoder remembers between two words; every part is (pictures, captions, width)."""

    hidden: Vectors
    cell: Vectors
    context: Vectors

    def select(self, captions: Numbers) -> State:
        """Return the states of these captions of each picture, in this order."""
        return State(*(np.take_along_axis(part, captions[:, :, None], axis=1) for part in self))


class CaptionNetwork:
    """Refining encoder and LSTM decoder. `encode` a batch of pictures once, then `step` word by word.

    Every picture may have several captions under way; they look at the same memory.
    """

    def __init__(self, config: AoANetConfig, tensors: Mapping[str, NDArray[Any]]) -> None:
        check_shapes(tensors, config.shapes())
        self.config, self.tensors = config, tensors
        arrays = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
        self._words = arrays.pop("embed_words.weight")
        both = np.concatenate([arrays.pop("lstm.weight_ih"), arrays.pop("lstm.weight_hh")], axis=1)
        self._lstm = both.T.copy(), arrays.pop("lstm.bias_ih") + arrays.pop("lstm.bias_hh")
        self._arrays = {name: array.T.copy() if array.ndim == 2 else array for name, array in arrays.items()}
        self._scale = np.float32((config.width // config.heads) ** -0.5)

    def encode(self, features: Vectors) -> Memory:
        """Refine region or grid features (pictures, regions, size)."""
        heads = self.config.heads
        regions = np.maximum(self._linear(features, "embed_regions.0"), 0)
        for layer in range(self.config.refining_layers):
            regions = self._refine(regions, f"refine.{layer}.")
        regions = layer_norm(regions, *self._pair("norm"))
        keys, values = np.split(self._linear(regions, "keys_and_values"), 2, axis=-1)
        return Memory(split_heads(keys, heads), split_heads(values, heads), regions.mean(axis=1))

    def _refine(self, regions: Vectors, layer: str) -> Vectors:
        """One layer of the encoder: self-attention, attention on attention, residual (eq. 6); no feed-forward."""
        normed = layer_norm(regions, *self._pair(f"{layer}norm"))
        query, key, value = np.split(self._linear(normed, f"{layer}query_key_value"), 3, axis=-1)
        heads = [split_heads(part, self.config.heads) for part in (query * self._scale, key, value)]
        return regions + self._attention_on_attention(attend(*heads), query, layer)

    def start(self, memory: Memory, captions: int) -> State:
        """Return the state before the first word, of so many captions of each picture."""
        pictures, width = memory.mean.shape
        return State(*np.zeros((3, pictures, captions, width), np.float32))

    def step(self, words: Numbers, memory: Memory, state: State) -> tuple[Vectors, State]:
        """Score every possible next word (logits) after these of each picture's captions; and the new state (eq. 8–10).

        `words` is (pictures, captions).
        """
        seen = memory.mean[:, None] + state.context
        gates = linear(np.concatenate([self._words[words], seen, state.hidden], axis=-1), *self._lstm)
        enter, forget, candidate, leave = np.split(gates, 4, axis=-1)
        cell = sigmoid(forget) * state.cell + sigmoid(enter) * np.tanh(candidate)
        hidden = sigmoid(leave) * np.tanh(cell)
        query = split_heads(self._linear(hidden, "query") * self._scale, self.config.heads)
        context = self._attention_on_attention(attend(query, memory.keys, memory.values), hidden)
        return self._linear(context, "predict"), State(hidden, cell, context)

    def _attention_on_attention(self, attended: Vectors, query: Vectors, layer: str = "") -> Vectors:
        """Return an information vector times a gate, both from the attention result and the query (eq. 3–5)."""
        both = self._linear(np.concatenate([attended, query], axis=-1), f"{layer}on_attention.information_and_gate")
        information, gate = np.split(both, 2, axis=-1)
        return information * sigmoid(gate)

    def _linear(self, values: Vectors, name: str) -> Vectors:
        return linear(values, *self._pair(name))

    def _pair(self, name: str) -> tuple[Vectors, Vectors]:
        return self._arrays[f"{name}.weight"], self._arrays[f"{name}.bias"]
