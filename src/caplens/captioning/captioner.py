"""Captioner: a trained network with its words, as one safetensors file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from caplens.captioning.aoanet import AoANet, AoANetConfig
from caplens.captioning.decode import beam_search
from caplens.captioning.vocabulary import Vocabulary
from caplens.errors import InputError
from caplens.files import atomic_path


@dataclass
class Captioner:
    """Says what is in a picture, given the features of the encoder it was trained on."""

    model: AoANet
    vocabulary: Vocabulary
    encoder: str
    """Name of the encoder whose features it reads."""
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
        """Write network, words and encoder name."""
        from safetensors.torch import save_file

        about = {
            "config": json.dumps(self.model.config.to_dict()),
            "words": json.dumps(self.vocabulary.words, ensure_ascii=False),
            "encoder": self.encoder,
            "longest": str(self.longest),
        }
        tensors = {name: tensor.contiguous() for name, tensor in self.model.state_dict().items()}
        with atomic_path(path) as temporary:
            save_file(tensors, temporary, metadata=about)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Captioner:
        """Read what `save` wrote."""
        from safetensors import SafetensorError, safe_open

        if not Path(path).is_file():
            raise InputError("there is no captioner here", where=str(path), remedy="caplens train captioner makes one")
        try:
            with safe_open(path, framework="pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            model = AoANet(AoANetConfig(**json.loads(about["config"])))
        except (SafetensorError, KeyError) as error:
            raise InputError(f"not a captioner ({error})", where=str(path)) from None
        model.load_state_dict(tensors)
        return cls(model, Vocabulary(tuple(json.loads(about["words"]))), about["encoder"], int(about["longest"]))
