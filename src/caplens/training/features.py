"""Features of captions for training, computed once and kept in the cache."""

from __future__ import annotations

from collections.abc import Callable

from caplens.core.captions import CaptionSet
from caplens.core.signature import caplens_version
from caplens.core.types import Floats
from caplens.storage.cache import FileCache
from caplens.storage.content import content_identity
from caplens.storage.identity import Identity


def cached_features(captions: CaptionSet, identity: Identity, compute: Callable[[CaptionSet], Floats]) -> Floats:
    """Return `compute(captions)`, from the cache where these very captions had their features computed before.

    `identity` names everything else that the features depend on. Captions count with references and pictures, byte by
    byte; features of what has no lasting identity are computed every time.
    """
    key = Identity.of([identity, content_identity(captions), caplens_version()])
    if not key.lasting:
        return compute(captions)
    return FileCache("features").get_or_compute(f"{key.digest[:32]}.npy", lambda: compute(captions))
