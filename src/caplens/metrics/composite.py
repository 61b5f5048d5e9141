"""caplens, the learned composite: one score from meaning, words, order and length, learned without any rated set.

A monotone network over features of other metrics: a caption that is better in one of them never scores lower for it.
docs/composite.md says what it was trained on and how far it gets.
"""

from __future__ import annotations

import functools
import itertools
import os
from pathlib import Path

import numpy as np

from caplens.errors import InputError
from caplens.metrics.base import Floats, Metric, Statistics, Workspace, reference_counts, register
from caplens.metrics.bleu import Bleu1, Bleu2
from caplens.metrics.cider import CiderR
from caplens.metrics.meteor import Meteor
from caplens.metrics.network import Contributions, Network
from caplens.metrics.rouge import RougeL
from caplens.metrics.sentsim import similarities
from caplens.metrics.wmd import Wmd
from caplens.text.idf import IdfTable
from caplens.text.ptb import tokenise
from caplens.weights import digest, shipped

ENCODER = "all-MiniLM-L6-v2"
# So many of a good caption's word pairs are known; more says nothing about quality (95 % of people's captions have it).
USUAL_SHARE = 0.6
# All of them grow with quality.
FEATURES = (
    "meaning of the nearest reference",
    "meaning of the references together",
    "word mover's distance",
    "METEOR precision",
    "METEOR recall",
    "word pairs that people use",
    "CIDEr-R",
    "ROUGE-L",
    "BLEU-1",
    "BLEU-2",
    "not repeating words",
    "not longer than people write",
)


@register
class Composite(Metric):
    """0 to 1; `weights` is "default" or a file of `caplens train composite`."""

    name = "caplens"
    needs = frozenset({"references"})
    paper = ""
    summary = "learned composite of meaning, words, order and length; hard to game"

    def __init__(self, *, weights: str | os.PathLike[str] = "default") -> None:
        self.weights = weights

    def _path(self) -> Path:
        return shipped("caplens") if os.fspath(self.weights) == "default" else Path(self.weights)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        path = self._path()
        load_network(path)
        return (("weights", f"{path.stem}@{digest(path)[:12]}"), ("encoder", ENCODER))

    def statistics(self, work: Workspace) -> Statistics:
        network = load_network(self._path())
        features = composite_features(work)
        return Statistics(
            network(features)[:, None],
            details=Contributions(network, features),
            facts={"references": reference_counts(work.captions.references or [])},
        )


@functools.lru_cache(maxsize=4)
def load_network(path: Path) -> Network:
    """A network with these inputs."""
    network = Network.load(path)
    if network.features != FEATURES:
        raise InputError(f"these weights take {', '.join(network.features)}", where=str(path), remedy="train them anew")
    return network


@functools.cache
def own_idf() -> IdfTable:
    """Document frequencies for CIDEr-R, fixed, so that a caption's score does not depend on the others of its run."""
    return IdfTable.load(shipped("caplens-idf"))


def composite_features(work: Workspace) -> Floats:
    """One row of features per caption."""
    nearest, together = similarities(work, ENCODER)
    meteor = work.result(Meteor()).statistics
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = meteor[:, 0] / meteor[:, 2], meteor[:, 1] / meteor[:, 3]
    plain = [work.result(metric).scores for metric in (Wmd(), CiderR(idf=own_idf()), RougeL(), Bleu1(), Bleu2())]
    wmd, cider, rouge, one, two = plain
    columns = [nearest, together, wmd, precision, recall, _fluency(work), cider / 10, rouge, one, two, *_manners(work)]
    return np.nan_to_num(np.stack(columns, axis=1), nan=0.0, posinf=0.0, neginf=0.0)


@functools.cache
def _known_pairs() -> frozenset[tuple[str, str]]:
    """Pairs of words that stand beside each other in captions of at least two pictures."""
    table = own_idf()
    first = table.prefixes < len(table.words)
    pairs = zip(table.prefixes[first].tolist(), table.lasts[first].tolist(), strict=True)
    return frozenset((table.words[one], table.words[other]) for one, other in pairs)


def _fluency(work: Workspace) -> Floats:
    """The share of the caption's word pairs that people use, in these references or elsewhere: no list, no jumble."""
    known, references = _known_pairs(), work.captions.references or []
    texts = list(dict.fromkeys([*work.captions.candidates, *(text for each in references for text in each)]))
    words = {text: line.split() for text, line in zip(texts, tokenise(texts), strict=True)}
    shares = np.zeros(len(work.captions))
    for row, (candidate, each) in enumerate(zip(work.captions.candidates, references, strict=True)):
        pairs = list(itertools.pairwise(words[candidate]))
        near = {pair for text in each for pair in itertools.pairwise(words[text])}
        if pairs:
            shares[row] = sum(pair in known or pair in near for pair in pairs) / len(pairs)
    return np.minimum(shares, USUAL_SHARE)


def _manners(work: Workspace) -> tuple[Floats, Floats]:
    """How little the caption repeats itself, and how little it is longer than the longest reference; both at most 0."""
    references = work.captions.references or []
    texts = list(dict.fromkeys([*work.captions.candidates, *(text for each in references for text in each)]))
    counted = {}
    for text, tokens in zip(texts, (line.split() for line in tokenise(texts)), strict=True):
        counted[text] = len(tokens), len(tokens) - len(set(tokens))
    repeated, longer = np.empty(len(work.captions)), np.empty(len(work.captions))
    for row, (candidate, each) in enumerate(zip(work.captions.candidates, references, strict=True)):
        words, again = counted[candidate]
        most, most_again = max(counted[text][0] for text in each), max(counted[text][1] for text in each)
        repeated[row] = -max(0, again - most_again) / max(1, words)
        longer[row] = -max(0.0, float(np.log(max(1, words) / max(1, most))))
    return repeated, longer
