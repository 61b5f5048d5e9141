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

from caplens.core.errors import InputError, MissingData
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._mlp import Contributions, FeatureMLP
from caplens.metrics.base import Metric, Resources, Statistics, reference_counts, register
from caplens.metrics.bleu import Bleu1, Bleu2, Bleu3, Bleu4
from caplens.metrics.cider import CiderD
from caplens.metrics.meteor import Meteor
from caplens.metrics.spice import Spice
from caplens.metrics.wmd import Wmd
from caplens.storage.digests import content_digest
from caplens.storage.identity import Identity
from caplens.storage.paths import data_folder
from caplens.storage.weights import model_digest, shipped
from caplens.text.coco_idf import coco_val_idf

# The released order.
FEATURES = ("METEOR", "WMD", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "SPICE", "CIDEr/10")
HIDDEN = 72
HOME = "github.com/NaehaSharif/NNEval"


@register
class NNEval(Metric):
    """P(a person wrote it) from eight metrics.

    Args:
        weights: "default" (ours), "released" (the authors', an npz that has to be put where `released_path` looks), a
            file of `caplens train nneval`, or an npz of the released variables.
    """

    name = "nneval"
    needs = frozenset({"references"})
    paper = "Sharif et al. 2018, ECCV"
    summary = "a network over METEOR, WMD, BLEU, SPICE and CIDEr: probability that a person wrote the caption"
    english_only = True

    def __init__(self, *, weights: str | os.PathLike[str] = "default") -> None:
        self.weights = options.path("weights", weights, "path, default or released")

    def _path(self) -> Path:
        name = os.fspath(self.weights)
        return {"default": lambda: shipped("nneval"), "released": released_path}.get(name, lambda: Path(name))()

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        path = self._path()
        network = load_network(path)
        return (
            ("weights", f"{path.stem}@{content_digest(path)[:12]}"),
            ("scaled", "min-max" if _is_scaled(network) else "no"),
        )

    def resources(self) -> Resources:
        return {"weights": model_digest(self._path()), "features": features_identity()}

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
    results = [metric.result(work) for metric in _feature_metrics()]
    features = np.stack([result.scores for result in results], axis=1)
    features[:, -1] /= 10
    return features


def features_identity() -> Identity:
    """What the eight features depend on besides the captions."""
    return Identity.of({"metrics": [metric.identity() for metric in _feature_metrics()], "code": nneval_features})


def _feature_metrics() -> list[Metric]:
    return [Meteor(), Wmd(), Bleu1(), Bleu2(), Bleu3(), Bleu4(), Spice(), CiderD(idf=coco_val_idf())]


def released_path() -> Path:
    """Return where the released network lies in the data folder: an npz of its variables."""
    folder = data_folder() / "weights" / "nneval-released"
    archives = sorted(folder.glob("*.npz")) if folder.is_dir() else []
    if not archives:
        raise MissingData(
            f"the released network of NNEval is not on this machine: convert the checkpoint of {HOME} with "
            f"tools/convert_nneval_checkpoint.py and put the npz into {folder}, or give its path as weights="
        )
    return archives[0]


def load_network(path: Path) -> FeatureMLP:
    """A network with NNEval's inputs: our safetensors, or the released variables as npz."""
    return _load(path, model_digest(path))


@functools.lru_cache(maxsize=4)
def _load(path: Path, _: str) -> FeatureMLP:
    network = FeatureMLP.load(path) if path.suffix == ".safetensors" else _from_released(path)
    if network.features != FEATURES:
        raise InputError(f"these weights take {', '.join(network.features)}", where=str(path), remedy="not nneval's")
    return network


def _from_released(path: Path) -> FeatureMLP:
    """The released network has two outputs and a softmax; their difference through a logistic function is the same."""
    arrays = _released_variables(path)
    names = [("hiddenlayer/layer1/W1", "hiddenlayer/layer1/b1"), ("hiddenlayer/layer2/W2", "hiddenlayer/layer2/b2")]
    names.append(("out_layer/out/W_out", "out_layer/out/b_out"))
    try:
        pairs = [(arrays[weight].astype(np.float64), arrays[bias].astype(np.float64)) for weight, bias in names]
    except KeyError as error:
        remedy = "it needs the released checkpoint's variables, see docs/metrics/nneval.md"
        raise InputError(f"no variable {error}", where=str(path), remedy=remedy) from None
    weight, bias = pairs[-1]
    pairs[-1] = (weight[:, 1:] - weight[:, :1], bias[1:] - bias[:1])
    count = len(FEATURES)
    # The released script does not scale its features: low −1 and high 1 leave them as they are.
    return FeatureMLP(FEATURES, tuple(pairs), low=-np.ones(count), high=np.ones(count), usual=np.full(count, 0.3))


def _released_variables(path: Path) -> Mapping[str, NDArray[Any]]:
    """Return variables by TensorFlow's names; npz files cannot hold a slash, so there it is two underscores."""
    if not path.is_file():
        raise InputError("there are no weights here", where=str(path))
    if path.suffix != ".npz":
        raise InputError("neither safetensors nor npz", where=str(path), remedy="see docs/metrics/nneval.md")
    with np.load(path) as arrays:
        return {name.replace("__", "/"): arrays[name] for name in arrays}


def _is_scaled(network: FeatureMLP) -> bool:
    return not (np.all(network.low == -1) and np.all(network.high == 1))
