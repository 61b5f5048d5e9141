"""Whether a text belongs to its picture, seen through the strong encoder: the evidence behind `caplens check`.

A cosine alone says little, because some texts are near every picture and some pictures near every text. So it is held
against a background: 512 pictures and 512 captions by people, all of Flickr8k's training split.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from caplens.core.types import Floats, Vectors, unit
from caplens.core.workspace import Workspace
from caplens.metrics.clip_score import ClipScore
from caplens.storage import weights
from caplens.storage.tensors import read_tensors

ENCODER = "embedded-strong"


@dataclass(frozen=True)
class Background:
    """Vectors of pictures and of captions that do not belong together, of unit length."""

    pictures: Floats
    captions: Floats

    @classmethod
    @functools.cache
    def load(cls) -> Background:
        """Return the shipped one, made by tools/calibrate_check.py."""
        tensors, _ = read_tensors(weights.shipped("check-background"), "the background of check")
        return cls(unit(tensors["pictures"]), unit(tensors["captions"]))

    def evidence(self, pictures: Vectors | Floats, captions: Vectors | Floats) -> Floats:
        """Return for every pair: its cosine, how far it is above the background's, and how much of that is above it.

        The latter two come twice: the text among other pictures, and the picture among other texts.
        """
        seen, said = unit(pictures), unit(captions)
        own = np.einsum("ij,ij->i", seen, said)[:, None]
        columns = [own]
        for others in (said @ self.pictures.T, seen @ self.captions.T):
            columns += [(own - others.mean(axis=1, keepdims=True)) / others.std(axis=1, keepdims=True)]
            columns += [(others > own).mean(axis=1, keepdims=True)]
        return np.concatenate(columns, axis=1)


def belonging(work: Workspace, **options: Any) -> Floats:
    """Return the evidence for every text and its picture, NaN where the picture could not be read."""
    metric = ClipScore(encoder=ENCODER, **options)
    texts, which = metric.distinct_texts(work, work.captions.candidates)
    return Background.load().evidence(metric.seen(work).vectors, texts[which])
