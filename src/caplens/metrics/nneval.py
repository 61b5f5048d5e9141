"""NNEval: a network that tells captions by people from captions by machines; the score is the probability of "people".

N. Sharif, L. White, M. Bennamoun, S. A. A. Shah. NNEval: neural network based evaluation metric for image captioning.
ECCV 2018.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.errors import InputError, MissingData
from caplens.files import cache_folder
from caplens.metrics.base import Floats, Metric, Statistics, Workspace, reference_counts, register
from caplens.metrics.bleu import Bleu1, Bleu2, Bleu3, Bleu4
from caplens.metrics.cider import CiderD
from caplens.metrics.meteor import Meteor
from caplens.metrics.network import Contributions, Network
from caplens.metrics.wmd import Wmd
from caplens.tensorflow_bundle import read_bundle
from caplens.text.coco_idf import coco_val_idf
from caplens.weights import digest, shipped

# The released order.
FEATURES = ("METEOR", "WMD", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "SPICE", "CIDEr/10")
HIDDEN = 72
HOME = "github.com/NaehaSharif/NNEval"


@register
class NNEval(Metric):
    """P(a person wrote it) from eight metrics.

    Args:
        weights: "default" (ours), "released" (the authors', which has to be put where `released_path` looks), a file of
            `caplens train nneval`, a TensorFlow checkpoint (its prefix or its .index file) or an npz of its variables.
    """

    name = "nneval"
    needs = frozenset({"references"})
    paper = "Sharif et al. 2018, ECCV"
    summary = "a network over METEOR, WMD, BLEU, SPICE and CIDEr: probability that a person wrote the caption"
    english_only = True

    def __init__(self, *, weights: str | os.PathLike[str] = "default") -> None:
        self.weights = weights

    def _path(self) -> Path:
        name = os.fspath(self.weights)
        return {"default": lambda: shipped("nneval"), "released": released_path}.get(name, lambda: Path(name))()

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        path = self._path()
        network = load_network(path)
        return (
            ("weights", f"{path.stem}@{digest(_weights_file(path))[:12]}"),
            ("scaled", "min-max" if _is_scaled(network) else "no"),
        )

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


def released_path() -> Path:
    """Where the released network lies in the cache: an npz of its variables, or its checkpoint as it was published."""
    folder = cache_folder() / "weights" / "nneval-released"
    found = sorted([*folder.glob("*.npz"), *folder.glob("*.index")]) if folder.is_dir() else []
    if not found:
        raise MissingData(
            f"the released network of NNEval is not on this machine: put the checkpoint of {HOME} "
            f"(its .index and .data files) into {folder}, or give its path as weights="
        )
    return found[0]


@functools.lru_cache(maxsize=4)
def load_network(path: Path) -> Network:
    """A network with NNEval's inputs: our safetensors, or the released variables (npz, TensorFlow checkpoint)."""
    network = Network.load(path) if path.suffix == ".safetensors" else _from_released(path)
    if network.features != FEATURES:
        raise InputError(f"these weights take {', '.join(network.features)}", where=str(path), remedy="not nneval's")
    return network


def _from_released(path: Path) -> Network:
    """The released network has two outputs and a softmax; their difference through a logistic function is the same."""
    arrays = _released_variables(path)
    names = [("hiddenlayer/layer1/W1", "hiddenlayer/layer1/b1"), ("hiddenlayer/layer2/W2", "hiddenlayer/layer2/b2")]
    names.append(("out_layer/out/W_out", "out_layer/out/b_out"))
    try:
        pairs = [(arrays[weight].astype(np.float64), arrays[bias].astype(np.float64)) for weight, bias in names]
    except KeyError as error:
        remedy = "it needs the released checkpoint's variables, see docs/nneval.md"
        raise InputError(f"no variable {error}", where=str(path), remedy=remedy) from None
    weight, bias = pairs[-1]
    pairs[-1] = (weight[:, 1:] - weight[:, :1], bias[1:] - bias[:1])
    count = len(FEATURES)
    # The released script does not scale its features: low −1 and high 1 leave them as they are.
    return Network(FEATURES, tuple(pairs), low=-np.ones(count), high=np.ones(count), usual=np.full(count, 0.3))


def _released_variables(path: Path) -> Mapping[str, NDArray[Any]]:
    """Variables by TensorFlow's names; npz files cannot hold a slash, so there it is two underscores."""
    if path.suffix == ".npz":
        if not path.is_file():
            raise InputError("there are no weights here", where=str(path))
        with np.load(path) as arrays:
            return {name.replace("__", "/"): arrays[name] for name in arrays}
    return read_bundle(path.with_suffix("") if path.suffix == ".index" else path)


def _weights_file(path: Path) -> Path:
    """What a signature sums: of a checkpoint the index, which holds the sums of all tensors."""
    return path if path.suffix in {".safetensors", ".npz", ".index"} else path.with_name(path.name + ".index")


def _is_scaled(network: Network) -> bool:
    return not (np.all(network.low == -1) and np.all(network.high == 1))
