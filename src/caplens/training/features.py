"""Features of captions for training, computed once and kept in the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.types import Floats
from caplens.storage.atomic import atomic_path
from caplens.storage.paths import cache_folder


def cached_features(captions: CaptionSet, identity: str, compute: Callable[[CaptionSet], Floats]) -> Floats:
    """`compute(captions)`, read from the cache when the same captions were seen under the same identity."""
    content = json.dumps([identity, captions.candidates, captions.references])
    key = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    path = cache_folder() / "features" / f"{key}.npy"
    if path.exists():
        known: Floats = np.load(path)
        return known
    made = compute(captions)
    with atomic_path(path) as temporary, temporary.open("wb") as out:
        np.save(out, made)
    return made
