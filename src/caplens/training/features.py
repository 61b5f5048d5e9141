"""Features for training, computed once: those of captions are kept in the cache, others in a folder of the user's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning, InputError
from caplens.core.signature import caplens_version
from caplens.core.types import Floats
from caplens.storage.cache import FileCache
from caplens.storage.content import content_identity
from caplens.storage.identity import Identity
from caplens.storage.tensors import read_tensors, write_tensors

Arrays = dict[str, NDArray[Any]]


def cached_features(captions: CaptionSet, identity: Identity, compute: Callable[[CaptionSet], Floats]) -> Floats:
    """Return `compute(captions)`, from the cache where these very captions had their features computed before.

    `identity` names everything else that the features depend on. Captions count with references and pictures, byte by
    byte; features of what has no lasting identity are computed every time.
    """
    key = Identity.of([identity, content_identity(captions), caplens_version()])
    if not key.lasting:
        return compute(captions)
    return FileCache("features").get_or_compute(f"{key.digest[:32]}.npy", lambda: compute(captions))


def kept_features(path: Path, identity: Identity, compute: Callable[[], Arrays]) -> Arrays:
    """Return `compute()`, or what this file holds of an earlier call with the same identity.

    What the file holds of another identity is replaced, and what is damaged is made anew with a note.
    """
    if path.is_file():
        try:
            arrays, about = read_tensors(path, "features")
        except InputError as error:
            warnings.warn(f"{error}; it is made anew", CaplensWarning, stacklevel=3)
        else:
            if about.get("identity") == identity.digest:
                return arrays
    arrays = compute()
    write_tensors(path, arrays, {"identity": identity.digest})
    return arrays


def pictures_identity(images: Path, names: list[str]) -> Identity:
    """Return the names of pictures and their content, byte by byte."""
    return content_identity(CaptionSet.of(names, images=[images / name for name in names]), {"image"})
