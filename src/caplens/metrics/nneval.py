"""NNEval: a network that tells captions by people from captions by machines; the score is the probability of "people".

N. Sharif, L. White, M. Bennamoun, S. A. A. Shah. NNEval: neural network based evaluation metric for image captioning.
ECCV 2018.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np

from caplens.errors import InputError
from caplens.metrics.base import Floats, Metric, Statistics, Workspace, reference_counts, register
from caplens.metrics.bleu import Bleu1, Bleu2, Bleu3, Bleu4
from caplens.metrics.cider import CiderD
from caplens.metrics.meteor import Meteor
from caplens.metrics.network import Contributions, Network
from caplens.metrics.wmd import Wmd
from caplens.text.coco_idf import coco_val_idf
from caplens.weights import digest, shipped

# The released order.
FEATURES = ("METEOR", "WMD", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "SPICE", "CIDEr/10")
HIDDEN = 72


@register
class NNEval(Metric):
    """P(a person wrote it) from eight metrics; `weights` is "default", a file of `caplens train nneval`, or an npz."""

    name = "nneval"
    needs = frozenset({"references"})
    paper = "Sharif et al. 2018, ECCV"
    summary = "a network over METEOR, WMD, BLEU, SPICE and CIDEr: probability that a person wrote the caption"

    def __init__(self, *, weights: str | os.PathLike[str] = "default") -> None:
        self.weights = weights

    def _path(self) -> Path:
        if os.fspath(self.weights) == "default":
            return shipped("nneval")
        return Path(self.weights)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        path = self._path()
        network = load_network(path)
        return (("weights", f"{path.stem}@{digest(path)[:12]}"), ("scaled", "min-max" if _is_scaled(network) else "no"))

    def statistics(self, work: Workspace) -> Statistics:
        network = load_network(self._path())
        features = nneval_features(work)
        references = reference_counts(work.captions.references or [])
        return Statistics(
            network(features)[:, None],
            details=Contributions(network, features),
            facts={"references": references},
        )


def nneval_features(work: Workspace) -> Floats:
    """One row of the eight features per caption."""
    from caplens.metrics import load_metric

    metrics: list[Metric] = [Meteor(), Wmd(), Bleu1(), Bleu2(), Bleu3(), Bleu4()]
    metrics += [load_metric("spice"), CiderD(idf=coco_val_idf())]
    results = [work.result(metric) for metric in metrics]
    features = np.stack([result.scores for result in results], axis=1)
    features[:, -1] /= 10
    return features


@functools.lru_cache(maxsize=4)
def load_network(path: Path) -> Network:
    """A network with NNEval's inputs, from our safetensors or from the released variables in an npz file."""
    network = _from_released(path) if path.suffix == ".npz" else Network.load(path)
    if network.features != FEATURES:
        raise InputError(f"these weights take {', '.join(network.features)}", where=str(path), remedy="not nneval's")
    return network


def _from_released(path: Path) -> Network:
    """The released network has two outputs and a softmax; their difference through a logistic function is the same."""
    if not path.is_file():
        raise InputError("there are no weights here", where=str(path))
    with np.load(path) as arrays:
        try:
            pairs = [
                (arrays[name.format("W")].astype(np.float64), arrays[name.format("b")].astype(np.float64))
                for name in ("hiddenlayer__layer1__{}1", "hiddenlayer__layer2__{}2", "out_layer__out__{}_out")
            ]
        except KeyError as error:
            remedy = "it needs the released checkpoint's variables, see docs/nneval.md"
            raise InputError(f"no variable {error}", where=str(path), remedy=remedy) from None
    weight, bias = pairs[-1]
    pairs[-1] = (weight[:, 1:] - weight[:, :1], bias[1:] - bias[:1])
    count = len(FEATURES)
    # The released script does not scale its features: low −1 and high 1 leave them as they are.
    return Network(FEATURES, tuple(pairs), low=-np.ones(count), high=np.ones(count), usual=np.full(count, 0.3))


def _is_scaled(network: Network) -> bool:
    return not (np.all(network.low == -1) and np.all(network.high == 1))
