"""A small network over features of a caption, in numpy: what the learned metrics score with, and why."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.core.details import Contribution, Details, LazyDetails
from caplens.core.errors import InputError
from caplens.core.types import Floats
from caplens.storage.tensors import read_tensors, write_tensors


@dataclass(frozen=True)
class FeatureMLP:
    """Linear layers with ReLU between them and a logistic output, over scaled features."""

    features: tuple[str, ...]
    layers: tuple[tuple[Floats, Floats], ...]
    """Weight (in, out) and bias (out) of each layer; the last has one column."""
    low: Floats
    """A feature x enters as 2(x − low) / (high − low) − 1, not clipped."""
    high: Floats
    usual: Floats
    """The training set's mean caption, against which contributions are counted."""
    about: dict[str, str] = field(default_factory=dict)
    extra: dict[str, NDArray[Any]] = field(default_factory=dict)
    """What computing the features needs besides and was learned with the weights."""

    def logits(self, features: Floats) -> Floats:
        """The output before the logistic function."""
        values = self._scaled(features)
        for weight, bias in self.layers[:-1]:
            values = np.maximum(values @ weight + bias, 0)
        weight, bias = self.layers[-1]
        logits: Floats = (values @ weight + bias)[:, 0]
        return logits

    def __call__(self, features: Floats) -> Floats:
        """A score between 0 and 1 for each row of features."""
        return logistic(self.logits(features))

    def _scaled(self, features: Floats) -> Floats:
        return 2 * (features - self.low) / (self.high - self.low) - 1

    def _gradient(self, features: Floats) -> Floats:
        """d score / d feature, per row."""
        values, signs = self._scaled(features), []
        for weight, bias in self.layers[:-1]:
            values = values @ weight + bias
            signs.append(values > 0)
            values = np.maximum(values, 0)
        weight, bias = self.layers[-1]
        score = logistic((values @ weight + bias)[:, 0])
        back = np.repeat(weight.T, len(features), axis=0)
        for (weight, _), sign in zip(reversed(self.layers[:-1]), reversed(signs), strict=True):
            back = (back * sign) @ weight.T
        return back * (2 / (self.high - self.low)) * (score * (1 - score))[:, None]

    def contributions(self, features: Floats, steps: int = 32) -> Floats:
        """What each feature adds to the score of the usual caption (integrated gradients along the straight way)."""
        path = (np.arange(steps) + 0.5) / steps
        way = features - self.usual
        slope: Floats = np.mean([self._gradient(self.usual + share * way) for share in path], axis=0)
        return way * slope

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network as a safetensors file."""
        tensors: dict[str, NDArray[Any]] = {"low": self.low, "high": self.high, "usual": self.usual}
        for number, (weight, bias) in enumerate(self.layers):
            tensors |= {f"layer{number}.weight": weight, f"layer{number}.bias": bias}
        tensors |= {f"extra.{name}": value for name, value in self.extra.items()}
        about = {**self.about, "features": json.dumps(self.features)}
        write_tensors(path, tensors, about)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FeatureMLP:
        """Read what `save` wrote."""
        if not Path(path).is_file():
            raise InputError("there are no weights here", where=os.fspath(path), remedy="make some: caplens train")
        tensors, about = read_tensors(path, "the weights of a learned metric")
        try:
            features = tuple(json.loads(about.pop("features")))
            layers: list[tuple[Floats, Floats]] = []
            while f"layer{len(layers)}.weight" in tensors:
                layer = f"layer{len(layers)}"
                layers.append((tensors[f"{layer}.weight"], tensors[f"{layer}.bias"]))
            low, high, usual = (tensors[name] for name in ("low", "high", "usual"))
        except (KeyError, ValueError) as error:
            raise InputError(f"not the weights of a learned metric ({error})", where=os.fspath(path)) from None
        extra = {name.removeprefix("extra."): value for name, value in tensors.items() if name.startswith("extra.")}
        return cls(features, tuple(layers), low, high, usual, about, extra)


def logistic(values: Floats) -> Floats:
    """1 / (1 + e^−x) without overflow."""
    small = np.exp(-np.abs(values))
    shares: Floats = np.where(values >= 0, 1, small) / (1 + small)
    return shares


@dataclass(frozen=True)
class Contributions(LazyDetails):
    """Why each caption has its score."""

    network: FeatureMLP
    features: Floats

    def __len__(self) -> int:
        return len(self.features)

    def of(self, row: int) -> Details:
        values = self.features[row]
        shares = self.network.contributions(values[None])[0]
        named = zip(self.network.features, values.tolist(), shares.tolist(), strict=True)
        contributions: list[Contribution] = [
            {"name": name, "value": value, "share": share} for name, value, share in named
        ]
        usual = float(self.network(self.network.usual[None])[0])
        return {
            "note": f"a usual caption scores {usual:.3f}; the bars say what moves this one away from it, "
            "the numbers are the features",
            "contributions": sorted(contributions, key=lambda entry: -abs(entry["share"])),
        }
