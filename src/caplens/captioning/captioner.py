"""Captioner: a trained network with its words, as one safetensors file."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from caplens.captioning.aoanet import AoANetConfig, CaptionNetwork
from caplens.captioning.decode import beam_search
from caplens.captioning.vocabulary import Vocabulary
from caplens.core.errors import InputError
from caplens.core.types import Vectors
from caplens.storage.tensors import read_tensors, write_tensors
from caplens.vision.images import first_line


@dataclass(frozen=True)
class FeatureSpec:
    """What a captioner looks at: the grids of an encoder."""

    encoder: str
    """What `load_encoder` calls it."""
    identity: str
    """Which weights it has: the encoder's `grid_identity`."""
    side: int
    """Cells along a side of the grid."""


@dataclass
class Captioner:
    """Says what is in a picture, given the features it was trained on."""

    network: CaptionNetwork
    vocabulary: Vocabulary
    spec: FeatureSpec
    longest: int = 20

    def caption(self, features: Vectors, beam: int = 3, batch: int = 64) -> list[str]:
        """One caption per picture; features are (pictures, regions, size)."""
        texts: list[str] = []
        for start in range(0, len(features), batch):
            memory = self.network.encode(features[start : start + batch])
            texts += self.vocabulary.decode(beam_search(self.network, memory, self.longest, beam).tolist())
        return texts

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write network (in half precision), words and what it looks at."""
        about = {
            "config": self.network.config.to_dict(),
            "words": self.vocabulary.words,
            "sight": asdict(self.spec),
            "longest": self.longest,
        }
        tensors = {name: tensor.astype(np.float16) for name, tensor in self.network.tensors.items()}
        write_tensors(path, tensors, {"caplens": json.dumps(about, sort_keys=True)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Captioner:
        """Read what `save` wrote."""
        if not Path(path).is_file():
            raise InputError("there is no captioner here", where=str(path), remedy="caplens train captioner makes one")
        tensors, metadata = read_tensors(path, "a captioner")
        try:
            about = json.loads(metadata["caplens"])
            network = CaptionNetwork(AoANetConfig(**about["config"]), tensors)
            return cls(network, Vocabulary(tuple(about["words"])), FeatureSpec(**about["sight"]), about["longest"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a captioner ({first_line(error)})", where=str(path)) from None
