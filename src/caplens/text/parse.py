"""Tags and dependencies of captions: the networks of spaCy's English pipelines, run without spaCy.

A pipeline's files hold three networks. One gives each token a vector (hashed word features, then four convolutions over
the neighbors), one reads a tag off that vector, one drives an arc-eager parser. Here they run over many captions at
once, and because captions repeat themselves (a man in a …), every convolution is done once per distinct neighborhood.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.native._kernels import parse_arcs

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

BATCH = 32768  # tokens at a time; at most 128 MB for the parser's features
LONGEST = 400  # tokens; of what is longer only the start is parsed, so that no text can take minutes
MASK = (1 << 64) - 1
PADDING = 4  # empty tokens around each text, as many as there are convolutions
# Strings with a fixed id in spaCy (its symbols); all others get their hash.
SYMBOLS = {
    name: 398 + number
    for names in (
        "acomp advcl advmod agent amod appos attr aux auxpass cc ccomp complm conj cop csubj csubjpass dep det dobj "
        "expl hmod hyph infmod intj iobj mark meta neg nmod nn npadvmod nsubj nsubjpass num number oprd obj obl "
        "parataxis partmod pcomp pobj poss possessive preconj prep prt punct quantmod relcl rcmod root xcomp acl",
    )
    for number, name in enumerate(names.split())
}

# Normal forms spaCy gives to punctuation and money in every language.
NORMS = {
    form: norm
    for norm, forms in {
        "'": "’ ‘ ´ `",
        '"': "” “ '' `` ´´ „ » « ‘‘ ’’",
        "-": "— – -- --- ——",
        "$": "€ £ ¥ ฿ ₺ ₹ ৳ ₩ ₣",
        "...": "…",
        "'s": "’s",
    }.items()
    for form in forms.split()
}


class Parse(NamedTuple):
    """A parsed text: one entry per token; the head of a root is itself."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]


