"""Captioner: a trained network with its words, as one safetensors file."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from caplens.captioning.aoanet import AoANet, AoANetConfig
from caplens.captioning.decode import beam_search
from caplens.captioning.vocabulary import Vocabulary
from caplens.core.errors import InputError
from caplens.storage.atomic import atomic_path
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

    model: AoANet
    vocabulary: Vocabulary
    sight: FeatureSpec
    longest: int = 20

    @torch.no_grad()
    def caption(self, features: Tensor, beam: int = 3, batch: int = 64) -> list[str]:
        """One caption per picture; features are (pictures, regions, size)."""
        self.model.eval()
        texts: list[str] = []
        for start in range(0, len(features), batch):
            chunk = features[start : start + batch]
            words = beam_search(self.model, self.model.encode(chunk.float()), self.longest, beam)
            texts += self.vocabulary.decode(words.tolist())
        return texts

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write network (in half precision), words and what it looks at."""
        from safetensors.torch import save_file

        about = {
            "config": self.model.config.to_dict(),
            "words": self.vocabulary.words,
            "sight": asdict(self.sight),
            "longest": self.longest,
        }
        tensors = {name: tensor.half().contiguous() for name, tensor in self.model.state_dict().items()}
        with atomic_path(path) as temporary:
            save_file(tensors, temporary, metadata={"caplens": json.dumps(about, sort_keys=True)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Captioner:
        """Read what `save` wrote."""
        from safetensors import SafetensorError, safe_open

        if not Path(path).is_file():
            raise InputError("there is no captioner here", where=str(path), remedy="caplens train captioner makes one")
        try:
            with safe_open(path, framework="pt") as file:
                about = json.loads((file.metadata() or {})["caplens"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            model = AoANet(AoANetConfig(**about["config"]))
            model.load_state_dict(tensors)
            return cls(model, Vocabulary(tuple(about["words"])), FeatureSpec(**about["sight"]), about["longest"])
        except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"not a captioner ({first_line(error)})", where=str(path)) from None
