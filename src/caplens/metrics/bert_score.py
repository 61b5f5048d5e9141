"""BERTScore: every token meets its most similar token on the other side, in the states of a language model.

T. Zhang, V. Kishore, F. Wu, K. Weinberger, Y. Artzi. BERTScore: evaluating text generation with BERT. ICLR 2020.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from caplens.core.captions import CaptionSet, stretches
from caplens.core.errors import InputError
from caplens.core.types import Floats, Vectors, narrow_unit
from caplens.core.workspace import Workspace
from caplens.encoders.tokens import TokenEncoder, load_token_encoder
from caplens.metrics import _options as options
from caplens.metrics._sentences import parts_fact, parts_note
from caplens.metrics.base import Metric, Resources, Statistics, reference_counts, register
from caplens.storage import weights
from caplens.text.sentences import TextParts

Part = Literal["f", "precision", "recall"]
PARTS: tuple[Part, ...] = ("precision", "recall", "f")

DEFAULT_ENCODER = "all-mpnet-base-v2"
# Which layer tells good captions from bad ones best; others as published with the paper's code are given by `layer=`.
DEFAULT_LAYERS = {"all-mpnet-base-v2": 9}

# Token states of so many texts are in memory at once.
TEXTS_AT_ONCE = 6000
# Tokens of a caption that are compared at once: long texts against long ones take memory.
TOKENS_AT_ONCE = 1024


@register
class BertScore(Metric):
    """Precision, recall and F of greedily matched token states; the best reference counts, for each of the three."""

    name = "bert-score"
    needs = frozenset({"references"})
    paper = "Zhang et al. 2020, ICLR"
    summary = "greedy matching of contextual token embeddings (F; P and R in the details)"

    def __init__(
        self,
        *,
        text_encoder: str | os.PathLike[str] = DEFAULT_ENCODER,
        layer: int | None = None,
        idf: bool = False,
        baseline: str | os.PathLike[str] | None = None,
        part: Part = "f",
    ) -> None:
        self.text_encoder = options.path("text_encoder", text_encoder, "name or a folder of a language model")
        self.layer = None if layer is None else options.whole_number("layer", layer, low=0)
        self.idf = options.flag("idf", idf)
        self.baseline = None if baseline is None else options.path("baseline", baseline, "csv file")
        self.part = options.choice("part", part, PARTS)

    def _layer(self) -> int | None:
        """None is the last one."""
        return DEFAULT_LAYERS.get(os.fspath(self.text_encoder)) if self.layer is None else self.layer

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        layer = self._layer()
        return (
            ("encoder", weights.signature_name(self.text_encoder)),
            ("layer", "last" if layer is None else str(layer)),
            ("idf", "references" if self.idf else "no"),
            ("baseline", "no" if self.baseline is None else Path(self.baseline).name),
            ("part", self.part),
        )

    def whole_set(self, captions: CaptionSet | None = None) -> str:
        return "with idf=true, tokens are counted over all references" if self.idf else ""

    def resources(self) -> Resources:
        encoder = {"text encoder": weights.model_digest(self.text_encoder)}
        return encoder if self.baseline is None else {**encoder, "baseline": weights.model_digest(self.baseline)}

    def statistics(self, work: Workspace) -> Statistics:
        """Columns: precision, recall, F."""
        references = work.captions.references or []
        encoder = load_token_encoder(self.text_encoder)
        layer = encoder.layers if (chosen := self._layer()) is None else chosen
        if not 0 <= layer <= encoder.layers:
            raise InputError(
                f"bert-score: {self.text_encoder} has no layer {layer}", remedy=f"take 0 to {encoder.layers}"
            )
        weight_of = _inverse_frequency(encoder, references) if self.idf else {}
        rows = np.empty((len(work.captions), 3))
        for stretch, texts in stretches(work.captions, TEXTS_AT_ONCE):
            tokens = dict(zip(texts, _tokens(encoder, texts, layer, weight_of if self.idf else None), strict=True))
            for row in stretch:
                candidate = tokens[work.captions.candidates[row]]
                pairs = np.array([_match(*candidate, *tokens[text]) for text in references[row]])
                rows[row] = pairs.max(axis=0)
            work.progress("matching tokens", stretch.stop, len(rows))
        if self.baseline is not None:
            floor = read_baseline(self.baseline, layer)
            rows = (rows - floor) / (1 - floor)
        details: list[dict[str, Any]] = [dict(zip(PARTS, row, strict=True)) for row in rows.tolist()]
        parts = TextParts.of(work.captions.candidates, encoder.fits)
        flat = TextParts.of([text for texts in references for text in texts], encoder.fits)
        facts = {"references": reference_counts(references), **parts_fact("tokens", parts, flat)}
        notes = (parts_note(parts, encoder.longest),) if parts.cut else ()
        return Statistics(rows, details=details, notes=notes, facts=facts)

    def scores(self, rows: Floats) -> Floats:
        return rows[:, PARTS.index(self.part)]

    def corpus(self, sums: Floats, count: int) -> Floats:
        return sums[..., PARTS.index(self.part)] / count


def _inverse_frequency(encoder: TokenEncoder, references: list[list[str]]) -> dict[int, float]:
    """log((N+1) / (n+1)) for every token of the references; −1 holds the value of a token they lack."""
    texts = [text for each in references for text in each]
    parts = TextParts.of(distinct := list(dict.fromkeys(texts)), encoder.fits)
    tokens = encoder.tokenize(parts.texts)
    known = {
        text: list(chain(*tokens[start:end]))
        for text, start, end in zip(distinct, parts.starts, parts.ends, strict=True)
    }
    seen = Counter(token for text in texts for token in set(known[text]))
    weights = {token: float(np.log((len(texts) + 1) / (count + 1))) for token, count in seen.items()}
    weights[-1] = float(np.log(len(texts) + 1))
    return weights


def _tokens(
    encoder: TokenEncoder, texts: list[str], layer: int, weight_of: dict[int, float] | None
) -> list[tuple[Vectors, Floats]]:
    """Unit states of every text's tokens and the weight of each token, summing to one (or all zero).

    A text that is too long for the model is read in parts, and has the tokens of all of them.
    """
    parts = TextParts.of(texts, encoder.fits)
    tokens = encoder.tokenize(parts.texts)
    states = [narrow_unit(state) for state in encoder.states(tokens, layer)]
    weighted = []
    for start, end in zip(parts.starts, parts.ends, strict=True):
        if weight_of is None:  # start and end tokens may be matched but do not count
            weight = np.array([float(token not in encoder.special) for token in chain(*tokens[start:end])])
        else:
            weight = np.array([weight_of.get(token, weight_of[-1]) for token in chain(*tokens[start:end])])
        total = weight.sum()
        state = states[start] if end == start + 1 else np.concatenate(states[start:end])
        weighted.append((state, weight / total if total > 0 else np.zeros(len(weight))))
    return weighted


def _match(
    candidate: Vectors, weight: Floats, reference: Vectors, reference_weight: Floats
) -> tuple[float, float, float]:
    if not weight.any() or not reference_weight.any():  # an empty side: nothing is right, nothing is found
        return 0.0, 0.0, 0.0
    found, said = np.full(len(reference), -np.inf, np.float32), np.empty(len(candidate), np.float32)
    for start in range(0, len(candidate), TOKENS_AT_ONCE):
        similar = candidate[start : start + TOKENS_AT_ONCE] @ reference.T
        said[start : start + TOKENS_AT_ONCE] = similar.max(axis=1)
        found = np.maximum(found, similar.max(axis=0))
    precision, recall = float(said @ weight), float(found @ reference_weight)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


def read_baseline(path: str | os.PathLike[str], layer: int) -> Floats:
    """P, R and F that unrelated sentences reach at a layer, from a csv with the columns LAYER, P, R, F."""
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            table = {int(row["LAYER"]): [float(row[name]) for name in "PRF"] for row in csv.DictReader(stream)}
    except FileNotFoundError:
        raise InputError(f"there is no baseline file {os.fspath(path)}") from None
    except (KeyError, ValueError, TypeError):
        remedy = "the first line is LAYER,P,R,F, then one line per layer"
        raise InputError("not a baseline file", where=os.fspath(path), remedy=remedy) from None
    if layer not in table:
        raise InputError(f"no baseline for layer {layer}", where=os.fspath(path))
    return np.array(table[layer])
