"""multilingual-e5-small (Wang et al. 2024) from a file of 4-bit numbers: sentences of a hundred languages in one space.

The file holds sizes, a unigram vocabulary with a table of letters to replace, and the tensors; matrices in blocks of 32
numbers, a half-precision scale and 32 times 4 bits each. Layers are unpacked when they are first used; of the
table of words, which would be 384 MB, only the rows that are asked for.
"""

from __future__ import annotations

import itertools
import re
import struct
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.core.types import Vectors
from caplens.encoders.bert import BertEncoder, BertWeights, Ids
from caplens.text.ptb import well_formed

MAGIC = b"E5S1"
PREFIX = "query: "
"""What the model was trained to see before texts that are compared with each other."""
_BLOCK = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])
_PER_BLOCK = 32
_PLAIN = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}
_PACKED = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}


class PackedE5(BertEncoder):
    """The encoder of such a file."""

    def __init__(self, path: Path) -> None:
        data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)
        try:
            read = _Reader(data)
            self.width, self.layers, self.heads, self._inner, words, self.longest, _ = read.sizes()
            self.epsilon = read.number("<f")
            read.number("<i")
            self._tokenizer, self._letters = read.tokenizer(self.longest)
            self._weights = _PackedWeights(read.tensors(), self.width, self._inner, words, self.layers, self.heads)
        except (struct.error, ValueError, KeyError, UnicodeDecodeError):
            raise InputError(
                "not a file of multilingual-e5-small in 4 bits", where=str(path), remedy="fetch it again"
            ) from None
        self.special = frozenset(self._tokenizer.encode("").ids)

    def tokenize(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(map(self._prepared, texts)))]

    def tokenize_one(self, text: str) -> tuple[list[int], bool]:
        encoding = self._tokenizer.encode(self._prepared(text))
        return list(encoding.ids), bool(encoding.overflowing)

    def fits(self, text: str) -> bool:
        return super().fits(PREFIX + text)

    def _prepared(self, text: str) -> str:
        replaced = (PREFIX + well_formed(text.strip().removeprefix(PREFIX))).translate(self._letters)
        return re.sub(" +", " ", replaced).strip()


class _Reader:
    """Goes through the head of the file."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data, self._place = data, 8
        if bytes(data[:4]) != MAGIC:
            raise ValueError("another kind of file")

    def number(self, kind: str) -> Any:
        (value,) = struct.unpack(kind, self.array("u1", struct.calcsize(kind)).tobytes())
        return value

    def sizes(self) -> list[int]:
        return [self.number("<i") for _ in range(7)]

    def array(self, kind: str, count: int) -> NDArray[Any]:
        made = np.frombuffer(self._data, kind, count, self._place)
        self._place += made.nbytes
        return made

    def tokenizer(self, longest: int) -> tuple[Any, dict[int, str]]:
        """The tokenizer, and what stands for letters that are replaced first."""
        pieces, start, end, _, unknown = (self.number("<i") for _ in range(5))
        size = self.number("<Q")
        places, scores = self.array("<u4", pieces + 1).tolist(), self.array("<f4", pieces).tolist()
        text = self.array("u1", size).tobytes()
        names = [text[first:last].decode() for first, last in itertools.pairwise(places)]
        letters: dict[int, str] = {}
        count, _ = self.number("<i"), self.number("<I")
        for _ in range(count):
            letter, others = self.number("<I"), self.number("<B")
            letters[letter] = "".join(map(chr, self.array("<u4", others).tolist()))
        purpose = "the sentence encoder"
        models, parts = require("tokenizers.models", purpose=purpose), require("tokenizers", purpose=purpose)
        tokenizer = parts.Tokenizer(models.Unigram(list(zip(names, scores, strict=True)), unk_id=unknown))
        tokenizer.pre_tokenizer = parts.pre_tokenizers.Metaspace()
        tokenizer.post_processor = parts.processors.TemplateProcessing(
            single=f"{names[start]} $A {names[end]}", special_tokens=[(names[start], start), (names[end], end)]
        )
        tokenizer.enable_truncation(longest)
        return tokenizer, letters

    def tensors(self) -> dict[str, NDArray[np.uint8]]:
        """The bytes of every tensor, by name."""
        found = {}
        for _ in range(self.number("<i")):
            name = self.array("u1", self.number("<H")).tobytes().decode()
            self.number("<B")
            self.number("<I")
            place, size = self.number("<Q"), self.number("<Q")
            found[name] = self._data[place : place + size]
            if len(found[name]) != size:
                raise ValueError(f"{name} is cut short")
        return found


class _PackedWeights(BertWeights):
    """The tensors, unpacked under the names that BERT's have."""

    def __init__(
        self, packed: dict[str, NDArray[np.uint8]], width: int, inner: int, words: int, layers: int, heads: int
    ) -> None:
        plain = {name: data.view("<f4") for name, data in packed.items() if name.endswith((".b", "ln.w"))}
        arrays: dict[str, Vectors] = {
            "embeddings.position_embeddings.weight": packed["emb.pos"].view("<f4").reshape(-1, width),
            "embeddings.token_type_embeddings.weight": packed["emb.type"].view("<f4").reshape(-1, width),
            "embeddings.LayerNorm.weight": plain["emb.ln.w"],
            "embeddings.LayerNorm.bias": plain["emb.ln.b"],
        }
        self._packed: dict[str, tuple[NDArray[Any], int]] = {}
        for layer in range(layers):
            for short, name in _PLAIN.items():
                arrays[f"encoder.layer.{layer}.{name}.weight"] = plain[f"l{layer}.{short}.w"]
                arrays[f"encoder.layer.{layer}.{name}.bias"] = plain[f"l{layer}.{short}.b"]
            for short, name in _PACKED.items():
                rows = inner if short == "fi" else width
                self._packed[f"encoder.layer.{layer}.{name}"] = packed[f"l{layer}.{short}.w"].view(_BLOCK), rows
                arrays[f"encoder.layer.{layer}.{name}.bias"] = plain[f"l{layer}.{short}.b"]
        self._words = packed["emb.word"].view(_BLOCK).reshape(words, width // _PER_BLOCK)
        super().__init__(arrays, "bert", (width // heads) ** -0.5)

    def pair(self, name: str) -> tuple[Vectors, Vectors]:
        if name not in self._packed:
            return super().pair(name)
        blocks, rows = self._packed[name]
        return unpack(blocks.reshape(rows, -1)), self._arrays[f"{name}.bias"]

    def word_vectors(self, ids: Ids) -> Vectors:
        return unpack(self._words[ids])


def unpack(blocks: NDArray[Any]) -> Vectors:
    """Blocks (…, count) as numbers (…, 32 · count): the low halves of the bytes, then the high ones, less 8.

    >>> block = np.array([(0.5, [0x19] + [0x88] * 15)], _BLOCK)
    >>> unpack(block)[[0, 1, 16, 17]]
    array([ 0.5,  0. , -3.5,  0. ], dtype=float32)
    """
    numbers = blocks["numbers"]
    both = np.concatenate([numbers & 0x0F, numbers >> 4], axis=-1).astype(np.float32) - 8
    return cast(Vectors, (both * blocks["scale"].astype(np.float32)[..., None]).reshape(*blocks.shape[:-1], -1))
