"""Files on disk: paths, atomic writes, tensors, the cache, locks and the table of weights."""

__all__ = [
    "archives",
    "atomic",
    "cache",
    "content",
    "digests",
    "fingerprints",
    "identity",
    "leftovers",
    "locks",
    "paths",
    "registry",
    "tensors",
    "weights",
]
