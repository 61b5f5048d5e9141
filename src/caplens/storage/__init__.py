"""Files on disk: paths, atomic writes, tensors, the cache, locks and the table of weights."""
