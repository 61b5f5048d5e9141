"""Features of captions for training, computed once and kept in the cache."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.signature import caplens_version
from caplens.core.types import Floats
from caplens.storage.atomic import atomic_path
from caplens.storage.content import content_identity
from caplens.storage.identity import Identity
from caplens.storage.paths import cache_folder


def cached_features(captions: CaptionSet, identity: Identity, compute: Callable[[CaptionSet], Floats]) -> Floats:
    """Return `compute(captions)`, from the cache where these very captions had their features computed before.

    `identity` names everything else that the features depend on. Captions count with references and pictures, byte by
    byte; features of what has no lasting identity are computed every time.
    """
    key = Identity.of([identity, content_identity(captions), caplens_version()])
    if not key.lasting:
        return compute(captions)
    path = cache_folder() / "features" / f"{key.digest[:32]}.npy"
    with contextlib.suppress(OSError, ValueError, EOFError):  # not there, or damaged
        stored: Floats = np.load(path, allow_pickle=False)
        return stored
    features = compute(captions)
    with contextlib.suppress(OSError), atomic_path(path) as temporary, temporary.open("wb") as out:
        np.save(out, features)
    return features