class Parser:
    """A spaCy pipeline of the small or medium size (version 3), as a folder of files."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self._load()
        except (OSError, KeyError, IndexError, ValueError) as error:
            raise InputError(
                f"not a spaCy pipeline with a tagger and a parser ({error})",
                where=os.fspath(folder),
                remedy="use en_core_web_sm or en_core_web_md: caplens weights fetch en_core_web_md",
            ) from error

    def _load(self) -> None:
        meta = json.loads((self.folder / "meta.json").read_text("utf-8"))
        self.name = f"{meta['lang']}_{meta['name']}-{meta['version']}"
        encoder = _network(self.folder / "tok2vec" / "model")
        self._tables = [params["E"] for params, _ in encoder if "E" in params]
        self._seeds = [_unpack(attrs["seed"]) for _, attrs in encoder if "seed" in attrs]
        mixers = [params for params, _ in encoder if "W" in params and params["W"].ndim == 3]
        norms = [params for params, _ in encoder if "G" in params]
        # The layer that mixes a word's features is wider than the convolutions; where it stands in the file varies.
        widths = [params["W"].shape[2] for params in mixers]
        first = widths.index(max(widths))
        layers = [
            _Maxout(mixer["W"], mixer["b"], norm["G"], norm["b"]) for mixer, norm in zip(mixers, norms, strict=True)
        ]
        self._mixer = layers.pop(first)
        self._convolutions = layers
        self._static = next((params["W"] for params, _ in encoder if "W" in params and params["W"].ndim == 2), None)

        tagger = _network(self.folder / "tagger" / "model")
        self._tagger = next(params for params, _ in tagger if "W" in params)
        self._tags: list[str] = json.loads((self.folder / "tagger" / "cfg").read_text("utf-8"))["labels"]

        parser = [params for params, _ in _network(self.folder / "parser" / "model") if "W" in params]
        self._lower = next(params for params in parser if "pad" in params)
        self._upper, self._reduce = (params for params in parser if "pad" not in params)
        counts = json.loads(_unpack((self.folder / "parser" / "moves").read_bytes())["moves"])
        # The order in which spaCy numbers its moves: by kind, then the most frequent label first.
        moves = [
            (int(kind), label)
            for kind, labels in sorted(counts.items())
            for _, label in sorted(((count, label) for label, count in labels.items()), reverse=True)
        ]
        self._kinds = np.array([kind for kind, _ in moves], dtype=np.int32)
        self._labels = [label for _, label in moves]

        lookups = _unpack((self.folder / "vocab" / "lookups.bin").read_bytes())
        self._norms: dict[int, str] = lookups.get("lexeme_norm", {})
        self._rows: dict[int, int] = {}
        if self._static is not None:
            self._rows = _unpack((self.folder / "vocab" / "key2row").read_bytes())
            self._vectors = np.load(self.folder / "vocab" / "vectors", mmap_mode="r", allow_pickle=False)

    def parse(self, texts: Sequence[Sequence[str]]) -> Iterator[Parse]:
        """Parse tokenized texts; those without a token too."""
        some: list[tuple[str, ...]] = []
        tokens = 0
        for words in texts:
            some.append(tuple(words[:LONGEST]))
            tokens += len(some[-1])
            if tokens >= BATCH:
                yield from self._parse(some)
                some, tokens = [], 0
        yield from self._parse(some)

    def _parse(self, texts: list[tuple[str, ...]]) -> Iterator[Parse]:
        known: dict[str, int] = {}
        flat = [-1] * PADDING
        for words in texts:
            flat += [known.setdefault(word, len(known)) for word in words]
            flat += [-1] * PADDING
        ids = np.array(flat, dtype=np.int64) + 1  # the padding is 0
        vectors = np.vstack([np.zeros((1, self._mixer.width), np.float32), self._embed(list(known))])
        tokens = ids > 0
        for number, layer in enumerate(self._convolutions, 1):
            # Padding matters only as far as the layers still to come can see it.
            near = tokens
            for _ in self._convolutions[number:]:
                near = near | np.roll(near, 1) | np.roll(near, -1)
            vectors, ids = layer.convolve(vectors, ids, near)
        used, rows = np.unique(ids[tokens], return_inverse=True)
        vectors = vectors[used]
        tags = (vectors @ self._tagger["W"].T + self._tagger["b"]).argmax(axis=1)[rows]
        lengths = np.array([len(words) for words in texts], dtype=np.int32)
        hidden = vectors @ self._reduce["W"].T + self._reduce["b"]
        lower = self._lower["W"]
        arcs = parse_arcs(
            np.asarray(hidden @ lower.reshape(-1, lower.shape[-1]).T, dtype=np.float32),
            rows.astype(np.int32),
            lengths,
            self._lower["pad"].reshape(-1),
            self._lower["b"].reshape(-1),
            self._upper["W"],
            self._upper["b"],
            self._kinds,
        )
        heads, moves, start = arcs[:, 0].tolist(), arcs[:, 1].tolist(), 0
        tag_names = [self._tags[tag] for tag in tags.tolist()]
        for words in texts:
            stop = start + len(words)
            labels = ["ROOT" if move < 0 else self._labels[move] for move in moves[start:stop]]
            own = [token if head < 0 else head for token, head in enumerate(heads[start:stop])]
            if any("||" in label for label in labels):
                _deprojectivise(own, labels)
            yield Parse(words, tuple(tag_names[start:stop]), tuple(own), tuple(labels))
            start = stop

    def _embed(self, words: list[str]) -> Floats:
        """The vector of each word on its own."""
        if not words:
            return np.zeros((0, self._mixer.width), np.float32)
        features = np.array([self._features(word) for word in words], dtype=np.uint64)
        parts = [
            table[_hash_rows(features[:, column], seed, len(table))].sum(axis=1)
            for column, (table, seed) in enumerate(zip(self._tables, self._seeds, strict=True))
        ]
        if self._static is not None:
            rows = np.array([self._rows.get(_string_id(word), -1) for word in words])
            parts.append(np.where((rows >= 0)[:, None], self._vectors[np.maximum(rows, 0)], 0) @ self._static.T)
        return self._mixer(np.hstack(parts))

    def _features(self, word: str) -> tuple[int, ...]:
        """Normal form, first letter, last three, shape, followed by a space (always), is a space (never)."""
        norm = self._norms.get(_string_id(word)) or NORMS.get(word, word.lower())
        return (*(_string_id(text) for text in (norm, word[:1], word[-3:], _shape(word))), 1, 0)


class _Maxout:
    """The largest of several linear maps, layer-normalized; as a convolution with a residual over three neighbors."""

    def __init__(self, weights: Floats, bias: Floats, gain: Floats, shift: Floats) -> None:
        self.width, self._pieces, inputs = weights.shape
        # Pieces outermost: the maximum is then taken over whole blocks.
        self._weights = weights.transpose(1, 0, 2).reshape(-1, inputs)
        self._bias = bias.T.reshape(-1)
        self._gain, self._shift = gain, shift

    def __call__(self, inputs: Floats) -> Floats:
        return self._activate(inputs @ self._weights.T)

    def _activate(self, sums: Floats) -> Floats:
        sums += self._bias
        pieces = [sums[:, start : start + self.width] for start in range(0, sums.shape[1], self.width)]
        best = functools.reduce(np.maximum, pieces)
        best -= best.mean(axis=1, keepdims=True)
        best *= self._gain / np.sqrt(np.square(best).mean(axis=1, keepdims=True) + 1e-8)
        best += self._shift
        return best

    def convolve(self, vectors: Floats, ids: Ids, wanted: NDArray[np.bool_]) -> tuple[Floats, Ids]:
        """New vectors of the distinct neighborhoods, and which of them each wanted position has."""
        count = len(vectors)
        before, after = np.roll(ids, 1), np.roll(ids, -1)
        keys, new = np.unique(np.where(wanted, (before * count + ids) * count + after, 0), return_inverse=True)
        right, rest = keys % count, keys // count
        here, left = rest % count, rest // count
        out = np.empty((len(keys), self.width), np.float32)
        parts = [vectors @ part.T for part in np.split(self._weights, 3, axis=1)]
        for start in range(0, len(keys), 4096):  # small enough to stay in the processor's cache
            some = slice(start, start + 4096)
            sums = parts[0][left[some]]
            sums += parts[1][here[some]]
            sums += parts[2][right[some]]
            out[some] = self._activate(sums)
        out += vectors[here]
        return out, new.reshape(-1)


def _deprojectivise(heads: list[int], labels: list[str]) -> None:
    """Undo crossing arcs: `a||b` is an `a` that belongs below the nearest `b` under its head (Nivre & Nilsson 2005)."""
    for token, label in enumerate(labels):
        own, mark, wanted = label.partition("||")
        if not mark:
            continue
        labels[token] = own
        level = [heads[token]]
        while level:
            below = [
                child
                for node in level
                for child, head in enumerate(heads)
                if head == node and child not in (node, token)
            ]
            found = next((child for child in below if labels[child] == wanted), None)
            if found is not None:
                heads[token] = found
                break
            level = below


def _hash_rows(ids: NDArray[np.uint64], seed: int, count: int) -> NDArray[np.int64]:
    """Four rows of a hashed table per id (MurmurHash3, 128 bit, of one 64-bit number)."""
    one = ids * np.uint64(0x87C37B91114253D5)
    one = (one << np.uint64(31)) | (one >> np.uint64(33))
    one *= np.uint64(0x4CF5AD432745937F)
    one ^= np.uint64(seed ^ 8)
    two = np.full_like(one, seed ^ 8)
    one += two
    two += one
    for half in (one, two):
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            half ^= half >> np.uint64(33)
            half *= np.uint64(factor)
        half ^= half >> np.uint64(33)
    one += two
    two += one
    low = np.uint64(0xFFFFFFFF)
    quarters = np.stack([one & low, one >> np.uint64(32), two & low, two >> np.uint64(32)], axis=1)
    return (quarters % np.uint64(count)).astype(np.int64)


@functools.lru_cache(maxsize=1 << 16)
def _string_id(text: str) -> int:
    """spaCy's id of a string: MurmurHash2, 64 bit, seed 1."""
    if not text:
        return 0
    if text in SYMBOLS:
        return SYMBOLS[text]
    data = text.encode("utf-8", "surrogatepass")
    mix = 0xC6A4A7935BD1E995
    value = 1 ^ (len(data) * mix & MASK)
    whole = len(data) & ~7
    for start in range(0, whole, 8):
        block = int.from_bytes(data[start : start + 8], "little") * mix & MASK
        block = (block ^ (block >> 47)) * mix & MASK
        value = (value ^ block) * mix & MASK
    if len(data) > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * mix & MASK
    value = (value ^ (value >> 47)) * mix & MASK
    return value ^ (value >> 47)


def _shape(word: str) -> str:
    """Capitals, letters and digits by kind, runs cut at four.

    >>> _shape("t-shirts"), _shape("1990s")
    ('x-xxxx', 'ddddx')
    """
    if len(word) >= 100:
        return "LONG"
    kinds = ["d" if c.isdigit() else c if not c.isalpha() else "X" if c.isupper() else "x" for c in word]
    shape, run = kinds[:1], 1
    for before, kind in pairwise(kinds):
        run = run + 1 if kind == before else 1
        if run <= 4:
            shape.append(kind)
    return "".join(shape)


def _network(path: Path) -> list[tuple[dict[str, Floats], dict[str, bytes]]]:
    """The parameters and attributes of every layer of a network that thinc wrote."""
    content = _unpack(path.read_bytes())
    return list(zip(content["params"], content["attrs"], strict=True))


def _unpack(data: bytes) -> Any:
    msgpack = require("msgpack", purpose="the parser")

    def array(entry: dict[Any, Any]) -> Any:
        if b"nd" in entry:
            return np.frombuffer(entry[b"data"], dtype=entry[b"type"]).reshape(entry[b"shape"])
        return entry

    return msgpack.unpackb(data, strict_map_key=False, object_hook=array)
